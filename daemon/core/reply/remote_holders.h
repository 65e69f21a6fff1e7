/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holders of other daemons: what these have told of them, as cards. A table of the names that somebody asked about last; data. Who asks, and who answers, is in
 * ask_daemon.h. Nothing rests on a card but the words of a line. See ALGORITHMS.md, Holders elsewhere.
 */
#ifndef CORE_REMOTE_HOLDERS_H
#define CORE_REMOTE_HOLDERS_H

#include "daemon/core/lock/holder_text.h"
#include "daemon/core/session/request_context.h"

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
TAILQ_HEAD(messages, message); /* ask_daemon.c */

struct remote_holders {
	struct remote_holder_list table;
	unsigned count;
	const uint64_t *key;       /* of hashes */
	struct timer timer;        /* this and what follows: of ask_daemon.c */
	struct messages messages;  /* that no store has confirmed yet */
	unsigned messages_n;
	struct pendings held, due; /* SHOWs that are held back; and those that are so no longer */
	unsigned held_n;
	struct instant second;     /* the end of the one in which so many questions and answers were sent */
	unsigned questions, answers;
};

struct remote_holders *remote_holders_here(struct request_context *x); /* made if need be */
/* NULL: nothing is known of it. */
struct remote_holder *remote_holder_find(const struct remote_holders *t, struct span name);
/* The same, made if need be, in the place of the one that was not used for longest. It is the one that was used last from now on. */
struct remote_holder *remote_holder_use(struct remote_holders *t, struct span name);
bool remote_holder_is(const struct remote_holder *h, const struct elsewhere *elsewhere);
/* From now on it is this value. What was told of another is forgotten. */
void remote_holder_become(struct remote_holder *h, const struct elsewhere *elsewhere);
/* Keeps the card that this message has, if it is about this value. False: it is not, or not sound, or nobody has asked for it. */
bool remote_holder_keep_card(struct remote_holders *t, struct span message, struct instant now, struct remote_holder **ret_holder);
void remote_holders_clear(struct remote_holders *t);

/* What is known of the holder by now; NULL: nothing, or nothing new. ret_us: for how long it has had the lock. */
const struct holder_text *remote_holder_card(const struct request_context *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us);

/* Fields: of SHOW name, peer, pid, uid; and owner, note. Of BUSY and others who. */
void reply_remote_client(struct reply *r, const struct holder_text *c);
void reply_remote_texts(struct reply *r, const struct holder_text *c);
void reply_remote_who(struct reply *r, const struct holder_text *c);

#endif
