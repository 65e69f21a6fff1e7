/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/adopt.c: what is left of a lease that nobody renews, or that was extended, when its daemon restarts. */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;
static const unsigned sizes[] = {1, 3, 5};

static void held_by_1(unsigned nodes, const char *fields)
{
	held_with_grace(nodes, "grace=30s", fields, &s1);
}

FIXTURE(.teardown = cluster_close)

TEST(the_rest_of_a_lease_without_renewal_is_adopted)
{
	held_by_1(3, "renew=no ttl=8s");
	passes(3 * SEC);
	daemon_returns(0);
	resumes(2, &s1);
	ck_assert_int_le(number_in(hears(2, ROW_A), "valid_ms"), 5000);
	hears(2, "OK *");
	passes(5 * SEC);
	hears(2, "! LOST name=a fence=* reason=expired");
	says(3, "LOCK a");
	hears(3, GRANT);
}

/* The lease ends at the moment that its holder was told. The time that the stores took to grant it is not added. */
LOOP_TEST(the_rest_of_a_lease_without_renewal_is_no_longer_because_the_stores_granted_it_late, 3)
{
	int64_t valid;

	cluster_open(sizes[_i]);
	cluster.conf.timeout_us = 500 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	all_feel(MOOD_TARDY);
	says(1, "LOCK a renew=no ttl=8s");
	passes(400 * MSEC);
	all_feel(MOOD_WELL);
	valid = number_in(hears(1, "OK name=a *"), "valid_ms");
	daemon_returns(0);
	resumes(2, &s1);
	ck_assert_int_le(number_in(hears(2, ROW_A), "valid_ms"), valid);
}

TEST(an_extend_is_known_to_the_next_run)
{
	held_by_1(3, "renew=no ttl=8s");
	passes(3 * SEC);
	says(1, "EXTEND a ttl=20s");
	hears(1, "OK name=a *");
	passes(8 * SEC);
	daemon_returns(0);
	resumes(2, &s1);
	ck_assert_int_ge(number_in(hears(2, ROW_A), "valid_ms"), 10000);
}

/* EXTEND is answered ERR, but the stores have carried it out. What CHECK then tells also binds the next run. */
LOOP_TEST(an_extend_that_seemed_to_fail_is_known_to_the_next_run, 2)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=1s");
	says(1, "LOCK a ttl=8s%s", _i == 0 ? " renew=no" : "");
	hears(1, "OK name=a *");
	passes(SEC);
	all_feel(MOOD_TARDY);
	says(1, "EXTEND a ttl=25s");
	passes(cluster.conf.timeout_us);
	ck_assert_uint_ge(ignores(1), 1); /* ERR QUORUM, and RISK */
	all_feel(MOOD_WELL);
	ignores(1); /* SAFE */
	says(1, "CHECK a");
	ck_assert_int_ge(number_in(hears(1, "OK name=a *"), "valid_ms"), 24000);
	daemon_returns(0);
	says(3, "LOCK a wait=1m");
	passes(24 * SEC);
	hears_nothing(3); /* the cluster sees to it as well: see cluster_promises.c */
	passes(2 * SEC);
	hears(3, "OK name=a *");
}

TEST(a_lease_without_renewal_that_is_over_is_lost)
{
	held_by_1(3, "renew=no ttl=8s");
	daemon_ends(0);
	passes(9 * SEC);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=expired");
}

/* No store shortens a key. At a store that was not asked since, the key stands for longer than the record says. */
TEST(a_lock_that_was_extended_to_a_shorter_lease_is_released_where_the_longer_one_stands)
{
	held_by_1(3, "ttl=10s");
	falls(2);
	says(1, "EXTEND a ttl=200ms");
	hears(1, "OK name=a *");
	daemon_returns(0);
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK *");
	passes(2 * SEC);
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	comes(2);
	passes(SEC);
	ck_assert(!key_is_there(2, "a"));
}

/* One vote is old when the adoption is decided, so the deadline is that of the old vote. */
TEST(a_lock_that_is_adopted_by_old_votes_is_renewed_before_they_end)
{
	held_by_1(3, "");
	falls(0);
	falls(1);
	falls(2);
	daemon_returns(0);
	resumes(2, &s1);
	refuses(1, "OOM");
	refuses(2, "OOM");
	comes(1);
	comes(2);
	comes(0);
	passes(100 * MSEC);
	feels(0, MOOD_SILENT);
	passes(8500 * MSEC);
	ignores(2);
	feels(1, MOOD_WELL);
	passes(550 * MSEC);
	hears(2, "! SAFE name=a *");
	hears(2, "! RISK name=a *");
	feels(2, MOOD_WELL);
	passes(5 * SEC);
	hears(2, "! SAFE name=a *");
	hears_nothing(2);
	feels(0, MOOD_WELL);
}

/* Too little of the lease is left for an adoption. But its client may trust it until D, so nobody else gets it before. */
LOOP_TEST(a_lease_without_renewal_that_is_almost_over_is_nobody_elses_yet, 3)
{
	held_by_1(sizes[_i], "renew=no ttl=8s");
	daemon_ends(0);
	passes(7700 * MSEC);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	is_resumed_with_nothing(2, &s1);
	hears(2, "! LOST name=a fence=* reason=expired");
	says(3, "LOCK a wait=1m");
	passes(150 * MSEC);
	hears_nothing(3);
	ck_assert(key_is_there(0, "a"));
	passes(300 * MSEC);
	hears(3, GRANT);
}

/* The client may never come back to hear of less, so what the previous run told it stays true. */
LOOP_TEST(an_adoption_does_not_shorten_the_validity_that_was_told, 3)
{
	held_by_1(sizes[_i], "renew=no ttl=8s");
	daemon_returns(0);
	says(3, "LOCK a wait=1m");
	passes(7900 * MSEC);
	hears_nothing(3);
	passes(200 * MSEC);
	hears(3, GRANT);
}

/* As at the memory store, no marker tells of the longer lease before. So nothing is promised for longer than the daemon waits after its next crash. */
static void comes_back_with_a_shorter_max_lease(void)
{
	daemon_ends(0);
	marker_is_set(0, "");
	cluster.conf.trust_first_start = true;
	cluster.conf.past_lease_us = cluster.conf.max_lease_us;
	cluster.conf.max_lease_us = 5 * SEC;
	cluster.conf.lease_us = 2 * SEC;
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
}

LOOP_TEST(a_grant_beyond_the_new_max_lease_is_renewed_for_max_lease_only, 2)
{
	held_by_1(1, "ttl=25s");
	comes_back_with_a_shorter_max_lease();
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK *");
	if (_i == 1) {
		says(2, "EXTEND a");
		hears(2, "OK *");
	}
	passes(30 * SEC);
	says(2, "CHECK a");
	ck_assert_int_le(number_in(hears(2, "OK name=a *"), "valid_ms"), 5000);
	ck_assert_int_le(key_ttl_us(0, "a"), 5 * SEC);
	hears_nothing(2);
}

/* Likewise a lock delay is no longer than the daemon waits after its next crash. */
LOOP_TEST(a_lock_delay_beyond_the_new_limit_is_cut, 2)
{
	begins_with_delay(1, 60 * SEC);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=2s");
	says(1, "LOCK a delay=60s");
	hears(1, GRANT);
	cluster.conf.max_delay_us = 3 * SEC;
	comes_back_with_a_shorter_max_lease();
	if (_i == 1) {
		resumes(2, &s1);
		hears(2, ROW_A);
		hears(2, "OK *");
	}
	passes(80 * SEC); /* what the previous run set is over */
	if (_i == 1) {
		ck_assert_int_le(key_ttl_us(0, "a"), 8 * SEC);
		goes(2, GONE_HANGUP);
		passes(20 * SEC);
	}
	ck_assert(!key_is_there(0, "a"));
}

/* The client does not come back. It may trust what the previous run told it. */
LOOP_TEST(a_validity_beyond_the_new_max_lease_is_kept_to_its_end, 2)
{
	held_by_1(1, _i == 0 ? "ttl=25s" : "ttl=25s renew=no");
	says(1, "HELLO 1 grace=1s");
	ignores(1);
	comes_back_with_a_shorter_max_lease();
	says(3, "LOCK a wait=1m");
	passes(24 * SEC);
	hears_nothing(3);
	passes(3 * SEC);
	hears(3, "OK name=a *");
}

/* The run in between has renewed it with the shorter ttl, and its snapshot says so. What the first run told stays true all the same. */
TEST(a_validity_beyond_the_new_max_lease_is_kept_over_a_second_restart)
{
	held_by_1(1, "ttl=25s");
	says(1, "HELLO 1 grace=1s");
	ignores(1);
	comes_back_with_a_shorter_max_lease();
	passes(1900 * MSEC);
	ck_assert_int_ge(figure(0, METRIC_RENEWALS), 1);
	journal_is_compacted(0);
	comes_back_with_a_shorter_max_lease();
	says(3, "LOCK a wait=1m");
	passes(22 * SEC);
	hears_nothing(3);
	passes(3 * SEC);
	hears(3, "OK name=a *");
}

/* Without a quorum only the end of the lease is known. Its loss is told before that, as for any lease. */
TEST(a_lease_without_renewal_that_no_quorum_confirms_is_LOST_before_it_ends)
{
	int64_t left;

	held_by_1(3, "renew=no ttl=8s");
	passes(2 * SEC);
	says(1, "CHECK a");
	left = number_in(hears(1, "OK name=a *"), "valid_ms");
	falls(0);
	falls(1);
	daemon_returns(0);
	resumes(2, &s1);
	passes(2 * SEC);
	hears(2, "OK session=* n=0 open=1");
	passes((left - 2000 - 100) * MSEC);
	hears(2, "! LOST name=a fence=* reason=expired");
}

/* The lease ends at the moment that its holder was told, and not sooner. */
TEST(the_rest_of_a_lease_without_renewal_is_not_cut_by_a_shorter_max_lease)
{
	held_by_1(1, "ttl=25s renew=no");
	comes_back_with_a_shorter_max_lease();
	resumes(2, &s1);
	hears(2, ROW_A);
	hears(2, "OK *");
	passes(24 * SEC);
	says(2, "CHECK a");
	hears(2, "OK name=a *");
	passes(SEC);
	hears(2, "! LOST name=a fence=* reason=expired");
}
