/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A semaphore of limit L is L slots and a mark. Each slot is a name with an ordinary lease. The mark is the name itself, which all daemons with permits share
 * like readers; its values contain the limit. A permit is the mark and one slot. From the ACQUIRE to the RELEASE its claims belong to an internal session, the
 * agent of the permit. See ALGORITHMS.md, Semaphores.
 */
#ifndef CORE_SEMAPHORE_H
#define CORE_SEMAPHORE_H

#include "daemon/core/session/bid.h"

enum permit_state {
	PERMIT_TRYING,    /* it asks for free slots, a few at a time, and waits for nobody */
	PERMIT_WAITING,   /* it waits in the line of its semaphore, and holds nothing */
	PERMIT_FIRST,     /* the first of the line: it waits in the queues of all slots */
	PERMIT_REFUSED,   /* its refusal is being sent */
	PERMIT_HELD,
	PERMIT_LOST,      /* its client was told of the loss, and has not released it yet */
};

#define SLOTS_OF_SESSION 8192 /* the most slots in whose queues one session may wait, by permits that are first in line */
#define SLOTS_A_STEP     512  /* the permits that are first in line may ask for so many */

/* The owner in the journal record of a permit begins so: see permit.h. */
#define SEAT_OWNER "\001permit "

/* The mark or a slot, for which a permit asks, or which it holds. */
struct seat {
	struct claim *claim; /* NULL: it does not ask for it */
	enum refusal why;    /* of the last refusal */
	uint16_t slot;
};

struct permit {
	/* Its timer: WAITING, FIRST: the end of the wait. Not notified: end of the time to repeat the ACQUIRE, if sooner. LOST: see acknowledged */
	struct bid bid;
	TAILQ_ENTRY(permit) in_line; /* WAITING, FIRST: semaphore.line; LOST: semaphore.lost; else semaphore.others */
	struct session agent;  /* owns the claims; in no table */
	struct semaphore *semaphore;
	enum permit_state state;
	unsigned order;
	bool acknowledged;     /* it was lost, and its client has not released it yet */
	struct seat mark;
	struct seat slot;      /* HELD, LOST: the slot that it has or had */
	struct seat *asked;    /* TRYING, FIRST: the slots that it asks for, and those that were refused. FIRST: sorted */
	unsigned asked_n, cap, looked_at;
	unsigned step;         /* TRYING: how many slots it asks for at a time */
	int64_t fence;
	struct instant granted_at;
	struct instant relied_until; /* of a session without a connection: until when its client may rely on the permit */
	enum loss loss;        /* LOST: the reason */
	struct pending *extend; /* an EXTEND of its client; NULL: none */
	unsigned extending;    /* how many EXTENDs of its claims are not answered yet */
	enum refusal extended; /* the result of those that are answered */
	unsigned other;        /* the limit with which the name is in use instead; 0: it is in use as a lock */
	bool stalled;          /* see semaphore.stalled */
	bool at_risk;          /* RISK was sent */
	struct instant contended_at; /* when CONTENDED was last sent over the present connection; zero: not yet */
};
TAILQ_HEAD(permits, permit);

struct semaphore {
	struct map_node node;
	struct span name;      /* owned */
	unsigned limit;
	unsigned held;         /* how many are in PERMIT_HELD */
	unsigned stalled;      /* how many in PERMIT_TRYING ask for nothing, because others try all slots that may be free */
	unsigned next;         /* the slot to try first: the one that was given back last, or any */
	unsigned waiters;      /* how many are in the line */
	struct permit *first;  /* the last one that entered PERMIT_FIRST, while it is in that state */
	struct permits line;   /* in the order in which they are served */
	struct permits others; /* those that are stalled come first */
	struct permits lost;   /* LOST: a RELEASE count= was answered with it. The request may be repeated until the timer fires */
	uint8_t used[LIMIT_MOST]; /* for each slot: how many permits of this daemon have it, or ask for it in PERMIT_TRYING */
};

/* NULL: NULL. */
static inline struct permit *permit_of_bid(struct bid *b)
{
	return b ? container_of(b, struct permit, bid) : NULL;
}

static inline struct permit *permit_first(const struct session *s)
{
	return permit_of_bid(TAILQ_FIRST(&s->bids[BID_PERMIT]));
}

static inline struct permit *permit_next(const struct permit *p)
{
	return permit_of_bid(TAILQ_NEXT(&p->bid, in_session));
}

#define PERMITS_FOREACH(p, s) for ((p) = permit_first(s); p; (p) = permit_next(p))

/* Returns the permit that has this agent. */
static inline struct permit *permit_of(const struct session *agent)
{
	return agent->of_permit ? container_of(agent, struct permit, agent) : NULL;
}

static inline bool permit_is_asking(const struct permit *p)
{
	return p->state < PERMIT_HELD;
}

struct semaphore *semaphore_find(struct request_context *x, struct span name); /* NULL: no session here has or wants a permit */
/* If it is vacant, it gets this limit. */
struct semaphore *semaphore_find_or_add(struct request_context *x, struct span name, unsigned limit);
bool semaphore_is_vacant(const struct semaphore *m); /* no session here has or wants a permit. Some may not have released a lost one yet */
void semaphore_drop_if_unused(struct request_context *x, struct semaphore *m);
void semaphores_init(struct request_context *x);
void semaphores_free_all(struct request_context *x); /* the daemon ends: sends nothing */

/* The lock is part of a semaphore: its mark or a slot. *ret_name: the name of the semaphore. */
bool semaphore_owns(const struct lock *l, struct span *ret_name);

void permit_release(struct request_context *x, struct permit *p); /* frees its memory only */
void permit_leave_for_later(struct request_context *x, struct permit *p); /* it becomes due in the next step */
void permits_again(struct request_context *x);                            /* those that permit_leave_for_later() was called for */
void permit_enter(struct request_context *x, struct permit *p, enum permit_state state); /* enters the state, and the list of that state */
/* Whether p comes before q in the line. */
bool permit_comes_before(const struct permit *p, const struct permit *q);

int64_t permit_valid_us(const struct request_context *x, const struct permit *p);

#endif
