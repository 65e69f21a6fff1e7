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

#include "daemon/core/op.h"

enum round_outcome {
	ROUND_PENDING,       /* not enough answers yet */
	ROUND_RACE,          /* a quorum has answered, and it is not won: what is still open may win it */
	ROUND_UNEVEN,        /* Q stores granted, on different bases; what is still open may agree with some */
	ROUND_RAISE,         /* Q stores granted, on different bases: a second round makes them agree */
	ROUND_WON,           /* Q stores granted one and the same token */
	/* Not won, and no answer can change that. */
	ROUND_TOO_LATE,      /* Q stores granted it, but so slowly that the lease would be lost at once */
	ROUND_RANGE_REFUSED, /* without the stores that refused the range of tokens there is no quorum; they grant a single token */
	ROUND_UNWANTED,      /* nobody waits any more, so only the store that was asked first was asked */
	ROUND_LEADER_TAKEN,  /* the store that was asked first has granted it to somebody else */
	ROUND_WRONG_TYPE,    /* a quorum has a key of another type */
	ROUND_HELD,          /* a quorum has one and the same holder, or keeps it for an older ticket */
	ROUND_SPLIT,         /* a quorum has answered, and nobody has one */
	ROUND_NO_ANSWER,     /* fewer useful answers than a quorum */
};

/* Of a question that takes or raises. now: the present, since a grant must be worth having. ROUND_WON tells the token. */
enum round_outcome round_outcome(const struct op *op, unsigned nodes, struct instant now, int64_t *ret_token);
/* Of a round that is not won: why. */
enum round_outcome round_failure(const struct op *op, unsigned nodes);
/* The store that was asked first has answered: ROUND_LEADER_TAKEN, or ROUND_PENDING: the others are to be asked. */
enum round_outcome round_led(const struct op *op);

/* The largest base of those that granted; -1: none did. */
int64_t round_largest(const struct op *op, unsigned nodes);
/* The Q-th smallest base of those that granted, if Q did: Q of them do with it. */
int64_t round_least(const struct op *op, unsigned nodes);

/* At how many stores the same holder stands as at this one; 0: nobody does. */
unsigned round_same_holder_at(const struct op *op, unsigned nodes, unsigned node);
/* At how many stores one and the same holder stands, at most. */
unsigned round_same_holder(const struct op *op, unsigned nodes);
/* When the lock may be free, as the round found it, ms; -1: never by itself. */
int64_t round_pttl_ms(const struct op *op, unsigned nodes);

#endif
