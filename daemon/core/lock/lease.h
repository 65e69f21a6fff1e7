/* SPDX-License-Identifier: BSD-2-Clause */
/* What a name asks of the stores (contender) and has there (lease): states and causes of `move.def`, votes, and leases to be adopted. */
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

/* The states of what a name asks for, of what it has, and the causes of moves: the words of move.def. */

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
 * A contender: what a name asks the stores for, who waits for it here, and what earlier rounds have shown. The name may be of any kind. A value machine: it
 * asks no store, notifies nobody, and knows no lease. Only move.c writes the state; a move to IDLE resets the counts.
 */

struct round;

#define HOST_MAX 41 /* bytes of the name of a host, including its NUL */
#define TICKET_US (3 * SEC) /* how long a place in the queue lasts unless refreshed */

/* What the stores last answered about a name that is not ours. */
struct elsewhere {
	bool known;         /* a quorum refused it: somebody holds it; or see reserved */
	bool outdated;      /* … but there was no quorum of answers after that */
	bool split;         /* a quorum answered, and nobody has it: votes are split */
	bool foreign;       /* no redlockd wrote it */
	bool shared;        /* readers have it */
	bool kept;          /* nobody has it: an UNLOCK keep= or a lock-delay left the key */
	bool reserved;      /* free, but reserved for an older ticket */
	unsigned limit;     /* of the semaphore whose mark it is, when it last refused a request; 0: it is not a mark */
	int64_t pttl_ms;    /* -1: never expires */
	int64_t held_us;    /* for how long it had been held there, or kept, at `at`; -1: not known */
	struct instant at;
	char host[HOST_MAX]; /* of the daemon that holds it; "" if unknown, or if it is this one */
	char daemon[DAEMON_ID_MAX]; /* the id of that daemon … */
	int64_t number;     /* … and the number of its value; 0: not known, or not a lock that a session holds */
};

struct contender {
	struct name *name;         /* the name that it asks for */
	TAILQ_ENTRY(contender) in_no_quorum; /* CONTENDER_NO_QUORUM */
	uint32_t back;             /* the return of a store after which it was last looked at: see engine_data.h */
	struct admission_entry entry; /* CONTENDER_QUEUED */
	enum contender_state state;
	unsigned patient;          /* waiters that go on waiting while somebody holds the name */
	unsigned writers;          /* those of them that wait to hold it alone */
	unsigned impatient;        /* the other waiters */
	unsigned overdue;          /* patient waiters whose wait is over */
	unsigned announced;        /* patient waiters that were reported to watchers */
	unsigned counted;          /* waiters with count= above 1 */
	struct claims waiters;     /* claims in CLAIM_WAITING, in the order of claim_comes_before() */
	struct claims losses;      /* claims in CLAIM_LOST: they are kept here, since few held names have any */
	struct readers *lost;      /* the losses of all names */
	unsigned closing;          /* how many times the lease was left alone since there are losses */
	unsigned unacknowledged;   /* losses of the present closing that keep the lease closed; 0: it stays closed until its end */
	struct timer timer;        /* when it asks again, or is looked at */
	struct round *round;       /* CONTENDER_ACQUIRING: the undecided round */
	unsigned lost_rounds;      /* rounds in a row that were split or found a holder: the pauses grow with them */
	unsigned same_splits;      /* how many of these rounds, counted from the last, were split by one and the same value */
	uint64_t split_by;         /* that value, as round->taken_by */
	unsigned leads;            /* how many more rounds ask the leading store first, but not after lead_until: see acquire.c */
	struct instant lead_until;
	struct {
		uint32_t value;    /* of round->taken_by; 0: none */
		uint32_t since_ms; /* when we first saw it, by our clock */
	} blocking[NODES_MAX];     /* the value that was in the way at each store, when a round last heard from it */
	struct nodeset woken;      /* stores that reported since the last round began that the lock was freed */
	struct nodeset ticket_at;  /* stores whose queue may have the ticket */
	struct stamp ticket;       /* its place among daemons, by the stores' clock: see asking.h */
	struct instant ticket_since; /* since when its waiter waits, by our clock; the time in the ticket is earlier because of the priority */
	struct instant handed_since; /* since when the name passes from one claim to the next here; 0: it does not */
	struct instant want_since; /* since when another daemon wants the name that is held here; 0: no daemon does */
	struct instant wanted_at;  /* when another daemon last reported that */
	unsigned handoffs;         /* of the lease that is held here */
	struct elsewhere elsewhere;
	uint8_t ticket_priority;   /* of the waiter whose ticket it is */
	bool ticket_returns;       /* in a restart: the ticket was handed over, and some of its waiters have yet to ask again */
	bool crowd;                /* more waiters were to be refused than one step answers */
	bool taught;               /* a round was not won, or found another holder: what it showed is kept as long as the name is known here */
};
TAILQ_HEAD(contenders, contender);

/*
 * Whether it is the contender without a name, which is shared by all names that nobody waits for and that have nothing to remember: most held names. So a
 * question about a name need not check whether it has a contender of its own; see lock_contend().
 */
static inline bool contender_is_none(const struct contender *k)
{
	return !k->name;
}

/* It has no more than the shared contender. */
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

/* Between rounds, because somebody elsewhere has the name, or this daemon leaves it to others: a request that does not wait is refused at once. */
static inline bool contender_is_kept_off(const struct contender *k)
{
	return contender_is_between_rounds(k) && (k->state == CONTENDER_YIELDING || (k->elsewhere.known && !k->elsewhere.outdated));
}

/* Inserts it among the waiters, at the place that its priority gives. */
void contender_line_up(struct contender *k, struct claim *c);

/* The form that this claim asks the stores for. */
static inline enum form contender_form(const struct claim *head)
{
	return head->shared ? FORM_SHARED : FORM_ALONE;
}

/* Into and out of the waiters; nothing else writes CLAIM_WAITING. Inline, since each LOCK does both. */
static inline void contender_enqueue(struct contender *k, struct claim *c)
{
	c->state = CLAIM_WAITING;
	if (c->priority == 0)
		TAILQ_INSERT_TAIL(&k->waiters, c, in_lock); /* all others came earlier */
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

/* Of a waiting claim. */
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

/* Upper bound of the waiters that may be overdue now: nobody looks for more. */
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

/* Takes the ticket in the answer to a LOOK, if it is older. */
void ticket_seen_note(const struct core *core, struct ticket_seen *seen, const struct answer *a);

/* No holder elsewhere is known any more. */
static inline void elsewhere_forget(struct elsewhere *elsewhere)
{
	elsewhere->known = elsewhere->split = false;
}

/* Moves the waiter to the place that it would have if it had just been appended to the line. */
void contender_reorder(struct contender *k, struct claim *c);

/* Notes the value that the answer shows. */
void elsewhere_note(const struct core *core, struct elsewhere *elsewhere, const struct answer *a);

/*
 * A lease: one of our values at the stores, and the votes that vouch for it, whatever it is for. A value machine: it asks no store, notifies nobody, and
 * knows no lock. Only move.c writes its state. `nodes` is the number of stores, so Q = nodes / 2 + 1.
 * See ALGORITHMS.md, Votes.
 */

struct adoption;
struct pending;
TAILQ_HEAD(pendings, pending);

/* Where a value may be. */
struct placed {
	struct nodeset nodes;        /* stores where it may be */
	struct nodeset unanswered;   /* stores with an EXTEND of it in flight */
	struct nodeset unknown;      /* stores where an EXTEND of unknown outcome was sent: it may still run */
	struct nodeset sure;         /* stores that set or extended it, where none of our earlier calls may still set it: their fence was reported after that */
	struct nodeset renewal_sent; /* stores to which a renewal of it was sent: answers to earlier calls no longer vouch */
	int64_t px_us;               /* the longest time that a store was asked to keep it */
	struct instant until;        /* no store keeps it after this moment, once all calls are answered */
	struct instant since;        /* no store was asked for it before this moment */
};

/* Of a new value. */
static inline struct placed placed_nowhere(struct instant now)
{
	return (struct placed){.until = INSTANT_PAST, .since = now};
}

/* From now on, and until then at most, the value may be at this store. px_us: the TTL that the store is asked for. */
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
	uint32_t back;             /* the return of a store after which it was last looked at: see engine_data.h */
	struct round *round;       /* the undecided round that renews or adopts it */
	struct pendings extends;   /* EXTENDs that the present round, or the next, will answer */
	struct admission_entry entry; /* LEASE_HELD: a renewal; LEASE_ADOPTING: an adoption */
	struct adoption *adoption; /* LEASE_ADOPTING; else NULL */
	struct nodeset gaps;       /* stores that may have been without the key for a while, until all votes were confirmed after that: see holding.h */
	struct instant gaps_until; /* when the last of these gaps was over */
	struct nodeset confirmed;  /* stores that have confirmed their vote, in answer to calls after gaps_until */
	struct nodeset gone;       /* stores whose last answer reported that the key is missing or has another value: there nothing of ours excludes others */
	struct instant denied_deadline; /* D before a store denied its vote: the holder may rely on it; 0: no store did, or D is that late again */
	/* Somebody reports that the lease was broken: the stores are asked again after the round, since the report may have come before its answers. */
	bool doubted;
	bool wants_token;          /* the next round asks for a new token: see holding.h */
	struct instant paused_until; /* no renewal begins before this moment: the last one came too late to begin; 0: any time */
};

/* Whether it is the renewal without a lease, which most held leases share. So a question need not check whether a lease has a renewal of its own. */
static inline bool renewal_is_none(const struct renewal *b)
{
	return !b->lease;
}

struct lease {
	struct name *name;         /* of the key */
	uint16_t limit;            /* the use of the name, see claim.h; not valid when idle */
	enum lease_state state : 8;
	bool auto_renew;           /* the watchdog renews it; else it ends as it was granted */
	bool at_risk;              /* RISK was sent: the lease is in engine.risks */
	bool broken : 1;           /* a store reported that somebody has broken it */
	bool token_is_old : 1;     /* its token is, or may be, that of an exclusive hold: no reader joins before the stores have given another */
	bool recorded : 1;         /* this value was recorded in the journal at some time */
	bool shared : 1;           /* at the stores it has a share of the key, beside those of other daemons; else the key is its own: see asking.h */
	/* LEASE_HELD: renewal, or the report of its loss; LEASE_ADOPTING: next try; LEASE_CLOSING: from then on nobody relies on it */
	struct timer timer;
	struct renewal *renewal;   /* the shared one, without a lease, if this lease needs none */
	/* LEASE_HELD: the holder may rely on it until this moment, even after D: a clock jumped, or an earlier run promised more. INSTANT_PAST: until D. */
	struct instant relied_at_least;
	struct lease_value value;
	struct placed placed;
	struct {
		int64_t ttl_us;       /* the longest lease that the stores may have been asked for, and that the holder may know of */
		struct instant until; /* the same for the latest deadline */
	} promised;               /* the record of the hold promises at least this much */
	int64_t token, delay_us;
	int64_t token_end;        /* tokens token .. token_end belong to this lease alone: one for each local hand-over */
	int64_t ttl_us;           /* the ttl of the present votes, or a shorter one that was asked for later */
	int64_t renew_ttl_us;     /* what the next renewal asks for: an EXTEND may have changed it */
	struct instant renew_at;  /* LEASE_HELD: when to renew next; NEVER: it is not renewed */
	struct instant votes[];   /* one for each store of the configuration */
};
TAILQ_HEAD(leases, lease);

/* Its renewal has no more than the shared one. */
static inline bool lease_is_at_rest(const struct lease *x)
{
	const struct renewal *b = x->renewal;

	return !b->round && !b->adoption && TAILQ_EMPTY(&b->extends) && !b->entry.waits && !b->wants_token && !b->doubted &&
	       !nodeset_any(b->gaps) && b->denied_deadline.us == 0 && !x->at_risk && x->state != LEASE_ADOPTING;
}

#define LOSS_LEAD_LEAST_US (5 * MSEC)
#define LOSS_LEAD_MOST_US (250 * MSEC)

/* How long before D a loss is reported. */
static inline int64_t loss_lead_us(int64_t ttl_us)
{
	int64_t lead = ttl_us / 20;

	return lead < LOSS_LEAD_LEAST_US ? LOSS_LEAD_LEAST_US : lead > LOSS_LEAD_MOST_US ? LOSS_LEAD_MOST_US : lead;
}

/* The lease has this value from now on. The caller sets its terms, and the votes that vouch for it. */
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
	x->renewal->denied_deadline.us = 0;
	x->renewal->wants_token = x->renewal->doubted = false;
	x->renewal->paused_until.us = 0;
}

/* The stores are about to be asked for this lease: the holder may be granted it. */
void lease_promise(struct lease *x, int64_t ttl_us, struct instant until);

/* D: until then Q votes vouch for the lease. */
static inline struct instant lease_deadline(const struct lease *x, unsigned nodes)
{
	return votes_deadline(x->votes, nodes);
}

/* The stores that may have the key are fewer than a quorum. */
bool lease_is_gone(const struct lease *x, unsigned nodes);

/* When a loss is reported: before D, so that the report arrives in time. */
struct instant lease_loss_due(const struct lease *x, unsigned nodes);
static inline bool lease_loss_is_due(const struct lease *x, unsigned nodes, struct instant now)
{
	return !instant_before(now, lease_loss_due(x, nodes));
}

/* Until when the votes of the other stores are a quorum without this one. */
struct instant lease_others_until(const struct lease *x, unsigned nodes, unsigned node);

/* How much validity may be reported to a client, in microseconds: no more than the next renewal leaves, which may ask for a shorter lease. */
int64_t lease_valid_us(const struct lease *x, unsigned nodes, struct instant now);

/*
 * A lease of the previous run that is being adopted: which stores may still vouch for it, and until when it is worth asking. Asks no store; adopt.c does.
 * See ALGORITHMS.md, Adoption.
 */

/* A lease as the journal has it. */
struct prior_lease {
	struct span name, value;
	int64_t ttl_us; /* the longest that the client may know of; the claim has the ttl of the renewals */
	struct instant deadline; /* the latest that the client may know of; a later renewal may have moved it on */
	struct instant end;      /* when it ends unless it is renewed, according to the previous process; NEVER: that is not known */
	struct span votes;       /* until when each store keeps the value, an instant each, according to the previous process; empty: the stores are asked */
	struct nodeset gaps;     /* stores that may have been without the key at some time although these votes count */
};

struct adoption {
	bool vouched;        /* the previous process has handed over the votes: no store is asked */
	struct nodeset left; /* stores that have not denied the value */
	struct nodeset occupied; /* stores with another value, perhaps one that an earlier version of the daemon was to replace by this one */
	struct instant hopeless; /* nobody relies on the lease after this moment: the adoption is given up */
	struct instant deadline; /* the end of the lease; NEVER: not known */
	size_t n;
	char value[]; /* as the journal has it */
};

/* The caller sets `hopeless` and `deadline`. */
struct adoption *adoption_new(struct span value, unsigned nodes);
void adoption_over(struct lease *x);
/* What the next run needs to adopt a lease. The texts are borrowed. */
struct prior_lease adoption_record(struct core *core, const struct lease *x);

/* These are for LEASE_ADOPTING. Whether a record with this value is about this lease. */
bool adoption_is_of(const struct lease *x, struct span value);
/* The store answered that it does not have the value. What is set there later proves nothing, so the store is not asked again. */
void adoption_denied(struct lease *x, unsigned node, bool occupied);
/* So many stores have no key of the lease that nobody has the lock, even if all the other stores have our key. */
bool adoption_is_denied(const struct lease *x, unsigned nodes);
/* When the adoption is given up. If nobody renews the lease, its loss is reported before its end, as for any other lease. */
struct instant adoption_end(const struct lease *x);
/* For a lease that nobody renews: the ttl to ask for now so that the votes last until `deadline`. */
int64_t adoption_rest_us(const struct lease *x, struct instant now);

#endif
