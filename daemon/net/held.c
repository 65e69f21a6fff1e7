/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What connections have in their buffers, and how much that may be of all together: many that do not read, or do not end their lines, must not take all memory.
 * Who reads has little unsent, and stays, however much others have.
 */
#include "daemon/base/greatest.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"

static size_t buf_held(const struct buf *b)
{
	return b ? buf_length(b) : 0;
}

static size_t conn_held(const struct conn *c)
{
	return buf_held(c->out) + buf_held(c->rest);
}

void conn_count_held(struct conn *c, size_t n, bool more)
{
	c->hub->held += more ? n : -n;
	if (c->share)
		c->share->held += more ? n : -n;
}

void conn_leave_share(struct conn *c)
{
	if (c->share)
		c->share->held -= conn_held(c);
	shares_leave(&c->hub->shares, c->share);
	c->share = NULL;
}

/* Ends the greatest session of the peer that has most. False: none has anything. */
static bool hub_fail_greatest(const struct hub *h)
{
	struct greatest most = {0};
	struct conn *c;

	for (size_t at = 0; (c = slots_next(&h->slots, &at));)
		greatest_see(&most, c, conn_held(c), c->share ? c->share->held : 0);
	if (most.one)
		conn_fail(most.one, GONE_OVERFLOW);
	return most.one;
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
	conn_count_held(c, n, true);
}

static void held_drop(struct conn *c, struct buf **buf)
{
	if (!*buf)
		return;
	conn_count_held(c, buf_length(*buf), false);
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
