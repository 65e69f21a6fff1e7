/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/members.c, member.c: what the others are asked before a store that lost its memory is joined anew. */
#include "tests/fixture/short_lease.h"

#include <check.h>

#define SET_BACK (20 * SEC)

/*
 * The clocks of stores 1 and 0 are set back, one after the other, and store 0 forgets. So the last token stands at store 2 alone, and daemon 1, which joins
 * store 0, has not looked at store 2 since. Returns that token.
 */
static int64_t a_token_is_left_at_store_2(void)
{
	int64_t fence;

	short_lease_opens();
	for (unsigned d = 0; d < 2; d++)
		daemon_starts(d);
	passes(2 * SEC);
	falls_behind(1, SET_BACK);
	passes(1500 * MSEC);
	fence = grants_a(1);
	falls_behind(0, SET_BACK);
	cluster.daemon[0].stopped = true;
	restarts_blank(0);
	return fence;
}

FIXTURE(.teardown = cluster_close)

TEST(a_join_asks_the_others_first_how_far_their_fences_are)
{
	int64_t fence = a_token_is_left_at_store_2();

	passes(SHORT_QUARANTINE + 10 * MSEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
}

/* Only that store knows the token then. But daemon 1 saw how late it was at store 0 before the clock of store 0 was set back. */
TEST(a_store_that_hangs_is_waited_for_as_long_as_a_call_may_take)
{
	int64_t fence = a_token_is_left_at_store_2();

	feels(2, MOOD_SILENT);
	passes(SHORT_QUARANTINE + cluster.conf.timeout_us - 10 * MSEC);
	ck_assert_str_ne(store_state(1, 0), "joined");
	passes(20 * MSEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
	feels(2, MOOD_WELL);
}
