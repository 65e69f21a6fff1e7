/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What connections have in their buffers, and how much that may be of all together: many that do not read, or do not end their lines, must not take all memory.
 * Who reads has little unsent, and stays.
 */
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"

static size_t buf_held(const struct buf *b)
{
	return b ? buf_length(b) : 0;
}

/* Ends the session that has most. False: none has anything. */
static bool hub_fail_greatest(const struct hub *h)
{
	struct conn *c, *most = NULL;
	size_t has = 0;

	for (size_t at = 0; (c = slots_next(&h->slots, &at));) {
		if (buf_held(c->out) + buf_held(c->rest) <= has)
			continue;
		most = c;
		has = buf_held(c->out) + buf_held(c->rest);
	}
	if (most)
		conn_fail(most, GONE_OVERFLOW);
	return most;
}

static void held_add(struct conn *c, struct buf **buf, const void *bytes, size_t n)
{
	struct hub *h = c->hub;

	while (h->held + n > HELD_WHOLE * h->conf.output_max && (closing_evict(h) || hub_fail_greatest(h)))
		;
	if (c->state == CONN_FAILED)
		return;
	if (!*buf)
		*buf = hub_buf_get(h);
	buf_append(*buf, bytes, n);
	h->held += n;
}

static void held_drop(struct conn *c, struct buf **buf)
{
	if (!*buf)
		return;
	c->hub->held -= buf_length(*buf);
	hub_buf_put(c->hub, *buf);
	*buf = NULL;
}

void conn_add_output(struct conn *c, const void *bytes, size_t n)
{
	held_add(c, &c->out, bytes, n);
}

void conn_drop_output(struct conn *c)
{
	held_drop(c, &c->out);
}

void conn_add_input(struct conn *c, const void *bytes, size_t n)
{
	held_add(c, &c->rest, bytes, n);
}

void conn_drop_input(struct conn *c)
{
	held_drop(c, &c->rest);
}
