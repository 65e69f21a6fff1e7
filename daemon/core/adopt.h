/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that a session of the previous run held are taken over. */
#ifndef CORE_ADOPT_H
#define CORE_ADOPT_H

#include "daemon/core/adoption.h"
#include "daemon/core/parts.h"

/* A claim that the previous run granted, of (c->session, owner, ttl, delay, renew, fence), holds the lock until its adoption is decided:
 * NOTICE_ADOPTED or NOTICE_LOST. The name has no holder. */
void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from);
void adopt_start(struct engine *e, struct lease *x); /* as soon as there is a quorum */
/* Neither expected nor lost any more, and nothing is sent. The claim is freed. */
void adopt_drop(struct engine *e, struct claim *c);
/* What its timer, or an answer that was noted, comes to. Where it is decided, nothing is moved yet. */
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
