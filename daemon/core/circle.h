/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks among the sessions of this daemon in which some wait for permits: deadlock.c follows requests that need all that they wait for, but an ACQUIRE goes
 * on when enough of those that have permits do. Whatever is held at another daemon counts as free.
 * See ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_CIRCLE_H
#define CORE_CIRCLE_H

#include "daemon/core/deadlock.h"
#include "daemon/core/waitentry.h"

#define ASKED_NOW UINT32_MAX /* number of the request that is being made, in its rows */

/*
 * Would a wait of (session, owner) for what these rows tell close a cycle? Then the names along it are in cycle, CYCLE_MAX bytes: "a<-s<-a". It costs nothing
 * where there is no semaphore.
 */
bool circle_closes(struct commander *x, struct session *s, struct span owner, const struct entry_row *row, unsigned rows, char *cycle,
                   struct span *ret_cycle);

#endif
