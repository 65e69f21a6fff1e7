/* SPDX-License-Identifier: BSD-2-Clause */
/* Notices become lines: replies to the requests that waited, and pushes. */
#ifndef CORE_DELIVER_H
#define CORE_DELIVER_H

#include "daemon/core/commander.h"

/* Tells all notices, in order, to the sessions that they concern. Delivering makes no notices. */
void deliver_notices(struct commander *x);

/* What a request is told that was refused, but by BUSY or TIMEOUT: see busy.h. */
void deliver_refusal(struct commander *x, struct session *s, struct span tag, enum refusal why);
enum result refusal_result(enum refusal why); /* for the figures */
/* Why a LOCKALL, LOCKANY or ACQUIRE was withdrawn. denied: by new rules. */
enum refusal withdrawn_why(const struct commander *x, bool denied);

#endif
