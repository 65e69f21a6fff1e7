/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/engine.c: the states of a lock and its waiters: who is granted, refused or told to wait, and why. */
#include "tests/fixture/held_lock.h"

#include <check.h>

static void held_by_1(unsigned nodes)
{
	held_after_lock(nodes, "LOCK a");
}

/* --- waiters --- */

FIXTURE(.teardown = cluster_close)

TEST(a_lock_without_wait_hears_who_holds_it_and_for_how_long)
{
	cluster_begin(1);
	says(1, "HELLO 1 name=worker-7");
	says(1, "LOCK a note=\"nightly export\"");
	passes(SEC);
	says(2, "LOCK a");
	hears(2,
	      "BUSY name=a holder=\"worker-7 pid=1001 uid=1000\" held_ms=1000 note=\"nightly export\" waiters=0 retry_ms=8897");
	ignores(1);
}

TEST(waiters_are_served_in_the_order_in_which_they_came)
{
	held_by_1(3);
	for (unsigned k = 2; k < 6; k++)
		says(k, "LOCK a wait=1m");
	for (unsigned k = 2; k < 6; k++) {
		says(k - 1, "UNLOCK a");
		hears(k - 1, "OK name=a count=0");
		hears(k, GRANT);
		for (unsigned later = k + 1; later < 6; later++)
			hears_nothing(later);
	}
}

TEST(a_lock_without_wait_never_overtakes_a_waiter)
{
	cluster_begin(1);
	feels(0, MOOD_SILENT);
	says(1, "LOCK a");
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a");
	feels(0, MOOD_WELL);
	hears(1, GRANT);
	hears(3, "BUSY name=a holder=* waiters=1 *");
	hears_nothing(2);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
}

TEST(a_wait_that_ends_behind_a_holder_is_a_timeout)
{
	held_by_1(3);
	says(2, "LOCK a wait=1s");
	passes(999 * MSEC);
	hears_nothing(2);
	passes(MSEC);
	hears(2, "TIMEOUT name=a waited_ms=1000 holder=* waiters=0");
	says(1, "UNLOCK a");
	ck_assert(!key_is_there(0, "a"));
	hears_nothing(2);
	ignores(1);
}

TEST(a_wait_that_ends_without_a_quorum_is_no_timeout)
{
	cluster_begin(3);
	falls(0);
	falls(1);
	says(1, "LOCK a wait=1s");
	passes(999 * MSEC);
	hears_nothing(1);
	passes(MSEC);
	hears(1, "ERR QUORUM 1 of 3 stores can be used, 2 are needed: 2 down; a: connection lost");
}

TEST(every_wait_that_ends_in_a_round_without_answers_ends_as_no_quorum)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	says(1, "LOCK a wait=20ms");
	says(2, "LOCK a wait=20ms");
	passes(80 * MSEC);
	hears(1, "ERR QUORUM *");
	hears(2, "ERR QUORUM *");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
}

TEST(a_round_that_is_under_way_when_the_wait_ends_may_still_grant)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	says(1, "LOCK a wait=20ms");
	passes(30 * MSEC);
	hears_nothing(1);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	hears(1, GRANT);
}

TEST(a_holder_that_was_seen_on_a_quorum_makes_the_end_of_a_wait_a_timeout)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 2; i++)
		key_is_overwritten(i, "a", "somebody", 20 * SEC);
	says(1, "LOCK a wait=1s");
	passes(500 * MSEC);
	falls(0);
	falls(1);
	passes(500 * MSEC);
	hears(1, "TIMEOUT name=a waited_ms=1000 holder=foreign ttl_ms=* waiters=0");
}

/* Stores that refuse are there, but say nothing of the holder. */
TEST(a_holder_that_was_seen_before_an_outage_is_not_told_as_busy)
{
	cluster_begin(3);
	all_feel(MOOD_WELL);
	for (unsigned i = 0; i < 2; i++)
		key_is_overwritten(i, "a", "somebody", 20 * SEC);
	says(1, "LOCK a wait=1m");
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=foreign *");
	refuses(0, "OOM command not allowed");
	refuses(1, "OOM command not allowed");
	passes(SEC);
	says(2, "LOCK a");
	passes(10 * MSEC);
	hears(2, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	passes(SEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=foreign *");
}

TEST(without_a_quorum_a_lock_without_wait_is_answered_at_once)
{
	cluster_begin(3);
	falls(0);
	falls(1);
	says(1, "LOCK a");
	hears(1, "ERR QUORUM 1 of 3 stores can be used, 2 are needed: 2 down; a: connection lost");
	says(1, "LOCK a wait=forever");
	hears_nothing(1);
	comes(0);
	passes(MSEC);
	hears(1, GRANT);
}

TEST(in_a_quarantine_the_refusal_says_when_to_try_again)
{
	cluster_begin(1);
	restarts_blank(0);
	passes(10 * SEC);
	says(1, "LOCK a");
	/* 30 s * 1.02 + 3 ms */
	ck_assert_str_eq(hears(1, "ERR QUORUM *"),
			 "ERR QUORUM 0 of 1 stores can be used, 1 are needed: 1 in quarantine; enough are back in 20604 ms retry_ms=20604");
	says(1, "LOCK a wait=1m");
	passes(20700 * MSEC);
	hears(1, GRANT);
}

TEST(stores_that_refuse_what_is_asked_are_no_quorum)
{
	cluster_begin(3);
	refuses(0, "OOM command not allowed");
	refuses(1, "OOM command not allowed");
	says(1, "LOCK a");
	hears(1, "ERR QUORUM *");
	says(1, "LOCK a wait=10s");
	passes(SEC);
	feels(1, MOOD_WELL);
	passes(200 * MSEC);
	hears(1, GRANT);
}

/* --- who else may hold it --- */

TEST(a_foreign_holder_is_shown_as_such)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 2; i++)
		key_is_overwritten(i, "a", "8f31c0", 5 * SEC);
	says(1, "LOCK a");
	hears(1, "BUSY name=a holder=foreign ttl_ms=* waiters=0 retry_ms=*");
	ck_assert(!key_is_there(2, "a"));
}

TEST(a_foreign_key_that_never_expires_is_told_and_never_touched)
{
	cluster_begin(1);
	key_is_overwritten(0, "a", "stuck", -1);
	says(1, "LOCK a");
	hears(1, "BUSY name=a holder=foreign ttl_ms=-1 waiters=0");
	says(1, "LOCK a wait=5s");
	passes(5 * SEC);
	hears(1, "TIMEOUT name=a waited_ms=5000 holder=foreign ttl_ms=-1 waiters=0");
	ck_assert(key_is_there(0, "a"));
}

TEST(a_foreign_key_on_a_minority_does_not_refuse)
{
	cluster_begin(3);
	key_is_overwritten(0, "a", "orphan", 50 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(20 * SEC);
	hears_nothing(1);
	ck_assert(key_is_there(0, "a"));
}

TEST(a_key_of_another_type_on_a_quorum_is_a_kind_of_its_own)
{
	cluster_begin(3);
	passes(2 * SEC);
	for (unsigned i = 0; i < 2; i++)
		memory_put_foreign(cluster.node[i].memory, SPAN("a"), INSTANT_NEVER);
	says(1, "LOCK a");
	hears(1, "ERR KIND *");
	says(1, "LOCK a wait=5s");
	hears(1, "ERR KIND *");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	says(1, "LOCK a");
	hears(1, GRANT);
}

TEST(a_foreign_release_is_noticed_within_a_second)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "somebody", 1000 * SEC);
	says(1, "LOCK a wait=1h");
	passes(100 * SEC);
	ck_assert_uint_ge(cluster.node[0].count[CALL_ACQUIRE], 100);
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	passes(SEC);
	hears(1, GRANT);
}

TEST(a_holder_on_another_host_is_shown_with_its_host)
{
	held_by_1(3);
	daemon_starts(1);
	passes(SEC);
	session_opens(2, 1);
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=@h0 held_ms=1000 waiters=0 retry_ms=*");
	says(2, "LOCK a wait=1m");
	says(1, "UNLOCK a");
	passes(SEC);
	hears(2, GRANT);
	hears(1, "OK *");
}

/* --- splits --- */

TEST(three_daemons_that_split_the_votes_all_try_again)
{
	three_daemons(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	for (unsigned k = 1; k < 4; k++)
		says(k, "LOCK a");
	for (unsigned i = 0; i < 3; i++)
		serves_daemon(i, i, 1);
	for (unsigned d = 0; d < 3; d++)
		for (unsigned i = 0; i < 3; i++)
			if (i != d)
				serves_daemon(d, i, 1);
	/* Each daemon has one vote and sees two others with one each. None of them holds the lock. */
	for (unsigned k = 1; k < 4; k++)
		hears_nothing(k);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	passes(SEC);
	ck_assert_uint_eq(figure(0, METRIC_GRANTS) + figure(1, METRIC_GRANTS) + figure(2, METRIC_GRANTS), 1);
	for (unsigned k = 1; k < 4; k++)
		ck_assert_uint_eq(ignores(k), 1);
}

TEST(a_split_vote_is_tried_three_times_and_is_then_busy_without_a_holder)
{
	cluster_begin(3);
	passes(2 * SEC);
	falls(2);
	key_is_overwritten(0, "a", "orphan", 50 * SEC);
	says(1, "LOCK a");
	hears_nothing(1);
	passes(SEC);
	ck_assert_str_eq(hears(1, "BUSY *"), "BUSY name=a waiters=0");
	ck_assert_int_eq(figure(0, METRIC_ROUNDS), 3);
	/* And the next request has three of its own. */
	says(1, "LOCK a");
	passes(SEC);
	hears(1, "BUSY name=a waiters=0");
	ck_assert_int_eq(figure(0, METRIC_ROUNDS), 6);
}

TEST(a_holder_that_has_gone_is_not_told_in_a_split)
{
	cluster_begin(3);
	passes(2 * SEC);
	falls(2);
	key_is_overwritten(0, "a", "somebody", 50 * SEC);
	key_is_overwritten(1, "a", "somebody", 50 * SEC);
	says(1, "LOCK a wait=1m");
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=foreign *");
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(3 * SEC);
	says(2, "LOCK a");
	passes(SEC);
	hears(2, "BUSY name=a waiters=1");
	ignores(1);
}

TEST(a_waiter_goes_on_through_splits_until_it_wins)
{
	cluster_begin(3);
	passes(2 * SEC);
	falls(2);
	key_is_overwritten(0, "a", "orphan", 3 * SEC);
	says(1, "LOCK a wait=1m");
	passes(4 * SEC);
	hears(1, GRANT);
}
