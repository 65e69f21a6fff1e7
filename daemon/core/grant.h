/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold begins: a round won, or a holder hands on. */
#ifndef CORE_GRANT_H
#define CORE_GRANT_H

#include "daemon/core/parts.h"

/* The round won with this token: the first waiter has the lease. */
void grant_won(struct engine *e, struct round *r, int64_t fence);
/* The holder is done: the lease goes to the next local waiter without a round; false: it may not. */
bool grant_hand_on(struct engine *e, struct lock *l);
/* Nobody elsewhere could have had it for long: it went from one to the next here, under one lease or several. */
bool grant_is_due_elsewhere(const struct engine *e, const struct lock *l);
/* The round has confirmed what its holder has had since the previous run. */
void grant_adopted(struct engine *e, struct lock *l, const struct round *r);
void grant_count_hold(struct engine *e, const struct claim *c); /* a hold is over: how long it was */

/* A store tells that a daemon elsewhere wants it. May be lost, repeated, late. */
void grant_wanted(struct engine *e, struct span name);

#endif
