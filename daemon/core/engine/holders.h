/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has a lease: waiters become its holders. Asks no store. See ALGORITHMS.md, Hand-over; Shared locks. */
#ifndef CORE_HOLDERS_H
#define CORE_HOLDERS_H

#include "daemon/core/round/engine_data.h"

/* The waiter holds the lock, with the last token of its lease that was given out. Other waiting LOCKs of its owner are granted with it.
 * Returns how many are answered. */
unsigned holders_add(struct engine *e, struct claim *c);
/* The other waiting LOCKs of this holder's owner, in its mode, are granted as reentrant. */
void holders_fold(struct engine *e, struct claim *holder);
/*
 * Readers hold the lock: those at the head of the line hold it with them, as long as that is allowed. A crowd is let in by and by, so that nothing else waits
 * for it. False: the rest is let in by the next step.
 */
bool holders_let_in(struct engine *e, struct lock *l);
/* The same, and then those who do not wait are refused, by and by as well: somebody has the name. */
void holders_answer(struct engine *e, struct lock *l);
/* A reader that asks now with this priority may join those that hold the lock: nobody who waits stands before it. */
bool holders_are_open(const struct engine *e, const struct lock *l, unsigned priority);
/* It joins them at once. False: not now. */
bool holders_join_at_once(struct engine *e, struct claim *c);
/* Enough of the lease is left for another holder, and no other daemon has waited for it too long. */
bool holders_may_follow(const struct engine *e, const struct lock *l);
/* Readers hold the lock, and no daemon has said for a while that it waits for it: whoever did has given up. */
bool holders_want_is_over(const struct engine *e, const struct lock *l);
/* Whether the name has gone from holder to holder here, under one lease or several, for so long that clients elsewhere must get a chance. */
bool holders_are_many(const struct engine *e, const struct lock *l);
/* One more holder has the lease, without a round. */
void holders_count_handoff(struct engine *e, struct lock *l);
void holders_count_hold(struct engine *e, const struct claim *c); /* a hold is over: how long it was */

#endif
