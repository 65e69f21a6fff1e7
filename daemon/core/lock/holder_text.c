/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/lock/holder_text.h"

#include "daemon/base/netstring.h"
#include "daemon/core/event/core.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void holder_text_put_question(struct buf *out, const struct holder_text *c)
{
	netstring_put(out, c->daemon);
	netstring_put(out, c->name);
	netstring_put_int(out, c->number);
}

void holder_text_put(struct buf *out, const struct holder_text *c)
{
	holder_text_put_question(out, c);
	netstring_put_int(out, c->held_ms);
	netstring_put(out, c->label);
	netstring_put(out, c->peer);
	netstring_put_int(out, c->pid);
	netstring_put_int(out, c->uid);
	netstring_put(out, c->owner);
	netstring_put(out, c->remark.note);
	netstring_put(out, c->remark.trace);
}

/* What the daemons make their ids of: see core.c. A channel is named by it. */
static bool id_is_sound(struct span id)
{
	for (size_t i = 0; i < id.n; i++) {
		char c = id.p[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_'))
			return false;
	}
	return id.n > 0 && id.n < DAEMON_ID_MAX;
}

static bool take_text(struct span *rest, size_t most, struct span *ret_text)
{
	return netstring_next(rest, ret_text) && ret_text->n <= most;
}

static bool take_number(struct span *rest, int64_t least, int64_t *ret_number)
{
	return netstring_next_int(rest, ret_number) && *ret_number >= least;
}

static bool take_head(struct span *rest, struct holder_text *c)
{
	return rest->n <= CARD_MAX && netstring_next(rest, &c->daemon) && id_is_sound(c->daemon) && netstring_next(rest, &c->name) && c->name.n > 0 &&
	       c->name.n <= NAME_MAX_BYTES && take_number(rest, 1, &c->number);
}

bool holder_text_read_question(struct span message, struct holder_text *ret_card)
{
	*ret_card = (struct holder_text){.pid = -1, .uid = -1};
	return take_head(&message, ret_card);
}

static bool take_holder(struct span *rest, struct holder_text *c, struct span *ret_note)
{
	return take_number(rest, 0, &c->held_ms) && c->held_ms <= INT64_MAX / 2000 && take_text(rest, CARD_TEXT_MAX, &c->label) &&
	       take_text(rest, CARD_TEXT_MAX, &c->peer) && take_number(rest, -1, &c->pid) && take_number(rest, -1, &c->uid) &&
	       take_text(rest, CARD_OWNER_MAX, &c->owner) && take_text(rest, CARD_TEXT_MAX, ret_note);
}

bool holder_text_read(struct span message, struct holder_text *c)
{
	struct span note, trace = SPAN("");

	*c = (struct holder_text){.pid = -1, .uid = -1};
	if (!take_head(&message, c) || !take_holder(&message, c, &note) || (message.n > 0 && !netstring_next(&message, &trace)))
		return false;
	c->remark = remark_read(note, trace);
	return true;
}

static size_t text_put(char *out, size_t at, struct span text)
{
	if (text.n > 0)
		memcpy(out + at, text.p, text.n);
	return at + text.n;
}

char *label_put(char *at, struct span label)
{
	bool quoted = span_starts(label, SPAN("@"));

	for (size_t i = 0; i < label.n; i++)
		quoted |= label.p[i] == '=' || label.p[i] == ':';
	if (!quoted)
		return at + text_put(at, 0, label);
	*at++ = '\'';
	for (size_t i = 0; i < label.n; i++)
		*at++ = label.p[i] == '\'' ? '?' : label.p[i];
	*at++ = '\'';
	return at;
}

size_t holder_text_who(const struct holder_text *c, char *out)
{
	size_t at = (size_t)(label_put(out, c->label) - out);

	if (at > 0 && (c->pid >= 0 || c->peer.n > 0))
		out[at++] = ' ';
	if (c->pid < 0)
		return text_put(out, at, c->peer);
	return at + (size_t)snprintf(out + at, CARD_WHO_MAX - at, "pid=%" PRId64 " uid=%" PRId64, c->pid, c->uid);
}
