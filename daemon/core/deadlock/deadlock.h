/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks that wait_graph.h does not find, within this daemon and over several: once an owner has waited for WAITED_US while it holds something, its daemon
 * reports it to all others, by rows of a table at one store, and looks for circles in the rows of all. The owner of a circle that came last is refused, by its
 * own daemon. Where no owner waits for so long, there is no call.
 *
 * Only requests and holds that are WAITED_US old have rows, and a store forgets these after ROWS_LIFE_US: so all that is read together was true together when
 * the oldest of it was written. A circle that has opened since costs a request what a TIMEOUT costs.
 * See ALGORITHMS.md, Deadlocks.
 */
#ifndef CORE_DEADLOCK_H
#define CORE_DEADLOCK_H

#include "daemon/core/session/request_context.h"

#define WAITED_US     (5 * SEC)
#define ROWS_EVERY_US (1 * SEC)
#define ROWS_LIFE_US  (3 * SEC / 2) /* a little more than the time until they are written again */

/* A request of this session waits, or it was granted something: from now on it is looked at, as long as it waits while it holds something. */
void deadlock_note(struct request_context *x, struct session *s);
void deadlock_fired(struct request_context *x);
/* Looks whether this is the answer of the table. The engine has tracked it already. */
void deadlock_answered(struct request_context *x, const struct answer *a);
void deadlock_free(struct request_context *x);

#endif
