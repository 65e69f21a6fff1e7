/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What memory the buffers of connections have, and how much that may be of all together: many that do not read, or do not end their lines, must not take all
 * memory. Who reads has little unsent, and stays, however much others have.
 *
 * Peers, and the sessions of a peer, stand in lists by classes of size. So the one that is to end is found among a few, however many there are.
 */
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"

#define ENDED_AT_ONCE 16 /* connections, for what one more buffer takes */
#define LOOKS_MOST 64 /* at peers, and at sessions: of more that are about as large, any may be the one */

static size_t memory_of(const struct buf *b)
{
	return b ? b->cap : 0;
}

static size_t bytes_of(const struct conn *c)
{
	return (c->out ? buf_length(c->out) : 0) + (c->rest ? buf_length(c->rest) : 0);
}

static unsigned char class_of(size_t bytes)
{
	unsigned class = bytes ? 64u - (unsigned)__builtin_clzll(bytes) : 0;

	return (unsigned char)(class < HELD_CLASSES ? class : HELD_CLASSES - 1);
}

/* --- counts ---------------------------------------------------------------------------------------------------------- */

/* A connection that is closing counts for no peer any more: it is in a list of its own while it holds something. */
static void conn_set_class(struct conn *c, unsigned char class)
{
	if (c->class == class)
		return;
	if (c->class)
		LIST_REMOVE(c, of_class);
	c->class = class;
	if (class && c->share)
		LIST_INSERT_HEAD(&c->share->sessions_of[class], c, of_class);
	else if (class)
		LIST_INSERT_HEAD(&c->hub->leaving, c, of_class);
}

static void share_set_held(struct shares *shares, struct share *s, size_t held)
{
	unsigned char class = class_of(held);

	s->held = held;
	if (s->class == class)
		return;
	if (s->class)
		LIST_REMOVE(s, of_class);
	s->class = class;
	if (class)
		LIST_INSERT_HEAD(&shares->of_class[class], s, of_class);
}

void conn_count_held(struct conn *c)
{
	size_t before = c->held;

	c->held = memory_of(c->out) + memory_of(c->rest);
	if (c->held == before)
		return;
	c->hub->held += c->held - before;
	if (c->share)
		share_set_held(&c->hub->shares, c->share, c->share->held + c->held - before);
	conn_set_class(c, class_of(c->held));
}

void conn_leave_share(struct conn *c)
{
	if (!c->share)
		return;
	conn_set_class(c, 0);
	share_set_held(&c->hub->shares, c->share, c->share->held - c->held);
	shares_leave(&c->hub->shares, c->share);
	c->share = NULL;
	conn_set_class(c, class_of(c->held));
}

/* --- who is to end --------------------------------------------------------------------------------------------------- */

static struct share *share_greatest(const struct shares *shares)
{
	struct share *s, *most = NULL;
	unsigned class = HELD_CLASSES, looks = 0;

	while (!most && --class > 0)
		LIST_FOREACH(s, &shares->of_class[class], of_class) {
			if (!most || s->held > most->held)
				most = s;
			if (++looks == LOOKS_MOST)
				break;
		}
	return most;
}

static struct conn *conn_greatest(const struct share *s)
{
	struct conn *c, *most = NULL;
	unsigned class = HELD_CLASSES, looks = 0;

	while (!most && --class > 0)
		LIST_FOREACH(c, &s->sessions_of[class], of_class) {
			if (!most || bytes_of(c) > bytes_of(most))
				most = c;
			if (++looks == LOOKS_MOST)
				break;
		}
	return most;
}

/* Ends the greatest session of the peer that has most. False: none has anything. */
static bool hub_fail_greatest(const struct hub *h)
{
	struct share *s = share_greatest(&h->shares);
	struct conn *c = s ? conn_greatest(s) : NULL;

	if (c)
		conn_fail(c, GONE_OVERFLOW);
	return c;
}

/* One that is closing, and still has something unsent, goes first. */
static bool hub_end_one(struct hub *h, const struct conn *but)
{
	struct conn *c = LIST_FIRST(&h->leaving);

	if (c && c == but)
		c = LIST_NEXT(c, of_class);
	if (!c)
		return hub_fail_greatest(h);
	closing_finish(c);
	return true;
}

static void held_add(struct conn *c, struct buf **buf, const void *bytes, size_t n)
{
	struct hub *h = c->hub;

	for (unsigned i = 0; h->held + n > HELD_WHOLE * h->conf.output_max && i < ENDED_AT_ONCE && hub_end_one(h, c); i++)
		;
	if (c->state == CONN_FAILED)
		return;
	if (!*buf)
		*buf = hub_buf_get(h);
	buf_append(*buf, bytes, n);
	conn_count_held(c);
}

static void held_drop(struct conn *c, struct buf **buf)
{
	if (!*buf)
		return;
	hub_buf_put(c->hub, *buf);
	*buf = NULL;
	conn_count_held(c);
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
