/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks that wait_graph.h does not find, within this daemon and across several. When an owner has waited for WAITED_US while it holds something, its
 * daemon reports it to the other daemons, by rows of a table at one store. Each daemon looks for circles in the rows of all. In a circle, the owner that
 * came last is refused by its own daemon. Where no owner waits for that long, there is no call.
 *
 * Only requests and holds that are WAITED_US old have rows, and a store forgets rows after ROWS_LIFE_US. So all rows that are read together were true
 * together when the oldest was written. If a circle has opened since, one request is refused as if it had timed out.
 * See ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_DEADLOCK_H
#define CORE_DEADLOCK_H

#include "daemon/core/session/request_context.h"

#define WAITED_US     (5 * SEC)
#define ROWS_EVERY_US (1 * SEC)
#define ROWS_LIFE_US  (3 * SEC / 2) /* a little more than the interval at which they are written again */

/* A request of this session waits, or was granted. From now on the session is checked, as long as it waits while it holds something. */
void deadlock_note(struct request_context *x, struct session *s);
void deadlock_fired(struct request_context *x);
/* Checks whether this is the answer of the table. The engine has tracked it already. */
void deadlock_answered(struct request_context *x, const struct answer *a);
void deadlock_free(struct request_context *x);

#endif
