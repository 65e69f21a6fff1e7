/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/acquire.c: the fencing token of a grant, the second round that makes its stores agree on it, and tokens for waiters to come. Where clocks
 * are behind them: fence_clock_test.c.
 */
#include "daemon/core/round/round.h"
#include "tests/fixture/cluster.h"

#include <check.h>

/* The fence of store 0 is ahead, so its base differs from those of the others. */
static void cluster_with_fence_ahead(unsigned nodes, int64_t ahead)
{
	cluster_begin(nodes);
	passes(2 * SEC); /* a join lifts the fence to the very bound, beyond which none is raised */
	memory_set_fence(cluster.node[0].memory, memory_fence(cluster.node[0].memory) + ahead);
}

FIXTURE(.teardown = cluster_close)

TEST(a_quorum_of_equal_bases_is_enough_though_another_is_larger)
{
	int64_t before;

	cluster_with_fence_ahead(3, 1000);
	before = memory_fence(cluster.node[1].memory);
	says(1, "LOCK a");
	ck_assert_int_eq(number_in(hears(1, GRANT), "fence"), before + 1);
	ck_assert_uint_eq(asked(CALL_EXTEND), 0);
}

TEST(when_bases_differ_the_largest_is_raised_at_those_that_granted_and_nowhere_else)
{
	int64_t largest;

	cluster_with_fence_ahead(3, 1000);
	largest = memory_fence(cluster.node[0].memory) + 1;
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	passes(20 * MSEC);
	ck_assert_int_eq(number_in(hears(1, "OK name=a fence=* valid_ms=98* ttl_ms=10000 count=1"), "fence"), largest);
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], 1);
	ck_assert_uint_eq(cluster.node[1].count[CALL_EXTEND], 1);
	ck_assert_uint_eq(cluster.node[2].count[CALL_EXTEND], 0);
	ck_assert_int_eq(cluster.node[1].last[CALL_EXTEND].call.fence, largest);
	ck_assert(!cluster.node[1].last[CALL_EXTEND].call.create);
	ck_assert_int_eq(memory_fence(cluster.node[1].memory), largest);
}

/* Meanwhile nobody else could have the lock, although two other stores are well. */
TEST(a_second_round_does_not_wait_for_a_store_that_hangs_since_it_granted)
{
	cluster_open(3);
	cluster.conf.timeout_us = 5 * SEC;
	daemon_starts(0);
	passes(2 * SEC);
	memory_set_fence(cluster.node[0].memory, memory_fence(cluster.node[0].memory) + 1000);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a wait=30s");
	serves(0, 1);
	serves(1, 1);
	passes(5 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 2);
	serves(0, 1);
	feels(2, MOOD_WELL); /* b is the one that hangs */
	feels(0, MOOD_WELL);
	passes(100 * MSEC);
	hears(1, "OK name=a *");
	feels(1, MOOD_WELL);
}

TEST(a_late_answer_that_agrees_saves_the_second_round)
{
	cluster_with_fence_ahead(3, 1000);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears_nothing(1);
	serves(2, 1);
	hears(1, GRANT);
	ck_assert_uint_eq(asked(CALL_EXTEND), 0);
	feels(2, MOOD_WELL);
}

TEST(a_late_answer_after_the_decision_does_not_change_the_token)
{
	int64_t fence;

	cluster_with_fence_ahead(3, 1000);
	memory_set_fence(cluster.node[2].memory, memory_fence(cluster.node[0].memory) + 5000);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	passes(20 * MSEC);
	fence = number_in(hears(1, GRANT), "fence");
	feels(2, MOOD_WELL);
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a *"), "fence"), fence);
	/* The next is greater than all that the stores have. */
	says(1, "UNLOCK a");
	says(2, "LOCK a");
	ck_assert_int_gt(number_in(hears(2, GRANT), "fence"), fence + 5000 - 1001);
}

TEST(a_late_grant_during_the_second_round_adds_its_vote)
{
	cluster_with_fence_ahead(3, 1000);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	serves(0, 1);
	serves(1, 1);
	passes(5 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 2);
	serves(2, 1);
	serves(0, 1);
	serves(1, 1);
	hears(1, GRANT);
	all_feel(MOOD_WELL);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears_nothing(1);
	ck_assert(key_is_there(1, "a"));
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

TEST(the_second_round_counts_only_where_the_key_is_still_held)
{
	cluster_with_fence_ahead(3, 1000);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(20 * MSEC);
	hears(1, "ERR QUORUM *");
	ck_assert(!key_is_there(0, "a"));
	ck_assert(!key_is_there(1, "a"));
	feels(2, MOOD_WELL);
	ck_assert(!key_is_there(2, "a"));
}

/* Session `to` waits, `from` unlocks. Returns the fence that `to` is granted, and whether a store had to be asked. */
static int64_t passed_on(unsigned from, unsigned to, bool *ret_asked)
{
	int64_t before = figure(0, METRIC_HANDOFFS), fence;

	says(to, "LOCK a wait=1m");
	says(from, "UNLOCK a");
	hears(from, "OK *");
	fence = number_in(hears(to, GRANT), "fence");
	*ret_asked = figure(0, METRIC_HANDOFFS) == before;
	return fence;
}

TEST(a_name_that_was_contended_has_tokens_for_waiters_to_come)
{
	int64_t fence, last;
	bool asked;

	cluster_begin(3);
	passes(2 * SEC); /* a join lifts the fence to the very bound */
	session_opens(2, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	last = passed_on(1, 2, &asked);
	ck_assert(asked);
	for (unsigned i = 0; i < 2 * (TOKENS_AHEAD + 1); i++) {
		fence = passed_on(2 - i % 2, 1 + i % 2, &asked);
		ck_assert_msg(asked == (i % (TOKENS_AHEAD + 1) == TOKENS_AHEAD), "hand-over %u: %d", i, asked);
		ck_assert_int_gt(fence, last);
		last = fence;
	}
}

TEST(a_name_that_is_not_contended_any_more_has_one_token)
{
	int64_t seen;
	bool asked;

	cluster_begin(3);
	passes(2 * SEC); /* a join lifts the fence to the very bound */
	session_opens(2, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	(void)passed_on(1, 2, &asked);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(5 * SEC);
	says(1, "LOCK a");
	seen = number_in(hears(1, GRANT), "fence");
	ck_assert_int_eq(memory_fence(cluster.node[0].memory), seen);
	(void)passed_on(1, 2, &asked);
	ck_assert(asked);
}
