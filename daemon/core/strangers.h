/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holders of other daemons: what these have told of them, as cards. A table of the names that somebody asked about last; data. Who asks, and who answers, is in
 * inquire.h. Nothing rests on a card but the words of a line. See ALGORITHMS.md, Holders elsewhere.
 */
#ifndef CORE_STRANGERS_H
#define CORE_STRANGERS_H

#include "daemon/core/card.h"
#include "daemon/core/commander.h"

#define STRANGERS_MOST 128       /* names about which anything is remembered */
#define STRANGER_KEPT  (3 * SEC) /* how long a card is */

/* The holder of one name, as the stores have shown it last. */
struct stranger {
	TAILQ_ENTRY(stranger) in_table; /* the one that was used last is the first */
	uint64_t hash;                  /* of the name */
	char daemon[DAEMON_ID_MAX];     /* whose value stands there … */
	int64_t number;                 /* … and which it is */
	struct instant asked_at, told_at;
	bool open;     /* the question may be answered yet */
	bool silent;   /* the last question to this daemon was not answered: no refusal is held back for the next one */
	unsigned turn; /* how many stores were asked to publish the question that is open … */
	unsigned node; /* … and the last of them */
	struct card card; /* its texts are in `message` */
	char *message;    /* NULL: its daemon has told nothing of this value */
	size_t name_n;
	char name[];
};
TAILQ_HEAD(stranger_table, stranger);
TAILQ_HEAD(words, word); /* inquire.c */

struct strangers {
	struct stranger_table table;
	unsigned count;
	const uint64_t *key;       /* of hashes */
	struct timer timer;        /* this and what follows: of inquire.c */
	struct words words;        /* messages that no store has confirmed yet */
	unsigned words_n;
	struct pendings held, due; /* requests that are held back; and those that are so no longer */
	unsigned held_n;
	struct instant second;     /* the end of the one in which so many questions and answers were sent */
	unsigned questions, answers;
};

struct strangers *strangers_here(struct commander *x); /* made if need be */
/* NULL: nothing is known of it. */
struct stranger *stranger_find(const struct strangers *t, struct span name);
/* The same, made if need be, in the place of the one that was not used for longest. It is the one that was used last from now on. */
struct stranger *stranger_use(struct strangers *t, struct span name);
bool stranger_is(const struct stranger *g, const struct elsewhere *elsewhere);
/* From now on it is this value. What was told of another is forgotten. */
void stranger_become(struct stranger *g, const struct elsewhere *elsewhere);
/* Keeps the card that this message has, if it is about this value. False: it is not, or not sound, or nobody has asked for it. */
bool stranger_keep(struct strangers *t, struct span message, struct instant now, struct stranger **ret_stranger);
void strangers_clear(struct strangers *t);

/* What is known of the holder by now; NULL: nothing, or nothing new. ret_us: for how long it has had the lock. */
const struct card *stranger_card(const struct commander *x, struct span name, const struct elsewhere *elsewhere, int64_t *ret_us);

/* Fields: of SHOW name, peer, pid, uid; and owner, note. Of BUSY and others who. */
void reply_stranger(struct reply *r, const struct card *c);
void reply_stranger_texts(struct reply *r, const struct card *c);
void reply_stranger_who(struct reply *r, const struct card *c);

#endif
