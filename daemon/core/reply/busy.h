/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BUSY and TIMEOUT: what a request is told that did not get the name since somebody has it. They are answered at once, and ask nobody: of a holder elsewhere
 * they tell what the stores have shown, and what a SHOW has learnt lately.
 */
#ifndef CORE_BUSY_H
#define CORE_BUSY_H

#include "daemon/core/session/request_context.h"

/* Somebody has the name; its wait is over, it began then. */
void busy_tell(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner);
void busy_tell_timeout(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner, struct span trace,
		       struct instant asked_at);

#endif
