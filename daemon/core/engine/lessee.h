/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the structure that a lease is embedded in what becomes of the lease. A renewal, and the outcome of an adoption, reach a lock by this file alone. */
#ifndef CORE_LESSEE_H
#define CORE_LESSEE_H

#include "daemon/core/round/parts.h"

void lessee_notify(struct engine *e, struct lease *x, enum notice_kind kind);
void lessee_renewed(struct engine *e, struct round *r); /* an answer to this renewal was counted */
/* A renewal did not find our value: the code of its answer. */
void lessee_denied(struct engine *e, struct lease *x, char code);
/* This round has confirmed its adoption. */
void lessee_adopted(struct engine *e, struct lease *x, const struct round *r);
/* The lease is lost. */
void lessee_lose(struct engine *e, struct lease *x, enum loss why);
void lessee_evicted(struct engine *e, struct lease *x); /* … since its keys are not ours any more */
void lessee_expire(struct engine *e, struct lease *x); /* its loss is due: see lease_loss_is_due() */
void lessee_belief_over(struct engine *e, struct lease *x); /* LEASE_CLOSING: nobody believes in it any longer */

#endif
