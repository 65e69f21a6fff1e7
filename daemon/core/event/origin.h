/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer for the purpose of limits, that is, a user of a host or an address; its share of what all peers use, and its turn among those who wait. */
#ifndef CORE_ORIGIN_H
#define CORE_ORIGIN_H

#include "daemon/base/map.h"
#include "proto/span.h"

#include <stdbool.h>
#include <sys/queue.h>

struct origins;
struct peer_line;
struct turns;

/*
 * Clients that limits count together: those of one user of a host, or of one address. Counts how much each peer has of what all share, so that no peer takes
 * it from the others. Data alone.
 */

#define NAME_BYTES 200 /* bytes that a name takes at a store besides its own */
#define CROWD_OF_PEER 16 /* times limits.waiting, or limits.output, for one peer: see struct origin, crowd and orders … */
#define CROWD_OF_ALL  64 /* … and for all peers together */

TAILQ_HEAD(vacants, session);
LIST_HEAD(peer_lines, peer_line);
LIST_HEAD(take_shares, take_share);

struct origin {
	struct map_node by_name;
	struct origins *all;
	uint64_t names;        /* bytes that names take at a store: see lock_charge() */
	size_t ahead;          /* bytes that its sessions have read ahead */
	uint64_t crowd;        /* requests that wait, and claims of a name that somebody had already: no name counts for these */
	uint64_t under_way;    /* requests that wait for answers of the stores, and LISTs */
	uint64_t orders;       /* bytes that orders of its sessions take until the stores have answered */
	struct peer_lines lines; /* where something waits for its turn */
	unsigned questions;    /* to homes, which may still wait to be sent: see home.h */
	struct take_shares takes; /* one for each queue for whose jobs they wait: see jobs.h. Their TAKEs count in its crowd */
	unsigned queues;       /* for whose jobs its sessions wait: see job_queue_count_for() */
	unsigned sessions;
	unsigned detached;     /* the sessions without a connection */
	bool is_owner;         /* root, or the user of the daemon: may use as much as all peers together */
	struct vacants vacant; /* the detached sessions without a claim, in the order in which they lost their connections or their last claims */
	size_t n;
	char name[];           /* in the format of session_origin() */
};

struct origins {
	struct map by_name;
	uint64_t names; /* bytes, of all peers */
	uint64_t crowd;
	uint64_t under_way;
	uint64_t orders;
};

void origins_init(struct origins *t, const uint64_t key[2]);
void origins_release(struct origins *t); /* nothing refers to any origin */

/* The origin of one more session. */
struct origin *origin_join(struct origins *t, struct span name);
/* It has one more session. NULL: the peer is not known. */
void origin_refer(struct origin *o);
void origin_leave(struct origin *o);
/* Frees it if it has nothing left. */
void origin_drop_if_unused(struct origin *o);

/* One more question to a home for this peer, and its end. NULL: the peer is not known. */
static inline void origin_question_begin(struct origin *o)
{
	if (o)
		o->questions++;
}

void origin_question_end(struct origin *o);

/* Adds to its crowd, or subtracts from it. NULL: the peer is not known. */
static inline void origin_crowd(struct origin *o, uint64_t n)
{
	if (!o)
		return;
	o->crowd += n;
	o->all->crowd += n;
}

void origin_thin(struct origin *o, uint64_t n);

static inline bool origins_are_crowded(const struct origins *t, uint64_t waiting)
{
	return t->crowd >= CROWD_OF_ALL * waiting;
}

/* Whether there is no room for one more. waiting: limits.waiting. */
static inline bool origin_is_crowded(const struct origin *o, uint64_t waiting)
{
	return o && (origins_are_crowded(o->all, waiting) || (!o->is_owner && o->crowd >= CROWD_OF_PEER * waiting));
}

/* One more request that waits for the stores, and its end. NULL: the peer is not known. */
static inline void origin_asks(struct origin *o)
{
	if (!o)
		return;
	o->under_way++;
	o->all->under_way++;
}

void origin_asked(struct origin *o);

/* Whether there is no room for one more: 0, or the factor of limits.waiting that is used up, for that peer or for all. */
static inline unsigned origin_asks_enough(const struct origin *o, uint64_t waiting)
{
	if (!o)
		return 0;
	if (o->all->under_way >= CROWD_OF_ALL * waiting)
		return CROWD_OF_ALL;
	return !o->is_owner && o->under_way >= CROWD_OF_PEER * waiting ? CROWD_OF_PEER : 0;
}

/* Adds to the bytes of its orders, or subtracts from them. NULL: the peer is not known. */
static inline void origin_order(struct origin *o, uint64_t bytes)
{
	if (!o)
		return;
	o->orders += bytes;
	o->all->orders += bytes;
}

void origin_order_over(struct origin *o, uint64_t bytes);

/* Whether this many bytes are too many: 0, or the factor of limits.output that they exceed, for that peer or for all. */
static inline unsigned origin_orders_full(const struct origin *o, uint64_t bytes, uint64_t output)
{
	if (!o || output == 0)
		return 0;
	if (o->all->orders + bytes > CROWD_OF_ALL * output)
		return CROWD_OF_ALL;
	return !o->is_owner && o->orders + bytes > CROWD_OF_PEER * output ? CROWD_OF_PEER : 0;
}

/* A number that identifies it; never 0. */
static inline uint64_t origin_id(const struct origin *o)
{
	return o ? o->by_name.hash | 1 : 1;
}

/*
 * A queue in which peers take turns: one item of each peer after the other, and the items of a peer in order of arrival. So a peer with many items delays an
 * item of another peer only by one of its own each turn.
 */

/* Embedded in whatever waits. */
struct turn {
	TAILQ_ENTRY(turn) in_line;
	struct peer_line *line;
};

/* The items that wait for one peer: at least one. */
struct peer_line {
	TAILQ_ENTRY(peer_line) in_turns;
	LIST_ENTRY(peer_line) of_origin;
	struct turns *turns;
	struct origin *origin; /* NULL: the peer is not known */
	TAILQ_HEAD(, turn) waiting;
};

struct turns {
	TAILQ_HEAD(, peer_line) lines; /* the first has its turn next */
	struct peer_line *unknown;     /* the line of unknown peers, one of `lines`; NULL: nobody waits there */
};

void turns_init(struct turns *t);
void turns_release(struct turns *t); /* forgets all items */

void turn_wait(struct turns *t, struct turn *turn, struct origin *o);
void turn_leave(struct turn *turn);
/* It had its turn: the next item of its peer comes after one of each other peer. */
void turn_taken(const struct turn *turn);

static inline bool turns_none(const struct turns *t)
{
	return TAILQ_EMPTY(&t->lines);
}

/* The item whose turn it is; NULL: nobody waits. */
static inline struct turn *turns_first(const struct turns *t)
{
	const struct peer_line *line = TAILQ_FIRST(&t->lines);

	return line ? TAILQ_FIRST(&line->waiting) : NULL;
}

#endif
