/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHOW asks the daemon of a holder elsewhere who that is, by one message that a store publishes; and this daemon answers such questions of others. A SHOW is
 * held back until the answer comes, for a short time at most. A message may be lost: then its row says less. No other request asks or waits.
 */
#ifndef CORE_ASK_DAEMON_H
#define CORE_ASK_DAEMON_H

#include "daemon/core/reply/remote_holders.h"

#define ASK_AGAIN_US   SEC          /* the same question comes no sooner */
#define QUESTIONS_MOST 128          /* in a second … */
#define ANSWERS_MOST   256          /* … and answers, of this daemon */
#define MESSAGES_MOST  64           /* that no store has confirmed yet */
#define HELD_BACK_MOST 1024         /* SHOWs that are held back … */
#define HELD_BACK_US   (250 * MSEC) /* … each so long, and no longer than a call may take */

/* Asks about p->elsewhere, if it is time to. True: a copy of the pending is held back; it is among those of its session. False: no more will be known. */
bool ask_daemon(struct request_context *x, const struct pending *p);

/* Messages of other daemons: EVENT_QUESTION, EVENT_CARD. */
void ask_daemon_question(struct request_context *x, unsigned node, struct span message);
void ask_daemon_card(struct request_context *x, struct span message);
/* Looks whether this is the answer to a call that published a message. The engine has tracked it already. */
void ask_daemon_answered(struct request_context *x, const struct answer *a);
void ask_daemon_fired(struct request_context *x);
/* The next SHOW that is held back no longer; NULL: none. The caller answers it, and frees it. */
struct pending *ask_daemon_next_due(struct request_context *x);
void ask_daemon_free_pending(struct request_context *x, struct pending *p);
void ask_daemon_free(struct request_context *x);

#endif
