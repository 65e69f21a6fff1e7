/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks among the sessions of this daemon. The unit is (session, owner). A waiting request waits for those that hold what it needs. If none of them can
 * go on before the asking owner does, that owner is refused at once. Whatever is held at another daemon counts as free: see waittable.h for the rest.
 *
 * A search looks at so much at most, and all searches together at so much in a second. Beyond that nobody is refused at once.
 * See ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_DEADLOCK_H
#define CORE_DEADLOCK_H

#include "daemon/core/commander.h"
#include "daemon/core/waitgraph.h"

#define CYCLE_MAX 2000 /* quoted at its worst it still fits into a reply */

/*
 * Would (session, owner) close a cycle if it waited for these names, which are those of one request? Then the names along the cycle are in room, CYCLE_MAX
 * bytes: "a<-b<-a".
 */
bool deadlock_closes(struct commander *x, struct session *s, struct span owner, const struct graph_want *want, unsigned wants, char *room,
                     struct span *ret_cycle);

#endif
