/* SPDX-License-Identifier: BSD-2-Clause */
/* The request SHOW; BUSY and TIMEOUT: who has the name, if that is known. */
#ifndef CORE_SHOW_H
#define CORE_SHOW_H

#include "daemon/core/session/request_context.h"

/*
 * SHOW: who has a name, and who waits for it. The daemon asks the stores for what it does not know, and the daemon of a holder elsewhere who that is: see
 * remote_holders.h.
 */

void serve_SHOW(struct request_context *x, struct session *s);
/* Answers a SHOW that asked the stores: by what the daemon knows, and by what they said. False: it is held back until that of the holder has told. */
bool show_answer(struct request_context *x, struct session *s, const struct pending *p);

/* Events, and a timer, by which some are held back no longer: these are answered. */
void show_card(struct request_context *x, struct span message);
void show_answered(struct request_context *x, const struct answer *a);
void show_fired(struct request_context *x);

/*
 * BUSY and TIMEOUT: what a request is told that did not get the name since somebody has it. They are answered at once, and ask nobody: of a holder elsewhere
 * they tell what the stores have shown, and what a SHOW has learnt lately.
 */

/* Somebody has the name; its wait is over, it began then. */
void busy_tell(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner);
void busy_tell_timeout(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner, struct span trace,
		       struct instant asked_at);

#endif
