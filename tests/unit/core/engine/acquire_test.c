/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/acquire.c: from LOCK to a grant or to another answer. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_free_lock_is_granted_after_one_round_trip, 3)
{
	static const unsigned nodes[] = {1, 3, 5};
	unsigned n = nodes[_i];

	cluster_begin(n);
	says(1, "LOCK a");
	hears(1, "OK name=a fence=* valid_ms=9897 ttl_ms=10000 count=1");
	ck_assert_uint_eq(asked(CALL_ACQUIRE), n);
	ck_assert_uint_eq(asked(CALL_EXTEND), 0);
	ck_assert_int_eq(cluster.node[n - 1].last[CALL_ACQUIRE].call.px_ms, 10000);
}

TEST(a_vote_counts_from_the_send_not_from_the_answer)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	says(1, "LOCK a");
	passes(30 * MSEC);
	hears_nothing(1);
	for (unsigned i = 0; i < 2; i++)
		serves(i, 1);
	hears(1, "OK name=a fence=* valid_ms=9867 ttl_ms=10000 count=1");
}

TEST(two_of_three_are_enough_and_the_third_counts_when_it_comes)
{
	cluster_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, GRANT);
	feels(2, MOOD_WELL);
	/* Its vote is worth as much as those of the others. With one of them down the lease lasts as long. */
	falls(0);
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=9897 count=1");
}

TEST(one_of_three_is_no_grant_and_nothing_is_left_of_it)
{
	cluster_begin(3);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	ck_assert(key_is_there(0, "a"));
	hears_nothing(1);
	passes(60 * MSEC);
	hears(1, "ERR QUORUM 1 of 3 *");
	ck_assert(!key_is_there(0, "a"));
	/* The two others carry the acquire out late, and the release behind it. */
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	hears_nothing(1);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
}

TEST(a_late_vote_for_an_abandoned_round_is_ignored)
{
	cluster_begin(3);
	feels(1, MOOD_TARDY);
	feels(2, MOOD_TARDY);
	says(1, "LOCK a");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM *");
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	hears_nothing(1);
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
	says(2, "LOCK a");
	hears(2, GRANT);
}

TEST(an_acquire_that_arrives_too_late_does_nothing)
{
	cluster_begin(3);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	passes(80 * MSEC);
	hears(1, "ERR QUORUM *");
	/* A store declines a call that its own clock shows to be older than the timeout. */
	serves(1, 1);
	ck_assert(!key_is_there(1, "a"));
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
}

TEST(a_late_refusal_does_not_hide_the_key_that_a_renewal_has_set_since)
{
	cluster_begin(3);
	passes(2 * SEC);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK *");
	passes(40 * MSEC);
	says(1, "EXTEND a");
	hears(1, "OK *");
	passes(30 * MSEC);
	/* c carries out both now: too late for the acquire, in time for the renewal, which puts the key there. */
	feels(2, MOOD_WELL);
	ck_assert(key_is_there(2, "a"));
	says(1, "UNLOCK a");
	hears(1, "OK *");
	ck_assert(!key_is_there(2, "a"));
}

TEST(a_grant_with_too_little_validity_is_released_and_tried_again)
{
	cluster_open(3);
	cluster.conf.timeout_us = 300 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_TARDY);
	says(1, "LOCK a ttl=100ms wait=5s");
	passes(90 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	hears_nothing(1);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	passes(200 * MSEC);
	hears(1, "OK name=a fence=* valid_ms=* ttl_ms=100 count=1");
}

/* These stores take longer than half of the lease. To ask again at once would be to ask without end. */
TEST(a_pause_follows_a_grant_that_came_too_late)
{
	cluster_open(3);
	cluster.conf.timeout_us = 300 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	all_feel(MOOD_TARDY);
	says(1, "LOCK a ttl=100ms wait=5s");
	says(2, "LOCK a ttl=100ms wait=5s");
	passes(90 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	while (figure(0, METRIC_ROUNDS) < 2)
		passes(MSEC);
	ck_assert_int_eq(cluster.node[0].last[CALL_ACQUIRE].call.range, 1);
	passes(90 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		serves(i, waiting_at(i));
	ck_assert_int_eq(figure(0, METRIC_ROUNDS), 2);
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	hears(1, "OK *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK *");
}

TEST(a_vote_of_a_store_whose_clock_jumped_before_the_decision_does_not_count)
{
	cluster_begin(3);
	passes(2 * SEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	cluster.node[0].clock_us = 20 * SEC;
	says(2, "LOCK b");
	ck_assert(!key_is_there(0, "a"));
	serves(1, 1);
	hears(1, "ERR QUORUM *");
	for (unsigned i = 1; i < 3; i++)
		feels(i, MOOD_WELL);
	passes(SEC);
	ignores(1);
	ignores(2);
}

TEST(a_store_that_refused_gets_no_release)
{
	cluster_begin(3);
	refuses(2, "OOM command not allowed");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	ck_assert_uint_eq(cluster.node[2].count[CALL_RELEASE], 0);
	ck_assert_uint_eq(cluster.node[0].count[CALL_RELEASE], 1);
}

TEST(a_range_of_tokens_that_the_clock_refuses_is_asked_for_as_one_token_at_once)
{
	/* Fresh from a join the fence is as far ahead as may be, and the clock stands still here. */
	cluster_begin(3);
	says(1, "LOCK a");
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a wait=1m");
	hears(1, "OK *");
	says(1, "UNLOCK a");
	hears(2, "OK name=a *");
	says(2, "UNLOCK a");
	hears(3, "OK name=a *");
}

TEST(an_acquire_of_unknown_outcome_is_released_until_its_key_has_expired)
{
	unsigned before;

	cluster_begin(3);
	feels(2, MOOD_LOSSY);
	says(1, "LOCK a ttl=1s");
	hears(1, "OK *");
	feels(2, MOOD_SILENT);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	loses(2, waiting_at(2));
	ck_assert(key_is_there(2, "a"));
	before = cluster.node[2].count[CALL_RELEASE];
	passes(250 * MSEC);
	ck_assert_uint_gt(cluster.node[2].count[CALL_RELEASE], before);
	loses(2, waiting_at(2));
	passes(250 * MSEC);
	feels(2, MOOD_WELL);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

TEST(a_release_that_is_never_confirmed_ends_when_no_key_can_be_left)
{
	cluster_begin(3);
	says(1, "LOCK a ttl=1s");
	falls(2);
	says(1, "UNLOCK a");
	passes(900 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 1);
	passes(2 * SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	ck_assert(!key_is_there(2, "a"));
	ignores(1);
}

TEST(a_store_that_comes_back_hears_the_release_at_once)
{
	cluster_begin(3);
	says(1, "LOCK a");
	falls(2);
	says(1, "UNLOCK a");
	ck_assert(key_is_there(2, "a"));
	comes(2);
	ck_assert(!key_is_there(2, "a"));
	ignores(1);
}

TEST(each_attempt_has_a_value_of_its_own)
{
	char first[VALUE_MAX];

	cluster_begin(1);
	says(1, "LOCK a");
	memcpy(first, cluster.node[0].last[CALL_ACQUIRE].value, VALUE_MAX);
	says(1, "UNLOCK a");
	says(1, "LOCK a");
	ck_assert_int_ne(memcmp(first, cluster.node[0].last[CALL_ACQUIRE].value, cluster.node[0].last[CALL_ACQUIRE].call.value.n), 0);
	says(1, "LOCK b");
	ck_assert_int_ne(memcmp(first, cluster.node[0].last[CALL_ACQUIRE].value, cluster.node[0].last[CALL_ACQUIRE].call.value.n), 0);
	ignores(1);
}
