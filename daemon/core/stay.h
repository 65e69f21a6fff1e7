/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a reader asks of the lease for itself, though all readers of a daemon have one lease. One that the watchdog does not keep has an end of its own: the
 * lease is renewed until its votes last as long, and no further for its sake. A lock-delay is a part of the TTL of the keys. A reader that asks for more than
 * the lease has waits for a renewal. See ALGORITHMS.md, Shared locks.
 */
#ifndef CORE_STAY_H
#define CORE_STAY_H

#include "daemon/core/parts.h"

/* The claim is a holder from now on, with an end of its own: its ttl counts from now. */
void stay_begin(struct engine *e, struct claim *c);
/* … but it ends no later than that. */
void stay_cap(struct engine *e, struct claim *c, struct instant until);
/* When the next of those with an end of their own is to be told that it is over; NEVER: none is. */
struct instant stay_tell_at(const struct claim *c);
/* Whoever holds the lock has changed, or how long: the watchdog renews the lease for those who hold it, as long as its votes end before they do. */
void stay_keep(struct engine *e, struct lock *l);
/* A reader has gone, and others stay: keys need to allow for their lock-delays only. */
void stay_parted(struct engine *e, struct lock *l);
/* The lease has too little time or lock-delay for this reader to join. */
bool stay_lacks(const struct engine *e, const struct lock *l, const struct claim *c);
/* The first waiter is such a reader: the lease is renewed on its terms, now. It waits for that, and so do the readers right behind it. */
void stay_ask(struct engine *e, struct lock *l);
/* This reader waits for such a renewal, or behind one that does. If it asked without wait=, that is for a second at most. */
void stay_await(struct engine *e, struct claim *c);
/* Somebody stands before those who were about to join, here or elsewhere: those that do not wait are refused. */
void stay_turn_away(struct engine *e, struct lock *l);
/* Who was about to join holds the lock, or has left the line: what it asked of the lease counts no more if it has left. */
void stay_settle(const struct engine *e, struct lock *l);
/* It waits for that, and for no other owner. */
bool stay_is_joining(const struct claim *c);
/* So many stores as a quorum have answered this renewal. */
void stay_renewed(struct engine *e, struct lock *l, const struct round *r);

#endif
