/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/acquire.c, members.c: fencing tokens where clocks were set back or differ, and fences that are beyond them: locks are granted and kept all
 * the same, and a fence that is not ours is not spread.
 */
#include "tests/fixture/resumable.h"

#include <check.h>

/* How far all clocks are set back, how far the fence of each of three stores is ahead before that, and which store is down then (-1: none). */
static const struct set_back {
	int64_t by, ahead[3];
	int down;
} set_back[] = {
	{73 * SEC, {0, 1000, 2000}, -1},
	{3600 * SEC, {2000, 1000, 0}, -1},
	{73 * SEC, {0, 1000, 2000}, 1},
	{3600 * SEC, {2000, 1000, 0}, 0},
	{73 * SEC, {3600 * SEC, 3600 * SEC, 0}, 1}, /* store 2 was away for an hour */
	{73 * SEC, {3600 * SEC, 3600 * SEC + 1000, 0}, 0},
};

static void clocks_are_set_back(const struct set_back *how)
{
	cluster_open(3);
	daemon_starts(0);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		memory_set_fence(cluster.node[i].memory, memory_fence(cluster.node[i].memory) + how->ahead[i]);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -how->by;
	passes(3 * SEC);
	if (how->down >= 0)
		falls((unsigned)how->down);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(clocks_that_are_set_back_stop_no_grant, (int)(sizeof(set_back) / sizeof(set_back[0])))
{
	int64_t fence = 0;

	clocks_are_set_back(&set_back[_i]);
	for (unsigned k = 1; k <= 5; k++) {
		int64_t before = fence;

		says(k, "LOCK a wait=10s");
		passes(500 * MSEC);
		fence = number_in(hears(k, GRANT), "fence");
		ck_assert_int_gt(fence, before);
		says(k, "UNLOCK a");
		if (set_back[_i].down >= 0 && k % 2)
			comes((unsigned)set_back[_i].down);
		else if (set_back[_i].down >= 0)
			falls((unsigned)set_back[_i].down);
		passes(2 * SEC);
	}
}

/* With one of three down the first refusal of a range ends the round: what the other would say of it is not known. */
TEST(ranges_that_are_refused_at_a_bare_majority_stop_no_grant)
{
	cluster_begin(3);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -73 * SEC;
	passes(3 * SEC);
	falls(0);
	for (unsigned i = 1; i < 3; i++)
		feels(i, MOOD_SILENT);
	for (unsigned k = 1; k <= 3; k++)
		says(k, "LOCK a wait=10s");
	for (unsigned k = 1; k <= 3; k++) {
		for (unsigned ms = 0; ms < 500; ms++) {
			passes(MSEC);
			serves(1, waiting_at(1) > 0);
			serves(2, waiting_at(2) > 0);
		}
		hears(k, GRANT);
		says(k, "UNLOCK a");
		hears(k, "OK name=a count=0");
	}
	for (unsigned i = 1; i < 3; i++)
		feels(i, MOOD_WELL);
}

/* The daemon's clock is ahead of the stores' by so much that its proposals are within the limit of one and beyond that of the other, again and again. */
TEST(a_proposal_between_the_limits_of_two_clocks_stops_no_grant)
{
	cluster_open(3);
	daemon_starts(0);
	passes(2 * SEC);
	falls(1);
	cluster.node[0].clock_us = 100 * MSEC - cluster.conf.skew_us;
	cluster.node[2].clock_us = -100 * MSEC - cluster.conf.skew_us;
	passes(300 * SEC);
	for (unsigned k = 1; k <= 5; k++) {
		says(k, "LOCK a wait=10s");
		passes(SEC);
		hears(k, GRANT);
		says(k, "UNLOCK a");
		passes(20 * SEC);
	}
}

/* The fence of one store is beyond its clock. The daemon does not spread it as long as two other stores suffice. */
TEST(a_fence_far_ahead_is_not_spread_where_a_quorum_grants_less)
{
	int64_t far;

	cluster_begin(3);
	passes(2 * SEC);
	far = memory_fence(cluster.node[0].memory) + 3600 * SEC;
	memory_set_fence(cluster.node[0].memory, far);
	memory_set_fence(cluster.node[1].memory, memory_fence(cluster.node[1].memory) + 1000);
	says(1, "LOCK a wait=10s");
	passes(500 * MSEC);
	ck_assert_int_lt(number_in(hears(1, GRANT), "fence"), far);
	ck_assert_int_lt(memory_fence(cluster.node[1].memory), far);
	ck_assert_int_lt(memory_fence(cluster.node[2].memory), far);
	/* With one of the two away it takes the store with the high fence to grant anything. */
	says(1, "UNLOCK a");
	falls(1);
	passes(SEC);
	says(2, "LOCK a wait=10s");
	passes(500 * MSEC);
	ck_assert_int_gt(number_in(hears(2, GRANT), "fence"), far);
}

/*
 * The fence is within the limit of its store's clock, which is ahead by less than is tolerated, and beyond the limits of the others. The clock of this host is
 * ahead of them all, so its proposals make no bases equal.
 */
TEST(a_fence_between_the_limits_of_two_clocks_stops_no_grant)
{
	int64_t ahead;

	cluster_open(3);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = (i ? 0 : 1500 * MSEC) - 100 * SEC;
	daemon_starts(0);
	passes(2 * SEC);
	ahead = 2 * SEC + 2 * cluster.daemon[0].conf.clock_tol_us + 1200 * MSEC;
	memory_set_fence(cluster.node[0].memory, memory_fence(cluster.node[1].memory) + ahead);
	memory_set_fence(cluster.node[2].memory, memory_fence(cluster.node[1].memory) + 1000);
	for (unsigned k = 1; k <= 5; k++) {
		says(k, "LOCK a wait=10s");
		passes(200 * MSEC);
		hears(k, GRANT);
		says(k, "UNLOCK a");
		hears(k, "OK name=a count=0");
	}
}

/* All clocks were set back. The store that was away when the lock was granted takes part in its renewals, so another store may fail then. */
TEST(a_store_that_was_away_accepts_a_grant_beyond_its_clock)
{
	cluster_begin(3);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -3600 * SEC;
	passes(3 * SEC);
	falls(2);
	says(1, "LOCK a");
	hears(1, GRANT);
	comes(2);
	passes(10 * SEC);
	ck_assert(key_is_there(2, "a"));
	falls(0);
	passes(20 * SEC);
	hears_nothing(1);
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

/* The store was away during other grants, so its base differed from that of the token. */
TEST(a_grant_beyond_all_clocks_is_adopted_by_a_store_with_a_smaller_fence)
{
	struct secret s;

	cluster_begin(3);
	passes(2 * SEC);
	s = says_hello(1, "grace=30s");
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -3600 * SEC;
	passes(3 * SEC);
	falls(2);
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	comes(2);
	passes(SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	falls(0);
	daemon_returns(0);
	passes(SEC);
	resumes(3, &s);
	hears(3, "\\* name=a fence=* valid_ms=* count=1");
	hears(3, "OK session=* n=1");
}

/* No clock shows such a moment. Only redlockd may write fences, so a foreign one stays where it is. */
TEST(a_fence_beyond_all_clocks_is_not_spread)
{
	cluster_begin(3);
	passes(2 * SEC);
	memory_set_fence(cluster.node[0].memory, INT64_C(4500000000000000));
	falls(1);
	says(1, "LOCK a");
	passes(500 * MSEC);
	hears(1, "ERR QUORUM *");
	ck_assert_int_lt(memory_fence(cluster.node[2].memory), INT64_C(4500000000000000));
}

/*
 * Whatever a store shows that is not ours, or that none of us wrote: tokens that are proposed beyond all clocks make no bases equal, and cost a second round
 * each.
 */
LOOP_TEST(a_fence_that_is_not_ours_is_not_proposed, 3)
{
	cluster_open(3);
	if (_i == 0)
		marker_is_set(2, "j|1.0123456789abcdef|r|r|n|30000|3.00000000|");
	if (_i == 1)
		cluster.node[2].clock_us = 3600 * SEC;
	cluster.conf.clock_tol_us = 5 * SEC;
	memory_set_fence(cluster.node[2].memory, _i == 2 ? INT64_C(4500000000000001) : CLUSTER_WALL_US + 3600 * SEC);
	daemon_starts(0);
	passes(2 * SEC);
	memory_set_fence(cluster.node[0].memory, memory_fence(cluster.node[1].memory) + 1000);
	passes(65 * SEC); /* what a join has lifted it to is past */
	says(1, "LOCK a");
	hears(1, GRANT);
	ck_assert_int_le(cluster.node[0].last[CALL_ACQUIRE].call.fence, CLUSTER_WALL_US + cluster.now.us);
	ck_assert_uint_eq(asked(CALL_EXTEND), 0);
}
