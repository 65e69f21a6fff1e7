/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the holders of a lock what becomes of its lease. */
#ifndef CORE_LEASE_OWNER_H
#define CORE_LEASE_OWNER_H

#include "daemon/core/round/engine_data.h"

void lease_owner_notify(struct engine *e, struct lease *x, enum notice_kind kind);
/* A renewal did not find our value: the code of its answer. */
void lease_owner_denied(struct engine *e, struct lease *x, char code);
void lease_owner_evicted(struct engine *e, struct lease *x); /* it is lost, as its keys are not ours any more */
void lease_owner_expire(struct engine *e, struct lease *x);  /* its loss is due: see lease_loss_is_due() */

#endif
