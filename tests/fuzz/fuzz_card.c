/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a message about the holder of a lock. What is read of it lies inside the message and within its bounds, is shown within its bound, and is read
 * as the same when it is written again.
 */
#include "daemon/core/event/core.h"
#include "daemon/core/lock/claim.h"
#include "proto/proto.h"
#include "tests/fuzz/fuzz.h"

static void check_text(struct span text, struct span message, size_t most)
{
	PROMISE(text.n <= most && text.p >= message.p && text.p + text.n <= message.p + message.n);
}

static void check_head(const struct holder_text *c, struct span message)
{
	check_text(c->daemon, message, DAEMON_ID_MAX - 1);
	check_text(c->name, message, NAME_MAX_BYTES);
	PROMISE(c->daemon.n > 0 && c->name.n > 0 && c->number > 0 && !memchr(c->daemon.p, ':', c->daemon.n));
}

static void check_same(const struct holder_text *a, const struct holder_text *b)
{
	PROMISE(span_equal(a->daemon, b->daemon) && span_equal(a->name, b->name) && a->number == b->number && a->held_ms == b->held_ms);
	PROMISE(span_equal(a->label, b->label) && span_equal(a->peer, b->peer) && span_equal(a->owner, b->owner) && span_equal(a->remark.note, b->remark.note));
	PROMISE(span_equal(a->remark.trace, b->remark.trace));
	PROMISE(a->pid == b->pid && a->uid == b->uid);
}

static void check_card(const struct holder_text *c, struct span message)
{
	struct buf out = {0};
	struct holder_text again;
	char who[CARD_WHO_MAX];

	check_head(c, message);
	check_text(c->label, message, CARD_TEXT_MAX);
	check_text(c->peer, message, CARD_TEXT_MAX);
	check_text(c->owner, message, CARD_OWNER_MAX);
	check_text(c->remark.note, message, CARD_TEXT_MAX);
	PROMISE(c->remark.trace.n == 0 || trace_is_sound(c->remark.trace));
	PROMISE(c->held_ms >= 0 && c->pid >= -1 && c->uid >= -1);
	PROMISE(holder_text_who(c, who) <= sizeof(who));
	holder_text_put(&out, c);
	PROMISE(holder_text_read((struct span){buf_begin(&out), buf_length(&out)}, &again));
	check_same(c, &again);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *bytes = malloc(n ? n : 1); /* of just this size, so that a look behind its end is found */
	struct span message = {bytes, n};
	struct holder_text c;

	PROMISE(bytes != NULL);
	if (n)
		memcpy(bytes, data, n);
	if (holder_text_read_question(message, &c))
		check_head(&c, message);
	if (holder_text_read(message, &c))
		check_card(&c, message);
	free(bytes);
	return 0;
}
