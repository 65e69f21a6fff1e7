/* SPDX-License-Identifier: BSD-2-Clause */
/* See audit.h. */
#include "daemon/core/session/audit.h"

#include "daemon/core/session/client_identity.h"
#include "proto/json.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_MOST 512 /* bytes of a text that are written; a name has no more */
#define TEXTS     7   /* name, permit, label, user, cert, address, trace */
#define LINE_ROOM (TEXTS * (JSON_TEXT_MAX(TEXT_MOST) + 16) + 400)

static void put_bytes(void *to, const char *p, size_t n)
{
	char **at = to;

	memcpy(*at, p, n);
	*at += n;
}

static char *put(char *at, const char *text)
{
	put_bytes(&at, text, strlen(text));
	return at;
}

static char *put_text(char *at, const char *field, struct span text)
{
	if (text.n > TEXT_MOST)
		text.n = TEXT_MOST;
	at = put(at, ",");
	json_member(put_bytes, &at, span_of(field), text);
	return at;
}

static char *put_int(char *at, const char *field, int64_t n)
{
	return at + sprintf(at, ",\"%s\":%" PRId64, field, n);
}

static struct span text_of(const char *text)
{
	return text ? span_of(text) : SPAN("");
}

static char *put_peer(char *at, const struct session *s)
{
	struct span address;

	s = s->principal ? s->principal : s;
	address = s->at_unix ? SPAN("unix") : text_of(s->address);
	at = put_int(at, "session", (int64_t)s->serial);
	if (s->label)
		at = put_text(at, "label", span_of(s->label));
	if (s->is_unix) {
		at = put_int(at, "uid", s->uid);
		at = put_int(at, "pid", s->pid);
	}
	if (s->identity && s->identity->user)
		at = put_text(at, "user", span_of(s->identity->user));
	if (s->has_subject)
		at = put_text(at, "cert", session_subject(s));
	if (address.n > 0)
		at = put_text(at, "address", address);
	return at;
}

void audit_write(struct core *core, const struct audit *a)
{
	char *line = arena_reserve(&core->out->arena, LINE_ROOM), *at = line;
	struct effect *effect;

	at = put(at, ",\"event\":\"");
	at = put(put(at, a->event), "\"");
	if (a->name.n > 0)
		at = put_text(at, "name", a->name);
	if (a->permit.n > 0)
		at = put_text(at, "permit", a->permit);
	if (a->fence > 0)
		at = put_int(at, "fence", a->fence);
	if (a->victim > 0)
		at = put_int(at, "killed", (int64_t)a->victim);
	at = put_peer(at, a->session);
	if (a->held_us >= 0)
		at = put_int(at, "held_ms", a->held_us / MSEC);
	if (a->reason)
		at = put_text(at, "reason", span_of(a->reason));
	if (a->trace.n > 0)
		at = put_text(at, "trace", a->trace);
	at = put(at, "}\n");
	arena_commit(&core->out->arena, (size_t)(at - line));
	effect = effects_add(core->out, EFFECT_AUDIT);
	effect->audit.text = (struct span){line, (size_t)(at - line)};
}
