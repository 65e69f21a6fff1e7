/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes over the locks that sessions of the previous run held. */
#ifndef CORE_ADOPT_H
#define CORE_ADOPT_H

#include "daemon/core/engine/adopted_lease.h"
#include "daemon/core/round/engine_data.h"

/* A claim that the previous run granted, of (c->session, owner, ttl, delay, renew, fence), holds the lock until its adoption is decided:
 * NOTICE_ADOPTED or NOTICE_LOST. The name has no holder. */
void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from);
/* All records are read, and the id of the daemon is known: asks as soon as there is a quorum. A value of another daemon is not asked for: it is lost. */
void adopt_start(struct engine *e, struct lease *x);
/* Forgets what was expected, or the loss, of this claim. Sends nothing; frees the claim. */
void adopt_drop(struct engine *e, struct claim *c);
/* What the adoption's timer, or an answer that is counted already, comes to. The caller acts on a decision. */
enum adopt_outcome {
	ADOPT_GOES_ON,
	ADOPT_WON,    /* a quorum vouches for it: grant_adopted() */
	ADOPT_DENIED, /* too many stores have no key of it */
	ADOPT_OVER,   /* its time is over */
};
enum adopt_outcome adopt_fired(struct engine *e, struct lease *x);
enum adopt_outcome adopt_decide(struct engine *e, struct round *r);
void adopt_go_on(struct engine *e, struct lease *x); /* it is admitted */
void adopt_expired(struct engine *e, struct round *r);

#endif
