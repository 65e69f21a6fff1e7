/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks over several daemons, and those of this daemon that no request has closed: an owner that has waited for WAITED_US while it holds something is a
 * member of a table, which one store keeps for all daemons. Each daemon exchanges members with it once a second, as long as it has any, and looks for owners
 * that wait for each other. The one that came last is refused, by its own daemon.
 * See ALGORITHMS.md, Deadlocks over several daemons.
 */
#ifndef CORE_WAITTABLE_H
#define CORE_WAITTABLE_H

#include "daemon/core/commander.h"

#define WAITED_US      (4 * SEC) /* a member tells of requests and of holds that are that old … */
#define TABLE_LIFE_US  (3 * SEC) /* … and stays for so long if it is not refreshed: so all members that are read were true together */
#define TABLE_EVERY_US (1 * SEC)
#define TABLE_MAX      65536 /* bytes of all members: a store takes no more, see table.lua */

/* A request of this session waits, or it was granted something: from now on it is looked at, if it waits while it holds something. */
void waittable_note(struct commander *x, struct session *s);
void waittable_fired(struct commander *x);
/* Looks whether this is the answer to an exchange. The engine has tracked it already. */
void waittable_answered(struct commander *x, const struct answer *a);
void waittable_free(struct commander *x);

#endif
