/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits for one thing, when peers take turns: one of each peer goes after the other, and those of a peer in the order in which they came. So a peer for
 * which much waits delays what waits for another by one of its own each.
 */
#ifndef CORE_TURNS_H
#define CORE_TURNS_H

#include "daemon/core/event/origin.h"

#include <stdbool.h>
#include <sys/queue.h>

/* In whatever waits. */
struct turn {
	TAILQ_ENTRY(turn) in_line;
	struct peer_line *line;
};

/* Those that wait for one peer: one at least. */
struct peer_line {
	TAILQ_ENTRY(peer_line) in_turns;
	LIST_ENTRY(peer_line) of_origin;
	struct turns *turns;
	struct origin *origin; /* NULL: the peer is not known */
	TAILQ_HEAD(, turn) waiting;
};

struct turns {
	TAILQ_HEAD(, peer_line) lines; /* the first has its turn next */
	struct peer_line *unknown;     /* of these, that of peers that are not known; NULL: nobody waits there */
};

void turns_init(struct turns *t);
void turns_release(struct turns *t); /* and forgets who waits */

void turn_wait(struct turns *t, struct turn *turn, struct origin *o);
void turn_leave(struct turn *turn);
/* It has its turn: what its peer has besides comes after a turn of each other. */
void turn_taken(const struct turn *turn);

static inline bool turns_none(const struct turns *t)
{
	return TAILQ_EMPTY(&t->lines);
}

/* Whose turn it is; NULL: nobody waits. */
static inline struct turn *turns_first(const struct turns *t)
{
	const struct peer_line *line = TAILQ_FIRST(&t->lines);

	return line ? TAILQ_FIRST(&line->waiting) : NULL;
}

#endif
