/* SPDX-License-Identifier: BSD-2-Clause */
/* What a name asks of the stores (contender) and has there (lease): states and causes of `move.def`, votes, a lease to be adopted. */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include "daemon/base/mem.h"
#include "daemon/core/event/core.h"
#include "daemon/core/event/event.h"
#include "daemon/core/event/value.h"
#include "daemon/core/lock/claim.h"
#include "daemon/core/member/admission.h"
#include "daemon/core/member/members.h"

#include <stdbool.h>

/* What a name asks for, what it has, and why it moved: the words of move.def. */

enum contender_state {
#define CONTENDER_STATE(id, word, what) CONTENDER_##id,
#include "daemon/core/lock/move.def"
	CONTENDER_N
};

enum lease_state {
#define LEASE_STATE(id, word, what) LEASE_##id,
#include "daemon/core/lock/move.def"
	LEASE_N
};

enum cause {
#define CAUSE(id, word, what) CAUSE_##id,
#include "daemon/core/lock/move.def"
	CAUSE_N
};

struct state_row {
	const char *word, *what;
};
extern const struct state_row contender_table[CONTENDER_N], lease_table[LEASE_N], cause_table[CAUSE_N];

#define CAUSES_MAX 32

/* From, to, why: whether move.def has such a row. */
extern const bool contender_moves[CONTENDER_N][CONTENDER_N][CAUSES_MAX];
extern const bool lease_moves[LEASE_N][LEASE_N][CAUSES_MAX];

/*
 * A contender: what a name asks the stores for, who waits for it here, and what earlier rounds have taught, whatever it is the name of. A value machine: it
 * asks no store, tells nobody, and knows no lease. move.c alone writes the state; a move to IDLE begins the counts anew.
 */

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
	unsigned leads;            /* how many rounds more ask the leading store first, but not beyond lead_until: see acquire.c */
	struct instant lead_until;
	struct {
		uint32_t value;    /* of round->taken_by; 0: none */
		uint32_t since_ms; /* when we first saw it, by our clock */
	} stood[NODES_MAX];        /* what was in the way at each store, when a round last heard from it */
	struct nodeset woken;      /* stores that said that the lock was freed, since the last round began */
	struct nodeset ticket_at;  /* stores where the ticket may stand in the queue */
	struct stamp ticket;       /* its place among daemons, by the stores' clock: see asking.h */
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

/*
 * A lease: one value of ours at the stores, and the votes that vouch for it, whatever it is for. A value machine: it asks no store, tells nobody, and knows no
 * lock. move.c alone writes its state. `nodes` is the number of stores, so Q = nodes / 2 + 1.
 * See ALGORITHMS.md, Votes.
 */

struct adoption;
struct pending;
TAILQ_HEAD(pendings, pending);

/* Where a value may stand. */
struct placed {
	struct nodeset nodes;        /* stores where it may stand */
	struct nodeset unanswered;   /* stores with an EXTEND of it in flight */
	struct nodeset unknown;      /* stores where it is not known whether an EXTEND was carried out: it may be yet */
	struct nodeset sure;         /* stores that set or extended it, and no earlier call of ours may set it there: they have told their fence since */
	struct nodeset renewal_sent; /* stores that a renewal of it was sent to: what was sent before it vouches no more */
	int64_t px_us;               /* the longest that a store was asked to keep it */
	struct instant until;        /* no store keeps it beyond, once all has been answered */
	struct instant since;        /* no store was asked for it before */
};

/* Of a new value. */
static inline struct placed placed_nowhere(struct instant now)
{
	return (struct placed){.until = INSTANT_PAST, .since = now};
}

/* The value may stand at this store from now on, until then at most. px_us: the TTL that the store is asked for. */
static inline void placed_add(struct placed *p, unsigned node, int64_t px_us, struct instant until)
{
	nodeset_add(&p->nodes, node);
	p->until = instant_max(p->until, until);
	if (px_us > p->px_us)
		p->px_us = px_us;
}

/* A store's answer to an EXTEND of it. */
void placed_note_answer(struct placed *p, const struct answer *a);

struct lease;

/* What a lease has only while it is being renewed, extended or adopted, or is in doubt. */
struct renewal {
	struct lease *lease;
	TAILQ_ENTRY(lease) in_list; /* LEASE_HELD and at_risk: engine.risks; LEASE_ADOPTING: engine.adopting */
	uint32_t back;             /* the return of a store after which it was looked at: see engine_data.h */
	struct round *round;       /* the undecided round that renews or adopts it */
	struct pendings extends;   /* EXTENDs that the round under way, or the next, will answer */
	struct admission_entry entry; /* LEASE_HELD: of a renewal; LEASE_ADOPTING: of an adoption */
	struct adoption *adoption; /* LEASE_ADOPTING; else NULL */
	struct nodeset gaps;       /* stores that may have been without the key for a while, until all votes have been confirmed since: see holding.h */
	struct instant gaps_until; /* the last of these gaps was over */
	struct nodeset confirmed;  /* stores that have confirmed their vote, asked since gaps_until */
	struct nodeset gone;       /* stores whose last answer said that the key is not there, or another's: nothing of ours keeps others out there */
	struct instant stood;      /* D as it was before a store denied its vote: the holder may have been told so; 0: none did, or D is as late again */
	bool doubted;              /* somebody says that the lease was broken: the stores are asked again when the round is over, as it may have come before */
	bool wants_token;          /* the next round asks for a new token: see holding.h */
	struct instant paused_until; /* no renewal begins before this moment: the last one was missed before it began; 0: any time */
};

/* Whether it is the one of no lease, which all other leases have: most that are held. So questions need not ask whether a lease has a renewal of its own. */
static inline bool renewal_is_none(const struct renewal *b)
{
	return !b->lease;
}

struct lease {
	struct name *name;         /* of the key */
	uint16_t limit;            /* what the name is used as, see claim.h; of an idle one it means nothing */
	enum lease_state state : 8;
	bool auto_renew;           /* the watchdog renews it; else it ends as it was granted */
	bool at_risk;              /* RISK was told: it is in engine.risks */
	bool broken : 1;           /* a store said that somebody has broken it */
	bool token_is_old : 1;     /* its token is, or may be, that of an exclusive hold: no reader joins before the stores have given another */
	bool recorded : 1;         /* this value was ever in the journal */
	bool shared : 1;           /* at the stores it has a share of the key, beside those of other daemons; else the key is its own: see asking.h */
	struct timer timer;        /* LEASE_HELD: to be renewed, or told lost; LEASE_ADOPTING: next try; LEASE_CLOSING: nobody relies on it any longer */
	struct renewal *renewal;   /* that of no lease: nothing of what one has */
	/*
	 * LEASE_HELD: the holder may believe until this moment, even after D: a clock jumped, or an earlier run promised more. INSTANT_PAST: until D.
	 */
	struct instant believed_until;
	struct lease_value value;
	struct placed placed;
	struct {
		int64_t ttl_us;       /* the longest lease that the stores may have been asked for and the holder may be told of */
		struct instant until; /* likewise the latest deadline */
	} promised;               /* the record of the hold says no less */
	int64_t token, delay_us;
	int64_t token_end;        /* tokens token .. token_end are this lease's alone: one for each local hand-over */
	int64_t ttl_us;           /* the ttl of the standing votes, or a shorter one that was asked for since */
	int64_t renew_ttl_us;     /* what the next renewal asks for: an EXTEND may have changed it */
	struct instant renew_at;  /* LEASE_HELD: when to renew next; NEVER: not */
	struct instant votes[];   /* of each store; there is room for as many as the configuration has */
};
TAILQ_HEAD(leases, lease);

/* Its renewal has nothing that renewal_none has not. */
static inline bool lease_is_at_rest(const struct lease *x)
{
	const struct renewal *b = x->renewal;

	return !b->round && !b->adoption && TAILQ_EMPTY(&b->extends) && !b->entry.waits && !b->wants_token && !b->doubted &&
	       !nodeset_any(b->gaps) && b->stood.us == 0 && !x->at_risk && x->state != LEASE_ADOPTING;
}

#define LOSS_LEAD_LEAST_US (5 * MSEC)
#define LOSS_LEAD_MOST_US (250 * MSEC)

/* How long before D a loss is told. */
static inline int64_t loss_lead_us(int64_t ttl_us)
{
	int64_t lead = ttl_us / 20;

	return lead < LOSS_LEAD_LEAST_US ? LOSS_LEAD_LEAST_US : lead > LOSS_LEAD_MOST_US ? LOSS_LEAD_MOST_US : lead;
}

/* The lease has this value from now on. The caller sets the votes that vouch for it, and the terms. */
static inline void lease_begin(struct lease *x, const struct lease_value *value, const struct placed *placed)
{
	x->value = *value;
	x->placed = *placed;
	if (x->renewal->adoption) {
		mem_free(x->renewal->adoption);
		x->renewal->adoption = NULL;
	}
	x->recorded = x->broken = x->token_is_old = x->shared = false;
	x->promised.ttl_us = 0;
	x->promised.until = INSTANT_PAST;
	if (renewal_is_none(x->renewal))
		return;
	x->renewal->gaps = x->renewal->confirmed = x->renewal->gone = NODESET_NONE;
	x->renewal->stood.us = 0;
	x->renewal->wants_token = x->renewal->doubted = false;
	x->renewal->paused_until.us = 0;
}

/* The stores are about to be asked for such a lease: the holder may be told of it. */
void lease_promise(struct lease *x, int64_t ttl_us, struct instant until);

/* D: until then Q votes vouch for the lease. */
static inline struct instant lease_deadline(const struct lease *x, unsigned nodes)
{
	return votes_deadline(x->votes, nodes);
}

/* The stores where the key may stand are no quorum. */
bool lease_is_gone(const struct lease *x, unsigned nodes);

/* The moment when a loss is told: before D, so that the word arrives in time. */
struct instant lease_tell_at(const struct lease *x, unsigned nodes);
static inline bool lease_loss_is_due(const struct lease *x, unsigned nodes, struct instant now)
{
	return !instant_before(now, lease_tell_at(x, nodes));
}

/* Until when the votes of the other stores are a quorum without this one. */
struct instant lease_others_until(const struct lease *x, unsigned nodes, unsigned node);

/* How much validity a client may be told, in microseconds: no more than the next renewal leaves, which may ask for a shorter lease. */
int64_t lease_valid_us(const struct lease *x, unsigned nodes, struct instant now);

/*
 * A lease of the previous run that is being adopted: which stores may still vouch for it, and until when that is worth while. Asks no store; adopt.c does.
 * See ALGORITHMS.md, Adoption.
 */

/* A lease as the journal has it. */
struct prior_lease {
	struct span name, value;
	int64_t ttl_us; /* the longest that the client may have been told; the claim has the ttl of the renewals */
	struct instant deadline; /* the latest that the client may have been told; a later renewal may have moved it on */
	struct instant end;      /* when it ends unless it is renewed, as the process before this one has handed it over; NEVER: that is not known */
	struct span votes;       /* until when each store keeps the value, an instant each, as that process has handed it over; empty: the stores are asked */
	struct nodeset gaps;     /* stores that may have been without the key meanwhile although these votes stand */
};

struct adoption {
	bool vouched;        /* the votes are those that the process before this one has handed over: no store is asked */
	struct nodeset left; /* stores that have not denied the value */
	struct nodeset occupied; /* stores where another value stands, perhaps one that an earlier version of the daemon was to replace by this one */
	struct instant hopeless; /* nobody relies on the lease after this: the adoption is given up */
	struct instant deadline; /* of a lease whose end is known; NEVER: it is not */
	size_t n;
	char value[]; /* as the journal has it */
};

/* The caller sets until when. */
struct adoption *adoption_new(struct span value, unsigned nodes);
void adoption_over(struct lease *x);
/* What the next run needs to adopt a lease. The texts are borrowed. */
struct prior_lease adoption_record(struct core *core, const struct lease *x);

/* LEASE_ADOPTING, all of these. Whether a record with this value is about this lease. */
bool adoption_is_of(const struct lease *x, struct span value);
/* The store says that the value is not there. What is set there later proves nothing, so it is not asked again. */
void adoption_denied(struct lease *x, unsigned node, bool occupied);
/* So many stores have no key of the lease that nobody has the lock, even if all keys of the others are ours. */
bool adoption_is_denied(const struct lease *x, unsigned nodes);
/* When the adoption is given up. A lease that nobody renews is told lost as long before its end as any other. */
struct instant adoption_end(const struct lease *x);
/* Of a lease that nobody renews: the ttl to ask for now, such that the votes last until `deadline`. */
int64_t adoption_rest_us(const struct lease *x, struct instant now);

#endif
