/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks among the sessions of several daemons, by a table at the stores of who waits for what while it holds something. A daemon with an owner that has
 * waited like this for long exchanges members with each store: it leaves those of its own owners, and reads those of the others. Each table is judged by
 * itself. Without such owners there is no table, no call and no timer.
 *
 * Two members may be read together that never were true together. So each exchange has a number at its store, which grows, and a member tells between which
 * two of them its owner has waited like this all the time. Only members that have some moment in common are believed.
 * See ALGORITHMS.md, Deadlocks over several daemons.
 */
#ifndef CORE_WAITTABLE_H
#define CORE_WAITTABLE_H

#include "daemon/core/commander.h"

#define TABLE_EVERY_US (2 * SEC) /* how often members are exchanged */
#define TABLE_AGAIN_US (500 * MSEC) /* the same while it seems that some wait for each other */
#define TABLE_LIFE_US  (5 * SEC) /* how long a member stays that is not refreshed */

/* A request of this session waits, or a lock was granted to it while others wait. */
void waittable_note(struct commander *x);
void waittable_fired(struct commander *x);
/* Looks whether this is the answer to an exchange. The engine has tracked it already. */
void waittable_answered(struct commander *x, const struct answer *a);
void waittable_free(struct commander *x);
/* Forgets what the last exchange was judged by: it borrowed from an answer. The next one makes it anew. */
void waittable_pack(struct commander *x);

#endif
