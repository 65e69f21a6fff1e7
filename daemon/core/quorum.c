/* SPDX-License-Identifier: BSD-2-Clause */
/* Quorum arithmetic: pure functions of votes. */
#include "daemon/core/quorum.h"

int64_t drift_us(int64_t us)
{
	return us / 1000000 * DRIFT_PPM + us % 1000000 * DRIFT_PPM / 1000000;
}

struct instant vote_until(struct instant sent, int64_t lease_us)
{
	return instant_add(sent, lease_us - drift_us(lease_us) - DRIFT_SLACK_US);
}

struct instant votes_deadline(const struct votes *v, unsigned nodes)
{
	struct instant sorted[NODES_MAX];
	unsigned n = 0;

	if (nodes == 1)
		return v->until[0];
	/* Insertion, largest first: N is at most nine. */
	for (unsigned i = 0; i < nodes; i++) {
		unsigned at = n++;

		for (; at > 0 && instant_before(sorted[at - 1], v->until[i]); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = v->until[i];
	}
	/* cppcheck-suppress uninitvar ; nodes is never 0, and all of them are there */
	return sorted[quorum_of(nodes) - 1];
}

int64_t quarantine_us(int64_t max_lease_us, int64_t max_delay_us)
{
	int64_t longest = max_lease_us + max_delay_us;

	return longest + drift_us(2 * longest) + DRIFT_SLACK_US;
}

int64_t clock_tol_us(unsigned nodes, int64_t max_lease_us, int64_t max_delay_us)
{
	int64_t fifth = (max_lease_us + max_delay_us) / 5;

	return nodes < 2 ? 0 : fifth < CLOCK_TOL_MOST_US ? fifth : CLOCK_TOL_MOST_US;
}
