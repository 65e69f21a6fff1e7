/* SPDX-License-Identifier: BSD-2-Clause */
/* One question to all stores: its calls, with the fencing token that it proposes, and its outcome: won, held, split, …. */
#ifndef CORE_ROUND_H
#define CORE_ROUND_H

#include "daemon/base/pool.h"
#include "daemon/core/event/event.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/member/members.h"

/*
 * Calls: what was sent to which store and when, and which stores have not answered. They are embedded in a round, a release or another struct that asks,
 * which lives until every call has been answered. So a late answer always finds it.
 * See ALGORITHMS.md, Rounds.
 */

enum calls_owner {
	CALLS_OF_ROUND,   /* struct round */
	CALLS_OF_RELEASE, /* struct release */
	CALLS_OF_TABLE,   /* struct deadlocks */
	CALLS_OF_HOME,    /* struct home_question */
	CALLS_OF_MESSAGE,    /* struct message, remote_holders.c */
};

struct calls {
	uint32_t slot;        /* its number in each answer */
	uint8_t owner;        /* enum calls_owner: what it is embedded in */
	struct nodeset asked; /* a call was sent */
	struct nodeset open;  /* … and is not answered */
	struct name *name;    /* it has a reference while the calls live */
	struct instant begun;
	struct instant sent[NODES_MAX];
};

struct call_table {
	struct core *core;
	struct members *members;
	struct calls **slot;
	uint32_t slots, free_head; /* free slots are a list of indexes; see round.c */
	uint32_t *next_free;
	unsigned live;
};

void call_table_init(struct call_table *t, struct core *core, struct members *members);
void call_table_release(struct call_table *t); /* nothing is live */

#define CALLS_SLOT_NONE UINT32_MAX
void call_table_grow(struct call_table *t);

/* The calls are zero-filled. Inline, since each LOCK and each UNLOCK opens and closes some. */
static inline void calls_open(struct call_table *t, struct calls *c, enum calls_owner owner, struct name *name)
{
	if (t->free_head == CALLS_SLOT_NONE)
		call_table_grow(t);
	c->slot = t->free_head;
	t->free_head = t->next_free[c->slot];
	t->slot[c->slot] = c;
	t->live++;
	c->owner = (uint8_t)owner;
	c->begun = t->core->now;
	c->name = name;
	name->refs++;
}

/* No call is open. */
static inline void calls_close(struct call_table *t, struct calls *c)
{
	c->name->refs--;
	t->slot[c->slot] = NULL;
	t->next_free[c->slot] = t->free_head;
	t->free_head = c->slot;
	t->live--;
}

/* Sends a call, and notes a time before it can leave. The caller fills in the rest of the call before any other effect; what it leaves out is 0. */
struct call *calls_send(struct call_table *t, struct calls *c, unsigned node, enum call_kind kind);
/* Tracks that the call is answered, and returns the calls that it belongs to. NULL: no such call is open. */
struct calls *calls_answered(struct call_table *t, const struct answer *a);

/*
 * Until when this node may still run a call that sets a key and was sent over an earlier connection, not before `since` and not after `last`. A call that is
 * sent now may overtake it. PAST: there is no such call.
 */
static inline struct instant calls_overtaken_until(const struct call_table *t, unsigned node, struct instant since, struct instant last)
{
	const struct member *m = &t->members->node[node];

	return instant_before(m->up_since, since) ? INSTANT_PAST : instant_add(instant_min(last, m->up_since), m->overtaken_us);
}

/* When the last of these nodes was asked. */
struct instant calls_sent_last(const struct call_table *t, const struct calls *c, struct nodeset nodes);
/* When the timeout of all stores that have not answered has passed. */
struct instant calls_slow_at(const struct call_table *t, const struct calls *c);
/* Marks the stores as silent whose timeout has passed. */
void calls_stall(struct call_table *t, const struct calls *c);

/* A time in milliseconds, as a store takes it, rounded up. */
static inline int64_t whole_ms(int64_t us)
{
	return (us + MSEC - 1) / MSEC;
}

/*
 * The sum of the answers to one question to all stores. A round counts and decides nothing: round_outcome() is a value, and its caller acts on it. `nodes`
 * is the number of stores, so Q = nodes / 2 + 1.
 *
 * A token is agreed when Q stores granted it as the base of their answer. If bases differ, a second round raises the fence, see members.h. Votes are split
 * when a quorum answered and nobody can have Q of them.
 * See ALGORITHMS.md, Rounds.
 */

struct pending;

enum question {
	QUESTION_ACQUIRE,
	QUESTION_RAISE, /* second round of an acquire: lifts the fence, only at stores that granted */
	QUESTION_RENEW,
	QUESTION_ADOPT, /* as RENEW, for a lease of the previous run */
	QUESTION_LOOK,  /* who has the name; see break.c */
	QUESTION_HOLDER, /* what is to be broken; see break.c */
	QUESTION_BREAK, /* takes the name from its holder by force */
};

struct round {
	struct calls calls;
	struct timer timer;    /* its end; after that, when all stores that were asked have had the whole timeout */
	enum question question;
	bool decided;          /* later answers are evidence only */
	uint8_t form;          /* enum form: the form in which stores are asked to keep the value */
	bool expired;          /* its time is over: later answers do not count for the decision */
	struct lease *lease;   /* RENEW, ADOPT: its subject; else NULL */
	struct lease_value value; /* ACQUIRE, RAISE: the round's own until it has won; RENEW, ADOPT: the lease's */
	struct placed placed;  /* ACQUIRE, RAISE: where its value may be */
	struct pending *pending; /* LOOK, HOLDER, BREAK: the SHOW or the BREAK that it answers */
	unsigned extends;      /* RENEW: how many EXTENDs, from the head of the lease's list, it answers */
	struct nodeset granted; /* granted, extended */
	struct nodeset refused; /* not done: refused, held by another, missing. ACQUIRE: so the store does not have its value */
	struct nodeset taken;   /* refused, because the store has another value */
	struct nodeset queued_behind; /* refused, because an older ticket is first in the queue */
	struct nodeset wrong_type; /* refused, because the store has a key of another type */
	struct nodeset range_refused; /* refused, because the range of tokens would run ahead of the store's clock */
	struct nodeset absent;    /* LOOK, HOLDER, BREAK: stores that have nothing */
	struct nodeset not_asked; /* ACQUIRE: to be asked after the leading store, unless another value is there */
	struct nodeset left_out;  /* ACQUIRE: to be asked when there is room */
	int64_t ttl_us, delay_us; /* the TTL of the key is their sum */
	int64_t range;         /* tokens beyond the first that are asked for */
	struct nodeset sure;   /* RENEW: see struct placed; only these stores can give the token */
	struct nodeset lifted; /* RENEW: the stores that gave it */
	int64_t writer_us;     /* the earliest moment in the tickets of writers elsewhere, while readers have the name or get it; 0: none was shown */
	int64_t token;         /* RAISE: the token to be granted; RENEW: the token that its lease is to get in addition, 0: none */
	struct instant until;  /* ACQUIRE: decided by then */
	int64_t base[NODES_MAX];    /* granted: the base */
	int64_t pttl_ms[NODES_MAX]; /* taken: how long the present key will stay; -1: for ever */
	uint16_t taken_limit[NODES_MAX]; /* taken: the use of the name there, see claim.h; USE_UNKNOWN */
	uint64_t taken_by[NODES_MAX]; /* taken: a hash of the present value; one and the same for all foreign values */
	struct votes votes;
};

struct rounds {
	struct call_table *calls;
	struct pool pool;
};

void rounds_init(struct rounds *rs, struct call_table *calls);
void rounds_release(struct rounds *rs, struct pool *pendings); /* frees all rounds, and their pendings */

/* A round about the value of the lease, on its terms. lease NULL: the caller sets what is asked for. */
struct round *round_new(struct rounds *rs, enum question question, struct name *name, struct lease *lease);
void round_free(struct rounds *rs, struct round *r); /* no call is open */

static inline struct round *round_of_calls(struct calls *c)
{
	return container_of(c, struct round, calls);
}

/* Where the value of the round may be. */
static inline struct placed *round_placed(struct round *r)
{
	return r->lease ? &r->lease->placed : &r->placed;
}

/* RENEW: the floor for the fences. */
static inline int64_t round_floor(const struct round *r)
{
	return r->token ? r->token + r->range : r->lease->token_end;
}

static inline int64_t round_px_us(const struct round *r)
{
	return r->ttl_us + r->delay_us;
}

/*
 * Counts an answer. joined: the store is joined, also after this answer. A store that is not joined may have lost keys of others, for example because its
 * clock was set forward. A value that it grants or puts back is there, but is not a vote.
 */
void round_count(struct round *r, const struct answer *a, bool joined);

/* The nodes that did what was asked, or reported who is in the way. */
static inline struct nodeset round_informative(const struct round *r)
{
	return nodeset_or(nodeset_or(r->taken, r->queued_behind), r->granted);
}

/* Some node reported that somebody else has the name, or is first. */
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
	ROUND_RANGE_REFUSED,  /* there is no quorum without the stores that refused the range of tokens; they would grant a single token */
	ROUND_UNWANTED,       /* nobody waits any more, so only the leading store was asked */
	ROUND_LEADER_TAKEN,   /* the store that was asked first has granted the name to somebody else, or reserves it for an older ticket */
	ROUND_WRONG_TYPE,     /* a quorum has a key of another type */
	ROUND_HELD_ELSEWHERE, /* a quorum has one and the same holder; or a quorum refuses, some for an older ticket */
	ROUND_SPLIT,          /* a quorum granted, or reported who is in the way; nobody can have Q votes */
	ROUND_NO_ANSWER,      /* fewer useful answers than a quorum */
};

/* Whether a quorum reports that somebody uses the name otherwise than `limit` says, see claim.h; and the other use. */
bool round_is_in_use(const struct round *r, unsigned nodes, unsigned limit, unsigned *ret_other);
/* Of an ACQUIRE or a RAISE. A grant must still be worth having at `now`. ROUND_WON sets *ret_token. */
enum round_outcome round_outcome(const struct round *r, unsigned nodes, struct instant now, int64_t *ret_token);
/* Why a round is not won. */
enum round_outcome round_failure(const struct round *r, unsigned nodes);
/*
 * The outcome of the answer of this store, which was asked alone. ROUND_LEADER_TAKEN. ROUND_HELD_ELSEWHERE: by now a quorum has one and the same holder, or
 * reserves the name for an older ticket. ROUND_PENDING: the other stores are to be asked.
 */
enum round_outcome round_led(const struct round *r, unsigned nodes, unsigned node);

/* The largest base that a store granted; -1: none did. */
int64_t round_largest(const struct round *r, unsigned nodes);
/* The Q-th smallest base that a store granted, if Q stores did: Q of them granted no larger one. */
int64_t round_least(const struct round *r, unsigned nodes);

/* How many stores have the same value in the way as this one; 0: this one has none. */
unsigned round_same_value_at(const struct round *r, unsigned nodes, unsigned node);
/* The largest number of stores that have one and the same value in the way. */
unsigned round_same_value(const struct round *r, unsigned nodes);
/* In how many ms a quorum may be free, according to the TTLs that the round found; -1: never. */
int64_t round_pttl_ms(const struct round *r, unsigned nodes);

/*
 * Fencing tokens in a round: the first that it proposes, how many it reserves, and to what its grants allow a second round to lift the fence. Asks nobody.
 * See members.h, and ALGORITHMS.md, Fencing tokens.
 */

#define TOKENS_RANGE_MOST 1024
#define TOKENS_AHEAD 64 /* for waiters to come */
#define TOKENS_NAMES 512 /* places for the names that were contended last: a power of two */

struct tokens {
	int64_t seen;         /* the largest token in any credible reply */
	int64_t proposed;     /* the last token of the last proposal */
	struct instant modest_until; /* no proposals before this moment: one was within the limit of one store and beyond that of another */
	struct instant narrow_until; /* single tokens only before this moment: a store's fence is as far ahead of its clock as allowed */
	struct {
		uint64_t hash;
		struct instant until;
	} contended[TOKENS_NAMES];   /* by the hash of the name; another name may take the place */
};

/* Somebody waits for this name while it is held here: more waiters are expected in the next seconds. */
void tokens_expect(struct tokens *t, const struct core *core, const struct name *name);

static inline void tokens_saw(struct tokens *t, int64_t token)
{
	if (token > t->seen)
		t->seen = token;
}

/*
 * What a round that reserves a range proposes, by a hybrid logical clock: above every token that was seen anywhere, and above what other rounds proposed,
 * whose answers may be under way. 0: nothing, each store takes its own next token.
 */
static inline int64_t tokens_propose(struct tokens *t, const struct core *core, int64_t range)
{
	int64_t proposal = core->wall_us;

	if (instant_before(core->now, t->modest_until))
		return 0;
	if (t->seen >= proposal)
		proposal = t->seen + 1;
	if (t->proposed >= proposal && t->proposed < core->wall_us + SEC) /* otherwise our clock has been set back, and no store would follow */
		proposal = t->proposed + 1;
	t->proposed = proposal + range;
	return proposal;
}

/*
 * How many tokens a round reserves beyond the first, for hand-overs without a round: one for each other local waiter, and at least TOKENS_AHEAD if the name
 * was contended lately.
 */
int64_t tokens_range(const struct tokens *t, const struct core *core, const struct name *name, unsigned waiting);

/* A floor was refused: no proposals for a while. By then the limit of that store has passed the base; a proposal now would lift the base, too. */
void tokens_be_modest(struct tokens *t, const struct core *core);
/* A range was refused. A single token is never refused because of the clock. */
void tokens_be_narrow(struct tokens *t, struct instant now);

/* This base exceeds the limit of a store that granted it: the clock of that store was set back. See members.h. */
bool tokens_base_is_beyond(const struct members *ms, const struct round *r, int64_t base);
/* A store that granted may refuse this base as a floor: its clock is behind, or was set back, or is hardly known. */
bool tokens_base_is_far(const struct members *ms, const struct round *r, int64_t base);

/* The questions of a round, as calls. A call that may set the value notes where the value may be from now on, and until when. */

void ask_acquire(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t proposal, struct span ticket, int64_t reserve_us);
/* A missing key is put back if the call runs before put_back; PAST: never. */
struct call *ask_extend(struct call_table *t, struct round *r, unsigned node, struct span value, int64_t floor, struct instant put_back);
/* The second round of an acquire. beyond: the fence is lifted even beyond the limit. */
void ask_raise(struct call_table *t, struct round *r, unsigned node, struct span value, bool beyond);
/* what: see lua/break.lua. */
void ask_break(struct call_table *t, struct round *r, unsigned node, struct span what);
void ask_look(struct call_table *t, struct round *r, unsigned node);

#endif
