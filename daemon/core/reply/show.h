/* SPDX-License-Identifier: BSD-2-Clause */
/* The request SHOW; BUSY and TIMEOUT: who has the name, if that is known. */
#ifndef CORE_SHOW_H
#define CORE_SHOW_H

#include "daemon/core/reply/send.h"

/*
 * SHOW: who has a name, and who waits for it. The daemon asks the stores for what it does not know. It asks the daemon of a holder elsewhere who that is: see
 * remote_holders.h.
 */

void serve_SHOW(struct request_context *x, struct session *s);
/* Answers a SHOW whose question the stores have answered. False: it is held back until the daemon of the holder has answered. */
bool show_answer(struct request_context *x, struct session *s, const struct pending *p);

/* Events, and a timer, after which some SHOWs are no longer held back. Answers these. */
void show_card(struct request_context *x, struct span message);
void show_answered(struct request_context *x, const struct answer *a);
void show_fired(struct request_context *x);

/*
 * BUSY and TIMEOUT: the answer to a request that did not get the name because somebody has it. It is sent at once, without a question: about a holder elsewhere
 * it has what the stores have shown, and what a recent SHOW has found out.
 */

/* Who has it, for how long, and the remark. */
void reply_who_holds(const struct request_context *x, struct reply *r, struct report of);
/* Somebody has the name, and the wait is over that began then. */
void busy_send(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner);
void busy_send_timeout(struct request_context *x, struct session *s, struct span tag, const struct lock *l, struct span owner, struct span trace,
		       struct instant asked_at);

#endif
