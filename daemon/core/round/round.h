/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the answers to one question to all stores come to. A round counts and decides nothing: round_outcome() is a value, and its caller acts on it. `nodes`
 * is the number of stores, so Q = nodes / 2 + 1.
 *
 * A token is agreed when Q stores granted it as the base of their answer; where bases differ a second round raises the fence, see quorum.h. Votes are split
 * when a quorum answered and nobody can have Q of them.
 * See ALGORITHMS.md, Rounds.
 */
#ifndef CORE_ROUND_H
#define CORE_ROUND_H

#include "daemon/base/pool.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/round/calls.h"

struct pending;

enum question {
	QUESTION_ACQUIRE,
	QUESTION_RAISE, /* second round of an acquire: lifts the fence, only at stores that granted */
	QUESTION_RENEW,
	QUESTION_ADOPT, /* as RENEW, of a lease of the previous run */
	QUESTION_LOOK,  /* who has it; see ask_holder.c */
	QUESTION_HOLDER, /* what is to be broken; see break.c */
	QUESTION_BREAK, /* takes it from its holder by force */
};

struct round {
	struct calls calls;
	struct timer timer;    /* its end; after that, when all stores that were asked have had the timeout */
	enum question question;
	bool decided;          /* later answers are evidence only */
	uint8_t form;          /* enum form: how the stores are asked to have the value */
	bool expired;          /* its time is over: stores that have not answered by now do not count for the decision */
	struct lease *lease;   /* RENEW, ADOPT: what it is about; else NULL */
	struct lease_value value; /* ACQUIRE, RAISE: its own until it has won; RENEW, ADOPT: the lease's */
	struct placed placed;  /* ACQUIRE, RAISE: where its value may stand */
	struct pending *pending; /* LOOK, HOLDER, BREAK: the SHOW or the BREAK that it answers */
	unsigned extends;      /* RENEW: how many EXTENDs, from the head of the lease's list, it answers */
	struct nodeset granted; /* granted, extended */
	struct nodeset refused; /* did not do it: refused, held by another, missing. ACQUIRE: so its value is not there */
	struct nodeset taken;   /* refused, because another value stands there */
	struct nodeset queued_behind; /* refused, because an older ticket is first in the queue */
	struct nodeset wrong_type; /* refused, because a key of another type stands there */
	struct nodeset range_refused; /* refused, because the range of tokens would run ahead of the store's clock */
	struct nodeset absent;    /* LOOK, HOLDER, BREAK: nothing stands there */
	struct nodeset not_asked; /* ACQUIRE: to be asked after the leading store, unless that is taken */
	struct nodeset left_out;  /* ACQUIRE: to be asked when there is room */
	int64_t ttl_us, delay_us; /* the TTL of the key is their sum */
	int64_t range;         /* tokens beyond the first that are asked for */
	struct nodeset sure;   /* RENEW: see struct placed; only these can give the token */
	struct nodeset lifted; /* RENEW: they did */
	int64_t writer_us;     /* the first moment in the tickets of writers elsewhere, while readers have the name or get it; 0: none was shown */
	int64_t token;         /* RAISE: the token to be granted; RENEW: the one that its lease is to have besides, 0: none */
	struct instant until;  /* ACQUIRE: decided by then */
	int64_t base[NODES_MAX];    /* granted: the base */
	int64_t pttl_ms[NODES_MAX]; /* taken: how long the key that stands there will stay; -1: for ever */
	uint16_t taken_limit[NODES_MAX]; /* taken: what the name is used as there, see claim.h; USE_UNKNOWN */
	uint64_t taken_by[NODES_MAX]; /* taken: a hash of the value that stands there, the same for all foreign values */
	struct votes votes;
};

struct rounds {
	struct call_table *calls;
	struct pool pool;
};

void rounds_init(struct rounds *rs, struct call_table *calls);
void rounds_release(struct rounds *rs, struct pool *pendings); /* frees all rounds, and their pendings */

/* A round about the value of the lease, on its terms. lease NULL: the caller sets what is to be asked for. */
struct round *round_new(struct rounds *rs, enum question question, struct name *name, struct lease *lease);
void round_free(struct rounds *rs, struct round *r); /* no call is open */

static inline struct round *round_of_calls(struct calls *c)
{
	return container_of(c, struct round, calls);
}

/* Where the value that the round asks about may stand. */
static inline struct placed *round_placed(struct round *r)
{
	return r->lease ? &r->lease->placed : &r->placed;
}

/* RENEW: what the fences are lifted to. */
static inline int64_t round_floor(const struct round *r)
{
	return r->token ? r->token + r->range : r->lease->token_end;
}

static inline int64_t round_px_us(const struct round *r)
{
	return r->ttl_us + r->delay_us;
}

/*
 * Counts an answer. joined: the store is joined, after this answer as well. A store that is not joined may have lost keys of others, for example because its
 * clock was set forward. What it grants or puts back stands there, but is no vote.
 */
void round_count(struct round *r, const struct answer *a, bool joined);

/* The nodes that did what was asked, or said who is in the way. */
static inline struct nodeset round_informative(const struct round *r)
{
	return nodeset_or(nodeset_or(r->taken, r->queued_behind), r->granted);
}

/* Some node said that somebody else has it, or is first. */
static inline bool round_is_contended(const struct round *r)
{
	return nodeset_any(nodeset_or(r->taken, r->queued_behind));
}

enum round_outcome {
	ROUND_PENDING,        /* not enough answers yet */
	ROUND_UNDECIDED,      /* a quorum has answered, and the round is not won; open calls may still win it, or show who has the name */
	ROUND_UNEVEN,         /* Q stores granted, on different bases; an open call may still agree with some */
	ROUND_RAISE,          /* Q stores granted, on different bases: a second round makes them agree */
	ROUND_WON,            /* Q stores granted one and the same token */
	/* Not won, and no answer can change that. */
	ROUND_TOO_LATE,       /* Q stores granted it, but so slowly that the lease would be lost at once */
	ROUND_RANGE_REFUSED,  /* without the stores that refused the range of tokens there is no quorum; they grant a single token */
	ROUND_UNWANTED,       /* nobody waits any more, so no store is asked beyond the leading one */
	ROUND_LEADER_TAKEN,   /* the store that was asked first has granted it to somebody else, or keeps it for an older ticket */
	ROUND_WRONG_TYPE,     /* a quorum has a key of another type */
	ROUND_HELD_ELSEWHERE, /* a quorum has one and the same holder; or a quorum refuses, some for an older ticket */
	ROUND_SPLIT,          /* a quorum granted, or said who is in the way; nobody can have Q votes */
	ROUND_NO_ANSWER,      /* fewer useful answers than a quorum */
};

/* Whether a quorum says that somebody uses the name as something else than `limit` tells, see claim.h; and as what. */
bool round_is_in_use(const struct round *r, unsigned nodes, unsigned limit, unsigned *ret_other);
/* Of an ACQUIRE or a RAISE. A grant must be worth having at the moment `now`. ROUND_WON sets *ret_token. */
enum round_outcome round_outcome(const struct round *r, unsigned nodes, struct instant now, int64_t *ret_token);
/* Why a round is not won. */
enum round_outcome round_failure(const struct round *r, unsigned nodes);
/*
 * What the answer of this store, which was asked alone, comes to: ROUND_LEADER_TAKEN; ROUND_HELD_ELSEWHERE, if by now a quorum has one and the same holder, or
 * keeps the name for an older ticket; or ROUND_PENDING: the other stores are to be asked.
 */
enum round_outcome round_led(const struct round *r, unsigned nodes, unsigned node);

/* The largest base that a store granted; -1: none did. */
int64_t round_largest(const struct round *r, unsigned nodes);
/* The Q-th smallest base that a store granted, if Q stores did: it is large enough for Q of them. */
int64_t round_least(const struct round *r, unsigned nodes);

/* At how many stores the same value stands in the way as at this one; 0: none does here. */
unsigned round_same_value_at(const struct round *r, unsigned nodes, unsigned node);
/* At how many stores one and the same value stands in the way, at most. */
unsigned round_same_value(const struct round *r, unsigned nodes);
/* In how many ms a quorum may be free, by the TTLs that the round found; -1: never. */
int64_t round_pttl_ms(const struct round *r, unsigned nodes);

#endif
