/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: what was sent to which store when, and which stores have not answered. They are embedded in what asks, a round or a release, which lives until every
 * call has been answered. So a late answer always finds it.
 * See ALGORITHMS.md, Rounds.
 */
#ifndef CORE_CALLS_H
#define CORE_CALLS_H

#include "daemon/core/event/name.h"
#include "daemon/core/member/members.h"

enum calls_owner {
	CALLS_OF_ROUND,   /* struct round */
	CALLS_OF_RELEASE, /* struct release */
	CALLS_OF_TABLE,   /* struct deadlocks */
	CALLS_OF_HOME,    /* struct home_question */
	CALLS_OF_MESSAGE,    /* struct message, ask_daemon.c */
};

struct calls {
	uint32_t slot;        /* its number in each answer */
	uint8_t owner;        /* what it is embedded in */
	struct nodeset asked; /* a call was sent */
	struct nodeset open;  /* … and is not answered */
	struct name *name;    /* referenced while the calls live */
	struct instant begun;
	struct instant sent[NODES_MAX];
};

struct call_table {
	struct core *core;
	struct members *members;
	struct calls **slot;
	uint32_t slots, free_head; /* free slots are a list of indexes; see calls.c */
	uint32_t *next_free;
	unsigned live;
};

void call_table_init(struct call_table *t, struct core *core, struct members *members);
void call_table_release(struct call_table *t); /* nothing is live */

#define CALLS_SLOT_NONE UINT32_MAX
void call_table_grow(struct call_table *t);

/* The calls are zero-filled. Inline, since each LOCK and each UNLOCK opens and closes some. */
static inline void calls_open(struct call_table *t, struct calls *c, enum calls_owner owner, struct name *name)
{
	if (t->free_head == CALLS_SLOT_NONE)
		call_table_grow(t);
	c->slot = t->free_head;
	t->free_head = t->next_free[c->slot];
	t->slot[c->slot] = c;
	t->live++;
	c->owner = (uint8_t)owner;
	c->begun = t->core->now;
	c->name = name;
	name->refs++;
}

/* No call is open. */
static inline void calls_close(struct call_table *t, struct calls *c)
{
	c->name->refs--;
	t->slot[c->slot] = NULL;
	t->next_free[c->slot] = t->free_head;
	t->free_head = c->slot;
	t->live--;
}

/* Sends a call, and notes a time before it can leave. The caller says what else the call asks before any other effect; the rest is 0. */
struct call *calls_send(struct call_table *t, struct calls *c, unsigned node, enum call_kind kind);
/* Tracks that the call is answered, and returns the calls that it belongs to. NULL: no such call is open. */
struct calls *calls_answered(struct call_table *t, const struct answer *a);

/* Until when this node may still run a call that sets a key and was sent over an earlier connection, not before `since` and not after `last`: a call that is
 * sent now may overtake it. PAST: there is no such call. */
static inline struct instant calls_overtaken_until(const struct call_table *t, unsigned node, struct instant since, struct instant last)
{
	const struct member *m = &t->members->node[node];

	return instant_before(m->up_since, since) ? INSTANT_PAST : instant_add(instant_min(last, m->up_since), m->overtaken_us);
}

/* When the last of these nodes was asked. */
struct instant calls_sent_last(const struct call_table *t, const struct calls *c, struct nodeset nodes);
/* When the timeout of all stores that have not answered has passed. */
struct instant calls_slow_at(const struct call_table *t, const struct calls *c);
/* Marks stores silent whose timeout has passed. */
void calls_stall(struct call_table *t, const struct calls *c);

/* A time in milliseconds, as a store takes it, rounded up. */
static inline int64_t whole_ms(int64_t us)
{
	return (us + MSEC - 1) / MSEC;
}

#endif
