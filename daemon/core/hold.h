/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold ends: by UNLOCK, with its session, by a loss; and when nobody believes in it any more. */
#ifndef CORE_HOLD_H
#define CORE_HOLD_H

#include "daemon/core/parts.h"

/* The holder counts down to 0 (the caller has done the counting above that): frees the lock. keep_us > 0: the key stays that long. pending: answer
 * it when a quorum has confirmed; else the release is not waited for. The claim is freed. */
void hold_unlock(struct engine *e, struct claim *c, int64_t keep_us, struct pending *p);
/* The session of this claim is no more. It may act on the lock until then: PAST: certainly does not; NEVER: until D at the latest. The claim is
 * freed; no notice. */
void hold_abandon(struct engine *e, struct claim *c, struct instant until);
/* The holder is to be told that it lost the lock, for a reason of the outer layers. */
void hold_lose(struct engine *e, struct lock *l, enum loss why);
/* What was lost in the previous run is remembered. The claim names its session and owner. */
void hold_recall_loss(struct engine *e, struct claim *c, struct span name, enum loss why);
/* The holder of a held lock may believe until then, if it is told nothing more and nothing is renewed. */
struct instant hold_belief(const struct engine *e, const struct lock *l);
/* A loss was acknowledged: forgets and frees the claim. */
void hold_forget(struct engine *e, struct claim *c);
/* A renewal found another value in the place of ours, whose vote still counts. */
void hold_contested(struct engine *e, struct lock *l);
/* Nobody has asked for what was granted: it goes to the next. */
void hold_lapse(struct engine *e, struct claim *c);
/* LEASE_CLOSING: nobody believes in the lease any longer. */
void hold_belief_over(struct engine *e, struct lock *l);

#endif
