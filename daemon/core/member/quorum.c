/* SPDX-License-Identifier: BSD-2-Clause */
/* Quorum arithmetic: pure functions of votes, and of other values of which each store has one. */
#include "daemon/core/member/quorum.h"

int64_t drift_us(int64_t us)
{
	return us / 1000000 * DRIFT_PPM + us % 1000000 * DRIFT_PPM / 1000000;
}

struct instant vote_until(struct instant sent, int64_t lease_us)
{
	return instant_add(sent, lease_us - drift_us(lease_us) - DRIFT_SLACK_US);
}

/* Insertion, smallest first: N is at most nine. */
static void sort_values(const int64_t *value, unsigned nodes, int64_t sorted[NODES_MAX])
{
	for (unsigned i = 0; i < nodes; i++) {
		unsigned at = i;

		for (; at > 0 && sorted[at - 1] > value[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = value[i];
	}
}

int64_t quorum_at_least(const int64_t *value, unsigned nodes)
{
	int64_t sorted[NODES_MAX];

	sort_values(value, nodes, sorted);
	return sorted[nodes - quorum_of(nodes)];
}

int64_t quorum_at_most(const int64_t *value, unsigned nodes)
{
	int64_t sorted[NODES_MAX];

	sort_values(value, nodes, sorted);
	return sorted[quorum_of(nodes) - 1];
}

struct instant votes_deadline(const struct instant until[], unsigned nodes)
{
	int64_t us[NODES_MAX];

	if (nodes == 1)
		return until[0];
	for (unsigned i = 0; i < nodes; i++)
		us[i] = until[i].us;
	return (struct instant){quorum_at_least(us, nodes)};
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
