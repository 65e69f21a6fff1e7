/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lease: one value of ours at the stores, and the votes that vouch for it, whatever it is for. A value machine: it asks no store, tells nobody, and knows no
 * lock. move.c alone writes its state. `nodes` is the number of stores, so Q = nodes / 2 + 1.
 * See ALGORITHMS.md, Votes.
 */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include "daemon/base/mem.h"
#include "daemon/core/event/event.h"
#include "daemon/core/event/name.h"
#include "daemon/core/event/nodeset.h"
#include "daemon/core/event/value.h"
#include "daemon/core/lock/state.h"
#include "daemon/core/member/admission.h"
#include "daemon/core/member/quorum.h"


struct adoption; /* adopted_lease.h */
struct round;
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
	struct nodeset gaps;       /* stores that may have been without the key for a while, until all votes have been confirmed since: see vote_gaps.h */
	struct instant gaps_until; /* the last of these gaps was over */
	struct nodeset confirmed;  /* stores that have confirmed their vote, asked since gaps_until */
	struct nodeset gone;       /* stores whose last answer said that the key is not there, or another's: nothing of ours keeps others out there */
	struct instant stood;      /* D as it was before a store denied its vote: the holder may have been told so; 0: none did, or D is as late again */
	bool doubted;              /* somebody says that the lease was broken: the stores are asked again when the round is over, as it may have come before */
	bool wants_token;          /* the next round asks for a new token: see rebase.h */
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
	bool shared : 1;           /* at the stores it has a share of the key, beside those of other daemons; else the key is its own: see shared_lease.h */
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

#endif
