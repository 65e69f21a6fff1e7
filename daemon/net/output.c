/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: collected, and written once per flush, or sooner if it is large. Its only callback is `writing`: the loop reports errors. */
#include "daemon/net/output.h"

#include "daemon/net/closing.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/ending.h"
#include "daemon/net/held.h"
#include "daemon/net/secure.h"

/* --- bytes that a connection keeps ---------------------------------------------------------------------------------------- */

#define ENDED_AT_ONCE 16 /* connections that end to make room for one buffer */

/* A closing connection with unsent output goes first. */
static bool room_make(struct hub *h, const struct conn *but)
{
	struct conn *c = LIST_FIRST(&h->leaving);

	if (c && c == but)
		c = LIST_NEXT(c, of_class);
	if (c) {
		closing_finish(c);
		return true;
	}
	c = held_most(h);
	if (c)
		conn_fail(c, GONE_OVERFLOW);
	return c;
}

static void room_add(struct conn *c, struct buf **buf, const void *bytes, size_t n)
{
	struct hub *h = c->hub;

	for (unsigned i = 0; h->held + n > HELD_WHOLE * h->conf.output_max && i < ENDED_AT_ONCE && room_make(h, c); i++)
		;
	if (c->state == CONN_FAILED)
		return;
	if (!*buf)
		*buf = hub_buf_get(h);
	buf_append(*buf, bytes, n);
	conn_count_held(c);
}

void conn_add_output(struct conn *c, const void *bytes, size_t n)
{
	room_add(c, &c->out, bytes, n);
}

void conn_add_input(struct conn *c, const void *bytes, size_t n)
{
	room_add(c, &c->rest, bytes, n);
}

/* --- output --------------------------------------------------------------------------------------------------------------- */

void conn_flush(struct conn *c)
{
	int r;

	if (c->blocked || c->state == CONN_FAILED)
		return;
	r = conn_write(c);
	if (r < 0) {
		conn_broken(c, -r);
		return;
	}
	c->blocked = r > 0;
	if (c->state == CONN_CLOSING && !c->blocked)
		closing_flushed(c);
	else
		conn_arm(c);
}

static bool conn_has_room(const struct conn *c, size_t size)
{
	size_t n = c->out ? buf_length(c->out) : 0, max = c->hub->conf.output_max;

	return n <= max && size <= max - n;
}

void conn_send(struct conn *c, const void *bytes, size_t size)
{
	if (c->state == CONN_FAILED || c->mute)
		return;
	/* One pass may produce more output than fits, even if the peer reads fast. So output is written before it can count as an overflow. */
	if (!conn_has_room(c, size))
		conn_flush(c);
	if (!conn_has_room(c, size)) {
		conn_fail(c, GONE_OVERFLOW);
		return;
	}
	if (c == c->hub->current)
		c->hub->spoken += size;
	conn_add_output(c, bytes, size);
	if (c->state == CONN_FAILED)
		return;
	conn_mark_dirty(c);
	if (conn_is_full(c))
		conn_flush(c);
}

void conn_await_sent(struct conn *c)
{
	c->awaits = true;
	conn_want_turn(c);
}
