/* SPDX-License-Identifier: BSD-2-Clause */
/* See audit.h. */
#include "daemon/core/audit.h"

#include "daemon/core/who.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_MOST 512 /* bytes of a text that are written; a name has no more */
#define TEXTS     6   /* name, permit, label, user, cert, address */
#define LINE_ROOM (TEXTS * (6 * TEXT_MOST + 16) + 400)

/* How many bytes of well-formed UTF-8 begin here; 0: none. */
static size_t character_length(const unsigned char *p, size_t n)
{
	size_t length = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if (length == 0 || length > n)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Not the shortest form, a surrogate, or beyond the last code point. */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return length;
}

static char *put(char *at, const char *text)
{
	size_t n = strlen(text);

	memcpy(at, text, n);
	return at + n;
}

static char *put_text(char *at, const char *field, struct span text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	size_t n = text.n < TEXT_MOST ? text.n : TEXT_MOST;

	at += sprintf(at, ",\"%s\":\"", field);
	while (n > 0) {
		size_t length = character_length(p, n);

		if (length == 0) {
			at += sprintf(at, "\\udc%02x", p[0]);
		} else if (p[0] < 0x20 || p[0] == 0x7f) {
			at += sprintf(at, "\\u%04x", p[0]);
		} else {
			if (p[0] == '"' || p[0] == '\\')
				*at++ = '\\';
			memcpy(at, p, length);
			at += length;
		}
		length += length == 0;
		p += length;
		n -= length;
	}
	*at++ = '"';
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
	at = put(at, "}\n");
	arena_commit(&core->out->arena, (size_t)(at - line));
	effect = effects_add(core->out, EFFECT_AUDIT);
	effect->audit.text = (struct span){line, (size_t)(at - line)};
}
