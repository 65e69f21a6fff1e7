/* SPDX-License-Identifier: BSD-2-Clause */
/* See room.h. */
#include "daemon/net/room.h"

#include "daemon/net/closing.h"
#include "daemon/net/conn_state.h"
#include "daemon/net/held.h"

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
