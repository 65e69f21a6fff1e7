/* SPDX-License-Identifier: BSD-2-Clause */
/* Holders at other daemons: asks their daemon who they are, and answers the same question from other daemons. */
#ifndef CORE_REMOTE_HOLDERS_H
#define CORE_REMOTE_HOLDERS_H

#include "daemon/core/lock/claim.h"
#include "daemon/core/session/request_context.h"

/*
 * What other daemons have reported about their holders, as cards. This is a table of the names that somebody asked about last. Cards only add words to a line;
 * no decision depends on them. See ALGORITHMS.md, Holders elsewhere.
 */

#define REMOTE_HOLDERS_MOST 128       /* so many names are remembered */
#define CARD_KEPT_US        (3 * SEC) /* how long a card stays valid */

/* The holder of one name, as the stores showed it last. */
struct remote_holder {
	TAILQ_ENTRY(remote_holder) in_table; /* the most recently used one is the first */
	uint64_t hash;                       /* of the name */
	char daemon[DAEMON_ID_MAX];          /* the daemon of the value at the stores … */
	int64_t number;                      /* … and the number of that value */
	struct instant asked_at, answer_at;
	bool open;                           /* the question is not answered yet */
	unsigned stores_asked;               /* how many stores were asked to publish the open question … */
	unsigned node;                       /* … and the last of them */
	struct holder_text card;                    /* its texts are in `message` */
	char *message;                       /* NULL: its daemon has reported nothing about this value */
	size_t name_n;
	char name[];
};
TAILQ_HEAD(remote_holder_list, remote_holder);
TAILQ_HEAD(messages, message); /* remote_holders.c */

struct remote_holders {
	struct remote_holder_list table;
	unsigned count;
	const uint64_t *key;       /* for the hashes */
	struct timer timer;        /* from here on only remote_holders.c uses it */
	struct messages messages;  /* that no store has confirmed yet */
	unsigned messages_n;
	struct pendings held, due; /* SHOWs that are held back; and those that can be answered now */
	unsigned held_n;
	struct instant second;     /* the end of the second in which so many questions and answers were sent */
	unsigned questions, answers;
};

/* Returns what is known about the holder now; NULL: nothing, or nothing new. ret_us: for how long it has had the lock. */
const struct holder_text *remote_holder_card(const struct request_context *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us);

/* Fields for SHOW: name, peer, pid, uid; then owner and note. For BUSY and others: who. */
void reply_remote_client(struct reply *r, const struct holder_text *c);
void reply_remote_texts(struct reply *r, const struct holder_text *c);
void reply_remote_who(struct reply *r, const struct holder_text *c);

/*
 * SHOW asks the daemon of a holder elsewhere who that is, by a message that a store publishes. This daemon answers such questions of others. A SHOW is held
 * back for a short time until the answer comes. If a message is lost, the row shows less. No other request asks or waits.
 */

#define ASK_AGAIN_US   SEC          /* the same question is not asked sooner */
#define QUESTIONS_MOST 128          /* questions in a second … */
#define ANSWERS_MOST   256          /* … and answers, of this daemon */
#define MESSAGES_MOST  64           /* that no store has confirmed yet */
#define HELD_BACK_MOST 1024         /* SHOWs that are held back … */
#define HELD_BACK_US   (250 * MSEC) /* … each for this long, but never longer than a call may take */

/*
 * Asks about p->elsewhere, unless that was done recently. True: a copy of the pending is held back, in the list of its session. False: nothing more will be
 * known.
 */
bool ask_daemon(struct request_context *x, const struct pending *p);

/* A message of another daemon has come: EVENT_QUESTION, EVENT_CARD. */
void ask_daemon_question(struct request_context *x, unsigned node, struct span message);
void ask_daemon_card(struct request_context *x, struct span message);
/* Checks whether this answers a call that published a message. The engine has processed the answer already. */
void ask_daemon_answered(struct request_context *x, const struct answer *a);
void ask_daemon_fired(struct request_context *x);
/* Returns the next SHOW that is no longer held back; NULL: none. The caller answers and frees it. */
struct pending *ask_daemon_next_due(struct request_context *x);
void ask_daemon_free_pending(struct request_context *x, struct pending *p);
void ask_daemon_free(struct request_context *x);

#endif
