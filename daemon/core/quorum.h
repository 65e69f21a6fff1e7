/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Votes. A vote at node i is a lower bound until[i], on this daemon's CLOCK_BOOTTIME, of the moment until which i still holds our
 * value: the time just before the command was sent + LEASE * (1 - rho) - delta. The lease holds at x iff at least Q of them are
 * greater than x, so its deadline D is the Q-th largest. Nothing else means held. Source: Antirez' Redlock with deadlines per node.
 * See ALGORITHMS.md, Votes; Fencing tokens.
 */
#ifndef CORE_QUORUM_H
#define CORE_QUORUM_H

#include "daemon/core/event.h"
#include "daemon/core/mutant.h"

#define DRIFT_PPM 10000 /* rho: bound of the relative rate error of two clocks, parts per million */
#define DRIFT_SLACK_US (3 * MSEC) /* delta: 2 ms and Redis' granularity of 1 ms */

/*
 * Fences and clocks. Tokens of a name grow because the fence of each store never falls, and any two quorums share a store. A store that forgot its
 * fence gets one at its join; that must not be less than what it forgot. So, with S = SKEW_US, T = CLOCK_TOL and L = MAXLEASE + MAXDELAY:
 *
 *   used     a store's clock differs by at most T from the median of the others', or it is refused: two of them differ by at most 2 T
 *   limit    no script lets a fence run beyond the store's clock + S + 2 T, single tokens and what is said below apart
 *   join     after G > L since the loss, a join lifts the fence to the store's clock + S
 *
 * What it forgot was at most (clock at the loss) + S + 2 T. At the join its clock shows at least (clock at the loss) + 0.99 L - 2 T, even if the store
 * was replaced by one whose clock is behind by all that is tolerated. With T <= L / 5 that is enough: 0.99 L >= 4 T. And a store whose clock is
 * ahead, fresh from a join, is in nobody's way: its fence, at most (clock of another) + 2 T + S, is within the limit of every other.
 * A clock may be set back further than that. So a join lifts the fence above the largest that this daemon saw at any store as well: while no more than a
 * minority of them forgets, the others show what was forgotten. They are asked after G (fences.h): before that a vote of the store that forgot may still
 * count somewhere, and another token be granted on it. One that is out of reach may be the only one that knows it: so a join also lifts the fence to the limit
 * of the latest clock that this daemon saw at the store. Otherwise a loss may repeat tokens then: where too many forget, where this daemon was started after
 * the clock was set back, and under trust_first_start, which states that nothing was lost.
 * One store has no others to agree with: T = 0.
 *
 * Where clocks were set back by more than 2 T, fences may stand beyond the limit, each where it was; and that of a store whose clock is ahead beyond the limit
 * of others. Where no proposal is within it then, bases differ, and a floor that is the largest of them would be refused until the clocks have caught up.
 * Hence two rules for the second round of an acquire whose largest base is beyond the limit of a store that granted:
 *
 *   least    the token is the Q-th smallest base, and only stores whose base is no larger are asked and counted
 *   beyond   if that base is beyond the limit of its store as well, the others take it even beyond theirs
 *
 * And one for renewals and adoptions. Their floor is a token that a quorum granted, and a store that granted it on a smaller base, or was away then, would
 * refuse it until its clock has caught up: when another goes, the lease would be lost though a quorum is there.
 *
 *   kept     where a quorum of clocks is so far behind the token, a store takes it beyond its limit
 *
 * Tokens grow as before: what that rests on is that a store counts whose base is at most the token and whose fence is at least the token while the key is
 * ours, whichever Q stores these are. The limit keeps its purpose. A clock that is ahead spreads nothing: its fence is within its own limit. One that was
 * ahead and is right again spreads nothing either while Q others grant. And the floor is the fence of a store: the largest of all fences, and so what a
 * join has to lift a store to where clocks were set back, is no larger than before.
 */
#define SKEW_US (60 * SEC)
#define CLOCK_TOL_MOST_US (5 * SEC)
/* No fence was ever beyond the year 2112: what is larger was not written by us, and is spread to nobody. */
#define FENCE_MOST INT64_C(4500000000000000)

struct votes {
	struct instant until[NODES_MAX]; /* INSTANT_PAST: no vote */
};

/* Q = floor(N/2) + 1 */
static inline unsigned quorum_of(unsigned nodes)
{
	return nodes / 2 + (MUTATED(QUORUM_HALF) && nodes > 1 ? 0 : 1);
}

/* rho of a duration: how much longer another host's clock may take for it. */
int64_t drift_us(int64_t us);
/* Of the first `nodes`: nobody looks at more. */
static inline void votes_clear(struct votes *v, unsigned nodes)
{
	for (unsigned i = 0; i < nodes; i++)
		v->until[i] = INSTANT_PAST;
}

/* The moment until which a command sent at `sent` that set a TTL for `lease_us` vouches. */
struct instant vote_until(struct instant sent, int64_t lease_us);
/* D: the Q-th largest of the first `nodes` votes. */
struct instant votes_deadline(const struct votes *v, unsigned nodes);
/* T. Scripts tolerate twice that beyond the skew. */
int64_t clock_tol_us(unsigned nodes, int64_t max_lease_us, int64_t max_delay_us);
/* How long a store that may have lost memory must not vote: G = (MAXLEASE + MAXDELAY) * (1 + 2 rho) + delta. */
int64_t quarantine_us(int64_t max_lease_us, int64_t max_delay_us);

#endif
