/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A semaphore of limit L is L slots, each a name of its own with an ordinary lease, and a mark: the name itself, which all daemons with permits hold together
 * as readers do, and whose values tell the limit. A permit is the mark and one slot. Its claims belong to no client: their session is the agent of the permit,
 * from the ACQUIRE to the RELEASE. See ALGORITHMS.md, Semaphores.
 */
#ifndef CORE_SEMAPHORE_H
#define CORE_SEMAPHORE_H

#include "daemon/core/session/request_context.h"

enum permit_state {
	PERMIT_TRYING,    /* it asks for free slots, some at a time, and waits for nobody */
	PERMIT_WAITING,   /* it stands in the line of its semaphore, and has nothing */
	PERMIT_FIRST,     /* the first of the line: it stands in the queues of all slots */
	PERMIT_CANCELLED, /* it is about to be answered */
	PERMIT_HELD,
	PERMIT_LOST,      /* its client was told, and has not released it yet */
};

#define SLOTS_OF_SESSION 8192 /* for which one session is the first in line */
#define SLOTS_A_STEP     512  /* are asked for by those that are the first */

/* How the owner of a record of a permit begins: see permit.h. */
#define SEAT_OWNER "\001permit "

/* What a permit asks for, or has. */
struct seat {
	struct claim *claim; /* NULL: it is not asked for */
	enum refusal why;    /* of the last refusal */
	uint16_t slot;
};

struct permit {
	TAILQ_ENTRY(permit) in_session, in_due;
	TAILQ_ENTRY(permit) in_line; /* WAITING, FIRST: semaphore.line; LOST: semaphore.lost; else semaphore.others */
	struct session *session;
	struct origin *origin; /* in whose crowd it counts, until it is granted; NULL: nobody's */
	struct session agent;  /* of the claims; in no table */
	struct semaphore *semaphore;
	struct timer timer;    /* WAITING, FIRST: the end of the wait. Not notified: end of the time to repeat the ACQUIRE, if sooner. LOST: see acknowledged */
	enum permit_state state;
	unsigned priority, order;
	bool counted;          /* its ACQUIRE has count=: the same request takes its place */
	bool acknowledged;     /* LOST: a RELEASE count= was told so, and may be repeated until the timer fires */
	struct seat mark;
	struct seat slot;      /* HELD, LOST: the one that it has or had */
	struct seat *asked;    /* TRYING, FIRST: the slots that it asks for, and those that it was refused. FIRST: in their order */
	unsigned asked_n, cap, looked_at;
	unsigned step;         /* TRYING: how many slots are asked for at a time */
	char *owner;
	size_t owner_n;
	struct kept_remark remark;
	int64_t ttl_us, fence;
	struct instant asked_at, wait_until, granted_at;
	int64_t stores_us;     /* see struct asking */
	struct instant believed; /* of a session without a connection: the belief of its client ends by then */
	enum loss loss;        /* LOST: why */
	struct pending *extend; /* an EXTEND of its client; NULL: none */
	unsigned extending;    /* the EXTENDs of its claims for that which are not answered yet */
	enum refusal extended; /* what these were answered so far */
	unsigned other;        /* the limit with which the name is in use instead; 0: as a lock */
	bool patient, due;
	bool later;            /* FIRST, in request_context.permits_later */
	bool not_notified;     /* its connection was lost: the client does not know of it, or a repeated ACQUIRE takes its place */
	bool told;             /* CANCELLED: its client was told why */
	bool denied;           /* CANCELLED: by new rules */
	bool leaving;          /* its session has sent its last line: it waits for nobody any more */
	bool stalled;          /* see semaphore.stalled */
	bool at_risk;          /* RISK was told */
	struct instant contended_at; /* when CONTENDED was told last over the present connection; zero: not yet */
	char tag[TAG_MAX + 1]; /* of the ACQUIRE */
};

struct semaphore {
	struct map_node node;
	char *name;
	size_t n;
	unsigned limit;
	unsigned held;         /* how many are in PERMIT_HELD */
	unsigned stalled;      /* how many in PERMIT_TRYING ask for nothing, as others try all slots that may be free */
	unsigned next;         /* the slot that was given back last, or any: the first to be tried */
	unsigned waiters;      /* how many stand in the line */
	struct permit *first;  /* the last one that entered PERMIT_FIRST, as long as it is in that state */
	struct permits line;   /* in the order in which they are served */
	struct permits others; /* first those that are stalled */
	struct permits lost;   /* in PERMIT_LOST: clients may leave thousands unreleased, which nobody else is to walk */
	uint8_t used[LIMIT_MOST]; /* how many permits of this daemon have each slot, or ask for it in PERMIT_TRYING */
};

static inline struct span semaphore_name(const struct semaphore *m)
{
	return (struct span){m->name, m->n};
}

static inline struct span permit_owner(const struct permit *p)
{
	return (struct span){p->owner, p->owner_n};
}

/* The permit that the claim is of. */
static inline struct permit *permit_of(const struct session *agent)
{
	return agent->of_permit ? container_of(agent, struct permit, agent) : NULL;
}

static inline bool permit_is_asking(const struct permit *p)
{
	return p->state < PERMIT_HELD;
}

struct semaphore *semaphore_find(struct request_context *x, struct span name); /* NULL: nobody here has or wants a permit */
/* One that is vacant is of this limit from now on. */
struct semaphore *semaphore_find_or_add(struct request_context *x, struct span name, unsigned limit);
bool semaphore_is_vacant(const struct semaphore *m); /* nobody here has or wants a permit, though some may not have released one that was lost */
void semaphore_drop_if_unused(struct request_context *x, struct semaphore *m);
void semaphores_init(struct request_context *x);
void semaphores_free_all(struct request_context *x); /* the daemon ends, and tells nobody */

/* The name under which a lock is a part of a semaphore; false: it is none. ret_name: that of the semaphore. */
bool semaphore_owns(const struct lock *l, struct span *ret_name);

void permit_release(struct permit *p); /* its memory alone */
void permit_make_due(struct request_context *x, struct permit *p);
void permit_is_due_no_more(struct request_context *x, struct permit *p);
void permit_leave_for_later(struct request_context *x, struct permit *p); /* it is due in the next step */
void permits_again(struct request_context *x);                            /* those that were left */
void permit_enter(struct request_context *x, struct permit *p, enum permit_state state); /* into the state, and the list that belongs to it */
/* It is about to be answered CANCELLED: not now, since notices may speak of its claims. */
void permit_cancel(struct request_context *x, struct permit *p);
/* Whether p stands before q in the line. */
bool permit_stands_before(const struct permit *p, const struct permit *q);

int64_t permit_valid_us(const struct request_context *x, const struct permit *p);

#endif
