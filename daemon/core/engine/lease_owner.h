/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the structure that a lease is embedded in what becomes of the lease. A renewal, and the outcome of an adoption, reach a lock by this file alone. */
#ifndef CORE_LEASE_OWNER_H
#define CORE_LEASE_OWNER_H

#include "daemon/core/round/engine_data.h"

void lease_owner_notify(struct engine *e, struct lease *x, enum notice_kind kind);
void lease_owner_renewed(struct engine *e, struct round *r); /* an answer to this renewal was counted */
/* A renewal did not find our value: the code of its answer. */
void lease_owner_denied(struct engine *e, struct lease *x, char code);
/* This round has confirmed its adoption. */
void lease_owner_adopted(struct engine *e, struct lease *x, const struct round *r);
/* The lease is lost. */
void lease_owner_lose(struct engine *e, struct lease *x, enum loss why);
void lease_owner_evicted(struct engine *e, struct lease *x); /* … since its keys are not ours any more */
void lease_owner_expire(struct engine *e, struct lease *x); /* its loss is due: see lease_loss_is_due() */
void lease_owner_belief_over(struct engine *e, struct lease *x); /* LEASE_CLOSING: nobody relies on it any longer */

#endif
