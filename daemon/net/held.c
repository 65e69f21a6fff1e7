/* SPDX-License-Identifier: BSD-2-Clause */
/* See held.h. Peers, and the sessions of a peer, are in lists by size class: so the search for the largest looks at few. */
#include "daemon/net/held.h"

#define LOOKS_MOST 64 /* at peers, and at sessions: among more of about the same size, any may be chosen */

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

/* A connection that is closing counts for no peer. While it holds memory it is in a separate list. */
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

static void held_drop(struct conn *c, struct buf **buf)
{
	if (!*buf)
		return;
	hub_buf_put(c->hub, *buf);
	*buf = NULL;
	conn_count_held(c);
}

void conn_drop_output(struct conn *c)
{
	held_drop(c, &c->out);
}

void conn_drop_input(struct conn *c)
{
	held_drop(c, &c->rest);
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

struct conn *held_most(const struct hub *h)
{
	struct share *s = share_greatest(&h->shares);

	return s ? conn_greatest(s) : NULL;
}
