/* SPDX-License-Identifier: BSD-2-Clause */
/* Holders at other daemons; asks their daemon who they are, and answers the same question of other daemons. */
#ifndef CORE_REMOTE_HOLDERS_H
#define CORE_REMOTE_HOLDERS_H

#include "daemon/core/lock/claim.h"
#include "daemon/core/session/request_context.h"

/*
 * Holders of other daemons: what these have told of them, as cards. A table of the names that somebody asked about last; data.
 * Nothing rests on a card but the words of a line. See ALGORITHMS.md, Holders elsewhere.
 */

#define REMOTE_HOLDERS_MOST 128       /* names about which anything is remembered */
#define CARD_KEPT_US        (3 * SEC) /* how long a card is */

/* The holder of one name, as the stores have shown it last. */
struct remote_holder {
	TAILQ_ENTRY(remote_holder) in_table; /* the one that was used last is the first */
	uint64_t hash;                       /* of the name */
	char daemon[DAEMON_ID_MAX];          /* whose value stands there … */
	int64_t number;                      /* … and which it is */
	struct instant asked_at, told_at;
	bool open;                           /* the question may be answered yet */
	unsigned stores_asked;               /* to publish the question that is open: how many … */
	unsigned node;                       /* … and the last of them */
	struct holder_text card;                    /* its texts are in `message` */
	char *message;                       /* NULL: its daemon has told nothing of this value */
	size_t name_n;
	char name[];
};
TAILQ_HEAD(remote_holder_list, remote_holder);
TAILQ_HEAD(messages, message); /* remote_holders.c */

struct remote_holders {
	struct remote_holder_list table;
	unsigned count;
	const uint64_t *key;       /* of hashes */
	struct timer timer;        /* this and what follows: of remote_holders.c */
	struct messages messages;  /* that no store has confirmed yet */
	unsigned messages_n;
	struct pendings held, due; /* SHOWs that are held back; and those that are so no longer */
	unsigned held_n;
	struct instant second;     /* the end of the one in which so many questions and answers were sent */
	unsigned questions, answers;
};

/* What is known of the holder by now; NULL: nothing, or nothing new. ret_us: for how long it has had the lock. */
const struct holder_text *remote_holder_card(const struct request_context *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us);

/* Fields: of SHOW name, peer, pid, uid; and owner, note. Of BUSY and others who. */
void reply_remote_client(struct reply *r, const struct holder_text *c);
void reply_remote_texts(struct reply *r, const struct holder_text *c);
void reply_remote_who(struct reply *r, const struct holder_text *c);

/*
 * SHOW asks the daemon of a holder elsewhere who that is, by one message that a store publishes; and this daemon answers such questions of others. A SHOW is
 * held back until the answer comes, for a short time at most. A message may be lost: then its row says less. No other request asks or waits.
 */

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
