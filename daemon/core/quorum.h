/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Votes. A vote at node i is a lower bound until[i], on this daemon's CLOCK_BOOTTIME, of the moment until which i still holds our
 * value: the time just before the command was sent + LEASE * (1 - rho) - delta. The lease holds at x iff at least Q of them are
 * greater than x, so its deadline D is the Q-th largest. Nothing else means held. Source: Antirez' Redlock with deadlines per node.
 */
#ifndef CORE_QUORUM_H
#define CORE_QUORUM_H

#include "daemon/core/event.h"
#include "daemon/core/mutant.h"

#define DRIFT_PPM 10000 /* rho: bound of the relative rate error of two clocks, parts per million */
#define DRIFT_SLACK_US (3 * MSEC) /* delta: 2 ms and Redis' granularity of 1 ms */

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
void votes_clear(struct votes *v);
/* The moment until which a command sent at `sent` that set a TTL for `lease_us` vouches. */
struct instant vote_until(struct instant sent, int64_t lease_us);
/* D: the Q-th largest of the first `nodes` votes. */
struct instant votes_deadline(const struct votes *v, unsigned nodes);
/* How many votes are greater than now. */
unsigned votes_at(const struct votes *v, unsigned nodes, struct instant now);
/* How long a store that may have lost memory must not vote: G = (MAXLEASE + MAXDELAY) * (1 + 2 rho) + delta. */
int64_t quarantine_us(int64_t max_lease_us, int64_t max_delay_us);

#endif
