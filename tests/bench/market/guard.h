/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an actor keeps others out from what it reads until its change is done. Each actor has a guard of its own.
 *
 *   watch      WATCH of what is read; EXEC fails when that has changed
 *   redlockd   a lock of redlockd, by libredlock: one session for each actor, which waits in the queue
 *   direct     a lock by SET NX PX in the same Redis, on the connection of the data: tried again after a pause, released by a script that compares and deletes
 *   none       nothing: the sums must come out wrong
 *
 * A release is sent and not waited for: the actor goes on, and reads the answer before it takes the next lock.
 */
#ifndef MARKET_GUARD_H
#define MARKET_GUARD_H

#include "client/lib/redlock.h"
#include "tests/bench/market/shop.h"

#define GUARD_LEASE_MS 10000

struct guard_kind;

struct guard {
	const struct guard_kind *kind;
	struct shop *shop;
	unsigned seed;
	char name[ITEM_SIZE + 16]; /* of the lock that is held */
	int64_t until_us;          /* up to when the actor may rely on it */
	struct redlock *session;
	bool releasing; /* the answer to UNLOCK is not read yet */
	char sha[41], token[64];
	uint64_t tokens;
};

/* False: there is no way of that name. address: of redlockd. */
bool guard_open(struct guard *g, const char *way, struct shop *s, const char *address);
void guard_close(struct guard *g);
/* name: of the lock; key: what is read and must not change. */
void guard_take(struct guard *g, const char *name, const char *key);
/* Whether there is time enough to make a change under the lock. To be asked right before it. */
bool guard_holds(const struct guard *g);
/* changed: the change was tried, so that nothing is watched any more. */
void guard_give(struct guard *g, bool changed);

#endif
