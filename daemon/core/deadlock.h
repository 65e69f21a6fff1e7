/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks among the sessions of this daemon. The unit is (session, owner). A waiting request waits for the lock's holder and for all that stand
 * in the queue before it. If one of these waits, directly or through others, for the asking owner, none of them would ever go on. Those that the request
 * overtakes, because of its priority, wait for the asking owner as well.
 * See ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_DEADLOCK_H
#define CORE_DEADLOCK_H

#include "daemon/core/commander.h"

#define CYCLE_MAX 2000 /* quoted at its worst it still fits into a reply */

/* Would a wait of (session, owner) for this lock, with that priority, close a cycle? Then the names along it are in cycle, CYCLE_MAX bytes: "a<-b<-a". */
bool deadlock_closes(struct commander *x, const struct session *s, struct span owner, unsigned priority, struct lock *l, char *cycle,
                     struct span *ret_cycle);

#endif
