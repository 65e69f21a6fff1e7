/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold ends: by UNLOCK, with its session, by a loss; and when nobody relies on it any more. */
#ifndef CORE_HOLD_H
#define CORE_HOLD_H

#include "daemon/core/round/engine_data.h"

/* The holder's last UNLOCK (the caller has counted down to it): gives the lock up, and frees the claim. keep_us > 0: the key stays that long.
 * p: answered when a quorum has confirmed the release; NULL: nobody waits for that. */
void hold_unlock(struct engine *e, struct claim *c, int64_t keep_us, struct pending *p);
/* The session of this claim, whatever its state, has ended. until: how long its client may act on the lock, at most; PAST: it certainly does not any more;
 * NEVER: as long as it may believe. Frees the claim, without a notice. */
void hold_abandon(struct engine *e, struct claim *c, struct instant until);
/* The holders have lost the lock, and are told so and why. It is left alone for as long as they may believe. */
void hold_lose(struct engine *e, struct lock *l, enum loss why);
/* The same for this holder alone; other readers keep the lock. */
void hold_lose_one(struct engine *e, struct claim *c, enum loss why);
/* Remembers a loss of the previous run. The claim has its session and owner already. */
void hold_recall_loss(struct engine *e, struct claim *c, struct span name, enum loss why);
/* An UNLOCK was answered LOST: the holder has acknowledged the loss, and relies on the lease no longer. Forgets and frees the claim.
 * of_session: the claims of its session, from which it may have been removed. */
void hold_acknowledge(struct engine *e, struct claim *c, const struct claims *of_session);
/* The same for a session that may repeat the UNLOCK: the loss is remembered until then, and answers it again. */
void hold_acknowledge_until(struct engine *e, struct claim *c, const struct claims *of_session, struct instant until);
/* That time is over. */
void hold_forget_late(struct engine *e, struct claim *c);
/* LEASE_CLOSING: this owner asks for the name again. If the loss is its own, it may not have heard of that. */
void hold_ask_again(const struct lock *l, const struct session *session, struct span owner);
/* Forgets a loss, and frees the claim. */
void hold_forget(struct engine *e, struct claim *c);
/* A renewal found another value in our place. */
void hold_contested(struct engine *e, struct lock *l);
/* A store says that somebody has broken the lock. */
void hold_broken(struct engine *e, struct lock *l);
/* Nobody has asked in time for what was granted: the lock goes to the next waiter. */
void hold_lapse(struct engine *e, struct claim *c);
/* LEASE_CLOSING: nobody relies on the lease any longer. */
void hold_belief_over(struct engine *e, struct lock *l);

#endif
