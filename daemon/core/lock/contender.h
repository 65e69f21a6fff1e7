/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A contender: what a name asks the stores for, who waits for it here, and what earlier rounds have taught, whatever it is the name of. A value machine: it
 * asks no store, tells nobody, and knows no lease. move.c alone writes the state; a move to IDLE begins the counts anew.
 */
#ifndef CORE_CONTENDER_H
#define CORE_CONTENDER_H

#include "daemon/core/event/core.h"
#include "daemon/core/event/name.h"
#include "daemon/core/event/value.h"
#include "daemon/core/lock/holder_text.h"
#include "daemon/core/lock/claim.h"
#include "daemon/core/lock/state.h"
#include "daemon/core/member/admission.h"

struct round;

#define HOST_MAX 41 /* bytes of the name of a host, its NUL included */
#define TICKET_US (3 * SEC) /* a place in the queue lasts so long unless refreshed */

/* What the stores said last about a name that is not ours. */
struct elsewhere {
	bool known;         /* a quorum refused it: somebody holds it; or see reserved */
	bool outdated;      /* … but there was no quorum of answers since */
	bool split;         /* a quorum answered, and nobody has it: votes are split */
	bool foreign;       /* no redlockd wrote it */
	bool shared;        /* readers have it */
	bool kept;          /* nobody has it: an UNLOCK keep= or a lock-delay left it behind */
	bool reserved;      /* free, but kept for an older ticket */
	unsigned limit;     /* of the semaphore whose mark it is, as it last refused a request; 0: it is none */
	int64_t pttl_ms;    /* -1: never expires */
	int64_t held_us;    /* for how long it was held there, or kept, at `at`; -1: not known */
	struct instant at;
	char host[HOST_MAX]; /* of the daemon that holds it; "" if unknown, or if it is this one */
	char daemon[DAEMON_ID_MAX]; /* the id of that daemon … */
	int64_t number;     /* … and the number of its value; 0: not known, or it is no lock that a session holds */
};

struct contender {
	struct name *name;         /* what it asks for */
	TAILQ_ENTRY(contender) in_no_quorum; /* CONTENDER_NO_QUORUM */
	uint32_t back;             /* the return of a store after which it was looked at: see engine_data.h */
	struct admission_entry entry; /* CONTENDER_QUEUED */
	enum contender_state state;
	unsigned patient;          /* waiters that go on waiting while somebody holds the name */
	unsigned writers;          /* those of them that wait to hold it alone */
	unsigned impatient;        /* the other waiters */
	unsigned overdue;          /* patient ones whose wait is over */
	unsigned announced;        /* patient ones of which watchers were told */
	unsigned counted;          /* those with count= above 1 */
	struct claims waiters;     /* claims in CLAIM_WAITING, in the order of claim_stands_before() */
	struct claims losses;      /* claims in CLAIM_LOST: they stand here, since few names that are held have any */
	struct readers *lost;      /* those of all names */
	unsigned closing;          /* how often the lease was left alone since there are losses */
	unsigned unacknowledged;   /* losses of the present closing that keep the lease closed; 0: it stays closed to its end */
	struct timer timer;        /* when it is asked for again, or looked after */
	struct round *round;       /* CONTENDER_ACQUIRING: the undecided round */
	unsigned lost_rounds;      /* in a row, because they were split or found a holder: the pauses become longer with them */
	unsigned same_splits;      /* how many of the last of these in a row were split by one and the same value */
	uint64_t split_by;         /* that value, as round->taken_by */
	unsigned leads;            /* how many rounds more ask the leading store first, but not beyond lead_until: see split_vote.c */
	struct instant lead_until;
	struct {
		uint32_t value;    /* of round->taken_by; 0: none */
		uint32_t since_ms; /* when we first saw it, by our clock */
	} stood[NODES_MAX];        /* what was in the way at each store, when a round last heard from it */
	struct nodeset woken;      /* stores that said that the lock was freed, since the last round began */
	struct nodeset ticket_at;  /* stores where the ticket may stand in the queue */
	struct stamp ticket;       /* its place among daemons, by the stores' clock: see ticket.h */
	struct instant ticket_since; /* since when its waiter waits, by our clock; the ticket itself is earlier by its priority */
	struct instant handed_since; /* since when the name goes from one claim to the next here; 0: it does not */
	struct instant want_since; /* since when another daemon wants the name that is held here; 0: none does */
	struct instant wanted_at;  /* when another daemon last said so */
	unsigned handoffs;         /* of the lease that is held here */
	struct elsewhere elsewhere;
	uint8_t ticket_priority;   /* of the waiter whose ticket it is */
	bool ticket_returns;       /* in a restart: it was handed over, and some who wait have yet to ask again */
	bool crowd;                /* more were to be refused than one step answers */
	bool taught;               /* a round was not won, or found somebody else: what it taught is kept as long as the name is known here */
};
TAILQ_HEAD(contenders, contender);

/*
 * Whether it is the one of no name, which all names have that nobody waits for, and of which nothing is to be remembered: most that are held. So questions
 * about a name need not ask whether it has a contender of its own; see lock_contend().
 */
static inline bool contender_is_none(const struct contender *k)
{
	return !k->name;
}

/* It has nothing that the one of no name has not. */
static inline bool contender_is_blank(const struct contender *k)
{
	return k->state == CONTENDER_IDLE && !k->taught && k->handed_since.us == 0 && k->want_since.us == 0 && k->handoffs == 0 && k->ticket.us == 0 &&
	       TAILQ_EMPTY(&k->waiters) && TAILQ_EMPTY(&k->losses);
}

/* Somebody waits for it, and no round is under way. */
static inline bool contender_is_between_rounds(const struct contender *k)
{
	return k->state != CONTENDER_IDLE && k->state != CONTENDER_ACQUIRING;
}

/* Between rounds, as somebody elsewhere has the name, or it is left alone for others: a request that does not wait is refused at once. */
static inline bool contender_is_kept_off(const struct contender *k)
{
	return contender_is_between_rounds(k) && (k->state == CONTENDER_YIELDING || (k->elsewhere.known && !k->elsewhere.outdated));
}

/* Puts it among the waiters, where its priority belongs. */
void contender_line_up(struct contender *k, struct claim *c);

/* How the stores are to have what is asked for on behalf of this claim. */
static inline enum form contender_form(const struct claim *head)
{
	return head->shared ? FORM_SHARED : FORM_ALONE;
}

/* Into and out of the waiters; the only writers of CLAIM_WAITING. Inline, since each LOCK does both. */
static inline void contender_enqueue(struct contender *k, struct claim *c)
{
	c->state = CLAIM_WAITING;
	if (c->priority == 0)
		TAILQ_INSERT_TAIL(&k->waiters, c, in_lock); /* all others have come before */
	else
		contender_line_up(k, c);
	k->patient += c->patient;
	k->writers += c->patient > c->shared;
	k->impatient += !c->patient;
	k->counted += c->asking->count > 1;
}

static inline void contender_set_overdue(struct contender *k, struct claim *c, bool overdue)
{
	k->overdue += (unsigned)(overdue & c->patient) - (unsigned)(c->overdue & c->patient);
	c->overdue = overdue;
}

/* Of one that waits. */
static inline void contender_set_count(struct contender *k, struct claim *c, unsigned count)
{
	k->counted += (unsigned)(count > 1) - (unsigned)(c->asking->count > 1);
	c->asking->count = count;
}

static inline void contender_dequeue(struct contender *k, struct claim *c)
{
	c->state = CLAIM_NEW;
	TAILQ_REMOVE(&k->waiters, c, in_lock);
	claim_leave_twins(c);
	k->patient -= c->patient;
	k->writers -= c->patient > c->shared;
	k->impatient -= !c->patient;
	k->counted -= c->asking->count > 1;
	contender_set_overdue(k, c, false);
	k->announced -= c->announced;
	c->announced = false;
}

/* How many may be overdue now: nobody looks for more. */
static inline unsigned contender_hurried(const struct contender *k)
{
	return k->impatient + k->overdue;
}

/* The ticket of some daemon, as a store showed it. */
struct ticket_seen {
	int64_t us;    /* 0: none was seen */
	bool own;      /* of this daemon */
	char host[HOST_MAX]; /* of the daemon; "" if unknown */
};

/* Takes the ticket that the answer to a LOOK shows, if it is older. */
void ticket_seen_note(const struct core *core, struct ticket_seen *seen, const struct answer *a);

/* Nothing is known of a holder elsewhere any more. */
static inline void elsewhere_forget(struct elsewhere *elsewhere)
{
	elsewhere->known = elsewhere->split = false;
}

/* Moves the waiter to the place that it would have if it had come to the end of the line. */
void contender_reorder(struct contender *k, struct claim *c);

/* Notes whose value the answer shows. */
void elsewhere_note(const struct core *core, struct elsewhere *elsewhere, const struct answer *a);

#endif
