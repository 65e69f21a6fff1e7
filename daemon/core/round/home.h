/* SPDX-License-Identifier: BSD-2-Clause */
/* Which store is the home of a rate limit or of a queue, and a question to it. */
#ifndef CORE_HOME_H
#define CORE_HOME_H

#include "daemon/base/buf.h"
#include "daemon/core/event/core.h"
#include "daemon/core/round/engine_data.h"

/*
 * The home of a rate limit, or of a queue, is the store with the largest weight for its name. Weights depend on the names of the stores in the configuration,
 * so all daemons must use the same names. Highest random weight (Thaler, Ravishankar 1998): when the set of stores changes, only names whose store is new or
 * gone move. Pure.
 * See ALGORITHMS.md, Home.
 */

/* The subject of a question to a home. Limits and queues have separate name spaces. NONE: the name of the store; such a question stays in home.c. */
enum home_of { HOME_OF_RATE, HOME_OF_QUEUE, HOME_OF_NONE };

/* The store at this place for the name: place 0 is its home, and place 1 replaces it if the home is gone. */
unsigned rendezvous_node(const struct core *core, enum home_of of, struct span name, unsigned place);

/*
 * The home of a rate limit, or of a queue: the one store that keeps it, the same for all daemons; and questions to it. A question is one call of
 * lua/home.lua, about one name. Its outcome appears in `finished` before the step is over: an answer, certainly not carried out, or not known.
 *
 * All daemons must use the same names for the stores, or their homes differ. Each store keeps the name that the first daemon gives it. Before its first
 * question a daemon asks all stores in reach for their names. If one of them has another name, the daemon sends no question about limits and queues to any
 * store. Locks need no names. See ALGORITHMS.md, Home.
 */

enum home_outcome {
	HOME_OPEN,     /* not known yet */
	HOME_ANSWERED, /* the answer is this code and text */
	HOME_REFUSED,  /* it was not carried out, and never will be: the text gives the reason, for people */
	HOME_UNKNOWN,  /* it was perhaps carried out, or will be: the same */
};

struct home_question {
	TAILQ_ENTRY(home_question) in_list; /* of engine.homes: asked, or finished */
	struct turn turn;        /* of engine.homes: waiting */
	struct origin *origin;   /* the peer whose client it is for; NULL: it is not known */
	struct name name;
	struct calls calls;
	struct timer timer;      /* waiting: when it is given up; sent: when the time of the store is over */
	struct instant until;    /* it is not sent after this moment */
	enum home_of of;
	unsigned place, node;    /* see rendezvous_node */
	bool joined;             /* only a joined store may answer; else also one in quarantine, which remembers what was written since */
	const char *marker;      /* the marker with which it was last sent … */
	const char *denied;      /* … and a marker that the store does not have: the question is repeated once another is known. NULL: none */
	bool urgent;             /* a lease depends on it: it waits for no other question */
	bool left;               /* delivered: it exists only until its call is answered */
	struct buf words;        /* the operation and its arguments: see netstring.h */
	enum home_outcome outcome;
	bool from_store;         /* REFUSED, UNKNOWN: the text is an error from the store itself */
	bool misnamed;           /* REFUSED: the other daemons have another name for a store */
	char code;               /* of the answer … */
	struct span text;        /* … and its text, valid during the step */
	struct pending *pending; /* the request that it serves; NULL: none. Whoever takes the question from `finished` frees it */
	void *about;             /* for its maker */
};

/* A question to be sent, for a client of this peer. Its maker puts the operation and the arguments into `words`, and sets joined, pending and about. */
struct home_question *home_question_new(struct engine *e, enum home_of of, struct span name, struct origin *o);
/* Asks the store at this place. The outcome comes later, or at once. A question that was taken from `finished` may be asked again at another place. */
void home_ask(struct engine *e, struct home_question *q, unsigned place);
/* Takes the next one whose outcome is known; NULL: there is none. */
struct home_question *home_next_outcome(struct engine *e);
/* It was taken from `finished`, and is not needed any more. Its pending was freed. */
void home_question_free(struct engine *e, struct home_question *q);

/* For the engine. */
void home_answered(struct engine *e, struct calls *c, const struct answer *a);
void home_fired(struct engine *e, struct timer *t);
void home_send_waiting(struct engine *e); /* sends questions that wait for a store */
void home_release(struct engine *e);

#endif
