/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a Redis server's: every reply is a well-formed tree inside its bounds, and the same replies come out whether the bytes arrive whole or one by
 * one. No error text may pass for a command that was executed.
 */
#include "daemon/base/buf.h"
#include "daemon/redis/resp.h"
#include "daemon/redis/failure.h"
#include "tests/fuzz/fuzz.h"

static void reply_promise(const struct resp *r, uint32_t from, uint32_t stop, unsigned depth)
{
	uint32_t at, children;

	PROMISE(depth < 64);
	for (at = from, children = 0; at < stop; at = r->value[at].end, children++) {
		const struct resp_value *v = &r->value[at];

		PROMISE(v->end > at && v->end <= stop);
		if (v->type == RESP_ARRAY)
			reply_promise(r, at + 1, v->end, depth + 1);
		else
			PROMISE(v->end == at + 1);
	}
	PROMISE(!from || children == r->value[from - 1].children);
}

/* Writes what a reply says, so that two can be compared. */
static void reply_note(const struct resp *r, struct buf *out)
{
	uint32_t i;

	PROMISE(r->count > 0 && r->count <= RESP_VALUES_MAX && r->value[0].end == r->count);
	reply_promise(r, 0, r->count, 0);
	if (resp_is_error(r))
		PROMISE(failure_class(resp_text(r, &r->value[0])) != ANSWER_EXECUTED);
	for (i = 0; i < r->count; i++) {
		const struct resp_value *v = &r->value[i];

		buf_printf(out, "%d/%u/%u/", v->type, v->end, v->type == RESP_ARRAY ? v->children : 0);
		if (v->type == RESP_INTEGER)
			buf_printf(out, "%lld", (long long)v->integer);
		else if (v->type == RESP_STRING || v->type == RESP_STATUS || v->type == RESP_ERROR)
			buf_append(out, resp_text(r, v).p, resp_text(r, v).n);
	}
	buf_printf(out, "\n");
}

/* Notes all replies, and returns how they ended: 0: more bytes are wanted; -EPROTO: garbage. */
static int replies_take(struct resp *r, struct buf *out)
{
	int outcome;

	while ((outcome = resp_next(r)) > 0)
		reply_note(r, out);
	return outcome;
}

static int feed(const uint8_t *data, size_t size, size_t step, struct buf *out)
{
	struct resp r;
	int outcome = 0;
	size_t at, n;

	resp_init(&r);
	for (at = 0; at < size && !outcome; at += n) {
		n = size - at < step ? size - at : step;
		outcome = resp_feed(&r, data + at, n);
		if (!outcome)
			outcome = replies_take(&r, out);
	}
	resp_release(&r);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, split;
	int a, b;

	buf_init(&whole);
	buf_init(&split);
	a = feed(data, size, size ? size : 1, &whole);
	b = feed(data, size, 1, &split);
	PROMISE(a == b);
	PROMISE(buf_length(&whole) == buf_length(&split));
	PROMISE(!buf_length(&whole) || !memcmp(buf_begin(&whole), buf_begin(&split), buf_length(&whole)));
	buf_release(&whole);
	buf_release(&split);
	return 0;
}
