/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that a session of the previous run held are taken over. */
#ifndef CORE_ADOPT_H
#define CORE_ADOPT_H

#include "daemon/core/adoption.h"
#include "daemon/core/parts.h"

/* A claim that the previous run granted, of (c->session, owner, ttl, delay, renew, fence), holds the lock until its adoption is decided:
 * NOTICE_ADOPTED or NOTICE_LOST. The name has no holder. */
void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from);
void adopt_start(struct engine *e, struct lock *l); /* as soon as there is a quorum */
/* Neither expected nor lost any more, and nothing is sent. The claim is freed. */
void adopt_drop(struct engine *e, struct claim *c);
void adopt_fired(struct engine *e, struct lock *l);
void adopt_go_on(struct engine *e, struct lock *l); /* it is admitted */
void adopt_decide(struct engine *e, struct round *r); /* an answer was noted */
void adopt_expired(struct engine *e, struct round *r);

#endif
