/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a lease, told to what it is embedded in. Renewals and adoptions reach a lock by this file alone. */
#ifndef CORE_LESSEE_H
#define CORE_LESSEE_H

#include "daemon/core/parts.h"

void lessee_notify(struct engine *e, struct lease *x, enum notice_kind kind);
/* A renewal found another value in the place of ours, whose vote still counts. */
void lessee_contested(struct engine *e, struct lease *x);
/* Its adoption was confirmed by this round. */
void lessee_adopted(struct engine *e, struct lease *x, const struct round *r);
/* It is not theirs any more. */
void lessee_lose(struct engine *e, struct lease *x, enum loss why);
void lessee_expire(struct engine *e, struct lease *x); /* it is as good as over */
void lessee_belief_over(struct engine *e, struct lease *x); /* LEASE_CLOSING: nobody believes in it any longer */

#endif
