/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Votes. The vote until[i], on this daemon's CLOCK_BOOTTIME, is a lower bound of the moment until which node i holds our value: the
 * time just before the command was sent + LEASE * (1 - rho) - delta. The lease holds at x if and only if at least Q votes are
 * greater than x, so its deadline D is the Q-th largest vote. Source: Antirez' Redlock with deadlines per node.
 * See ALGORITHMS.md, Votes; Fencing tokens.
 */
#ifndef CORE_QUORUM_H
#define CORE_QUORUM_H

#include "daemon/core/event/event.h"

#define DRIFT_PPM 10000 /* rho: bound of the relative rate error of two clocks, parts per million */
#define DRIFT_SLACK_US (3 * MSEC) /* delta: 2 ms, and the granularity of Redis, 1 ms */

/*
 * Fences and clocks. Tokens of a name grow because the fence of a store never falls, and any two quorums share a store. A store that forgot its fence
 * gets a new one at its join, which must be no less than the forgotten one. With S = SKEW_US, T = CLOCK_TOL and L = MAXLEASE + MAXDELAY:
 *
 *   used     a store is refused if its clock differs by more than T from the median of the others. So the clocks of two usable stores differ by at most 2 T
 *   limit    no script lets a fence run beyond the store's clock + S + 2 T, except for single tokens and the rules below
 *   join     a join comes after G > L since the loss, and lifts the fence to the store's clock + S
 *
 * The forgotten fence was at most (clock at the loss) + S + 2 T. At the join the clock shows at least (clock at the loss) + 0.99 L - 2 T, even if the store
 * was replaced by one whose clock is as far behind as tolerated. With T <= L / 5 that suffices: 0.99 L >= 4 T. A store that has just joined with a clock
 * that is ahead blocks nobody: its fence is at most (clock of another) + 2 T + S, which is within the limit of every other store.
 *
 * A clock may be set back by more than that. So a join also lifts the fence above the largest fence that this daemon saw at any store: while no more than
 * a minority forgets, the others show what was forgotten. They are asked after G (fences.h). Before that, a vote of the store that forgot may still count
 * somewhere, and another token may be granted with it. The only store that knows the fence may be out of reach. So a join also lifts the fence to the limit
 * of the latest clock that this daemon saw at the joining store. Tokens may repeat after a loss in three cases only: too many stores forget; this daemon
 * was started after the clock was set back; trust_first_start, which states that nothing was lost.
 * A single store has no others to agree with: T = 0.
 *
 * If clocks were set back by more than 2 T, a fence may exceed the limit of its own store, and the fence of a store whose clock is ahead may exceed the
 * limit of others. If no proposal is within the limits then, bases differ, and a floor at the largest base would be refused until the clocks have caught
 * up. Hence two rules for the second round of an acquire whose largest base exceeds the limit of a store that granted:
 *
 *   least    the token is the Q-th smallest base, and only stores whose base is no larger are asked and counted
 *   beyond   if that base exceeds the limit of its own store as well, the others accept it beyond their limits
 *
 * And one rule for renewals and adoptions. Their floor is a token that a quorum granted. A store that granted on a smaller base, or was away then, would
 * refuse that floor until its clock has caught up. If another store failed meanwhile, the lease would be lost although a quorum is there.
 *
 *   kept     if a quorum of clocks is that far behind the token, a store accepts the floor beyond its limit
 *
 * Tokens still grow. That needs only this of each store that counts, whichever Q stores these are: its base is at most the token, and its fence is at least
 * the token while the key is ours. The limit keeps its purpose. A clock that is ahead spreads nothing, because its fence is within its own limit. A clock
 * that was ahead and is right again spreads nothing while Q others grant. And the floor is the fence of some store, so the largest of all fences, to which
 * a join lifts, does not grow.
 */
#define SKEW_US (60 * SEC)
#define CLOCK_TOL_MOST_US (5 * SEC)
/* The year 2112. No redlockd writes a larger fence, so a larger one is not passed on to other stores. */
#define FENCE_MOST INT64_C(4500000000000000)

struct votes {
	struct instant until[NODES_MAX]; /* INSTANT_PAST: no vote */
};

/* Q = floor(N/2) + 1 */
static inline unsigned quorum_of(unsigned nodes)
{
	return nodes / 2 + 1;
}

/* The Q-th largest of the values, one for each store: at Q stores the value is at least that. */
int64_t quorum_at_least(const int64_t *value, unsigned nodes);
/* The Q-th smallest: at Q stores the value is at most that. */
int64_t quorum_at_most(const int64_t *value, unsigned nodes);

/* rho of a duration: by how much another host's clock may differ over it. */
int64_t drift_us(int64_t us);
/* Clears the first `nodes` votes; no others are used. */
static inline void votes_clear(struct instant until[], unsigned nodes)
{
	for (unsigned i = 0; i < nodes; i++)
		until[i] = INSTANT_PAST;
}

/* The vote of a command that was sent at `sent` and set a TTL for `lease_us`. */
struct instant vote_until(struct instant sent, int64_t lease_us);
/* D: the Q-th largest of the first `nodes` votes. */
struct instant votes_deadline(const struct instant until[], unsigned nodes);
/* T. Scripts let a fence run up to SKEW_US + 2 T beyond the store's clock. */
int64_t clock_tol_us(unsigned nodes, int64_t max_lease_us, int64_t max_delay_us);
/* G: how long a store that may have lost memory must not vote: (MAXLEASE + MAXDELAY) * (1 + 2 rho) + delta. */
int64_t quarantine_us(int64_t max_lease_us, int64_t max_delay_us);

#endif
