/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold begins: a round wins the lease, or a holder ends and its lease is handed on. */
#ifndef CORE_GRANT_H
#define CORE_GRANT_H

#include "daemon/core/round/engine_data.h"

/* The round won with this token. The first waiter has the lease, if the round asked on its terms; else what was won is released. */
void grant_won(struct engine *e, struct round *r, int64_t fence);
/* The holder is done. Gives the lease to the next local waiter without a round; false: a hand-over is not allowed. */
bool grant_hand_on(struct engine *e, struct lock *l);
/* The round has confirmed the adoption: the holder of the previous run holds the lock again. */
void grant_adopted(struct engine *e, struct lock *l, const struct round *r);

/* A store says that a daemon elsewhere wants the name. That word may be lost, repeated or late. */
/* Readers have the lock, and by its ticket a writer elsewhere waits since then: those that came later do not join them. */
void grant_barred(struct engine *e, struct lock *l, int64_t writer_us);
void grant_wanted(struct engine *e, struct span name);

#endif
