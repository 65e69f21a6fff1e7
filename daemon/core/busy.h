/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BUSY and TIMEOUT: what a request is told that did not get the name since somebody has it. If another daemon has it, that is asked who it is, and BUSY may be
 * held back until it has answered, as a SHOW may be: see inquire.h.
 */
#ifndef CORE_BUSY_H
#define CORE_BUSY_H

#include "daemon/core/commander.h"

/* Somebody has the name; its wait is over, it began then. Of a holder elsewhere they tell what is known by now. */
void busy_tell(struct commander *x, struct session *s, struct span tag, const struct lock *l, struct span owner);
void busy_tell_timeout(struct commander *x, struct session *s, struct span tag, const struct lock *l, struct span owner, struct instant asked_at);
/* BUSY, to the LOCK of this claim. False: it is told later, and its session is not answered before that. */
bool busy_refuse(struct commander *x, const struct claim *c);

/* Events, and a timer, by which some are held back no longer: these are told. */
void busy_told(struct commander *x, struct span message);
void busy_answered(struct commander *x, const struct answer *a);
void busy_fired(struct commander *x);

#endif
