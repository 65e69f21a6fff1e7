/* SPDX-License-Identifier: BSD-2-Clause */
/* Which store is the home of a rate limit or of a queue, and a question to it. */
#ifndef CORE_HOME_H
#define CORE_HOME_H

#include "daemon/base/buf.h"
#include "daemon/core/event/core.h"
#include "daemon/core/round/engine_data.h"

/*
 * Which store is the home of a rate limit, or of a queue: the one with the largest weight for its name. Weights go by what the configuration calls the stores,
 * so all daemons must call them alike. Highest random weight (Thaler, Ravishankar 1998): when the set of stores changes, only the names of the
 * stores that went or came move. Pure. See ALGORITHMS.md, Home.
 */

/* What a question to a home is about. Limits and queues have name spaces of their own. NONE: what the store is called; such a question stays in home.c. */
enum home_of { HOME_OF_RATE, HOME_OF_QUEUE, HOME_OF_NONE };

/* The store that comes at this place for the name: 0 is its home, and when that is gone 1 is the next. */
unsigned rendezvous_node(const struct core *core, enum home_of of, struct span name, unsigned place);

/*
 * The home of a rate limit, or of a queue: the one store that keeps it, the same for all daemons; and the questions that are asked there. A question is one
 * call of lua/home.lua, about one name. How it ended is found in `told` before the step is over: an answer, certainly not carried out, or not known.
 *
 * All daemons must call the stores alike, or their homes differ. Each store keeps its name: the first daemon gives it. Before its first
 * question a daemon asks all stores in reach for their names. If one goes by another name, the daemon asks none of them anything about limits and queues.
 * Locks need no names.
 * See ALGORITHMS.md, Home.
 */

enum home_outcome {
	HOME_OPEN,     /* not known yet */
	HOME_ANSWERED, /* by this code and text */
	HOME_REFUSED,  /* it was not carried out, and never will be: the text says why, for people */
	HOME_UNKNOWN,  /* it may have been carried out, or may be yet: likewise */
};

struct home_question {
	TAILQ_ENTRY(home_question) in_list; /* of engine.homes: sent, or told */
	struct turn turn;        /* likewise: waiting */
	struct origin *origin;   /* whose client it is for; NULL: it is not known */
	struct name name;
	struct calls calls;
	struct timer timer;      /* waiting: when it is given up; sent: when the store has had its time */
	struct instant until;    /* it is not sent after that */
	enum home_of of;
	unsigned place, node;    /* see rendezvous_node */
	bool joined;             /* only a store that has joined may answer; else also one in quarantine: it remembers what it was told since */
	const char *marker;      /* with which it was sent last … */
	const char *denied;      /* … and which the store does not have: it is asked again once another is known. NULL: none */
	bool urgent;             /* a lease depends on it: it waits behind nothing else */
	bool left;               /* delivered: it lives only until its call is answered */
	struct buf words;        /* the operation and its arguments: see netstring.h */
	enum home_outcome outcome;
	bool said;               /* REFUSED, UNKNOWN: the text is an error of the store's own */
	bool misnamed;           /* REFUSED: the other daemons call a store otherwise */
	char code;               /* of the answer … */
	struct span text;        /* … and its text, as long as the step lasts */
	struct pending *pending; /* the request that it is for; NULL: for none. Whoever takes it from `told` frees it */
	void *about;             /* of whoever asks */
};

/* A question that is to be sent, for a client of this peer. Its maker puts the operation and the arguments into `words`, and sets joined, pending and about. */
struct home_question *home_question_new(struct engine *e, enum home_of of, struct span name, struct origin *o);
/* Asks the store at this place. The outcome comes later, or at once. A question that was taken from `told` may be asked again at another place. */
void home_ask(struct engine *e, struct home_question *q, unsigned place);
/* Takes the next one whose outcome is known; NULL: there is none. */
struct home_question *home_next_told(struct engine *e);
/* It was taken from `told`, and is done with. Its pending was freed. */
void home_question_free(struct engine *e, struct home_question *q);

/* For the engine. */
void home_answered(struct engine *e, struct calls *c, const struct answer *a);
void home_fired(struct engine *e, struct timer *t);
void home_settle(struct engine *e); /* asks what waits for a store */
void home_release(struct engine *e);

#endif
