/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/clock.c: the clock of a store was set forward, or the clock of this host stood still. */
#include "tests/fixture/jumped_clock.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_host_that_stood_still_marks_no_store, 4)
{
	cluster_begin(3 + 2 * (_i % 2));
	passes(3 * SEC);
	clocks_go_on_without_us(_i < 2 ? 80 * MSEC : 20 * SEC);
	passes(3 * SEC);
	nobody_is_marked();
	ck_assert(was_logged("stood-still for_ms=*"));
}

/* 50 ms are not noticed, but these are more. */
LOOP_TEST(clocks_that_drift_apart_while_a_host_stands_still_mark_no_store, 2)
{
	cluster_begin(3);
	passes(3 * SEC);
	clocks_go_on_without_us(_i ? 100 * SEC : 20 * SEC);
	cluster.node[_i].clock_us += 150 * MSEC;
	cluster.node[2].clock_us -= _i ? 800 * MSEC : 0;
	passes(3 * SEC);
	nobody_is_marked();
	ck_assert(was_logged("stood-still for_ms=*"));
}

TEST(the_locks_of_a_host_end_earlier_by_as_long_as_it_stood_still)
{
	int64_t before;

	cluster_begin(3);
	passes(1500 * MSEC);
	says(1, "LOCK a renew=no");
	before = number_in(hears(1, "OK name=a *"), "valid_ms");
	passes(100 * MSEC);
	clocks_go_on_without_us(2 * SEC);
	passes(SEC); /* the health of each store is asked once a second */
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a *"), "valid_ms"), before - 100 - 1000 - 2000);
	nobody_is_marked();
}

TEST(the_votes_of_a_store_out_of_reach_end_earlier_too)
{
	int64_t before;

	cluster_begin(3);
	passes(1500 * MSEC);
	says(1, "LOCK a renew=no");
	before = number_in(hears(1, "OK name=a *"), "valid_ms");
	falls(2);
	clocks_go_on_without_us(2 * SEC);
	passes(SEC);
	restarts_blank(1);
	/* Two votes are left of which one is of the store that nobody has asked since. */
	says(1, "CHECK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a *"), "valid_ms"), before - 1000 - 2000);
	comes(2);
	passes(SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_str_eq(store_state(0, 2), "joined");
}

LOOP_TEST(a_stop_that_is_a_jump_at_one_store_and_within_the_drift_of_another_is_a_stop, 2)
{
	cluster_begin(3);
	passes(1900 * MSEC);
	falls(0);
	comes(0); /* it was heard of just now, the others most of a second ago */
	clocks_go_on_without_us(52 * MSEC);
	feels(1 + _i, MOOD_SILENT);
	feels(2 - _i, MOOD_TARDY);
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
	feels(2 - _i, MOOD_WELL);
	ck_assert_str_eq(store_state(0, 0), "joined");
	feels(1 + _i, MOOD_WELL);
	passes(SEC);
	nobody_is_marked();
	ignores(1);
}

RANGE_TEST(a_minority_that_jumps_is_quarantined_as_soon_as_the_others_have_answered, 2, 6)
{
	cluster_begin(_i);
	passes(1500 * MSEC);
	for (int i = 0; i < _i / 2; i++)
		cluster.node[i].clock_us = 200 * MSEC;
	says(1, "LOCK a"); /* all are asked */
	passes(MSEC);
	for (int i = 0; i < _i; i++)
		ck_assert_str_eq(store_state(0, (unsigned)i), i < _i / 2 ? JUMPED : "joined");
	ignores(1);
}

TEST(jumps_of_different_size_are_no_stop)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = 200 * MSEC * (1 + i);
	says(1, "LOCK a");
	passes(100 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_str_eq(store_state(0, i), JUMPED);
	ignores(1);
}

LOOP_TEST(a_clock_that_is_set_forward_and_back_again_was_set, 2)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	all_feel(MOOD_SILENT);
	cluster.node[0].clock_us = 2 * SEC;
	says(1, "LOCK a");
	serves(0, 1);
	ck_assert_str_eq(store_state(0, 0), ASKING);
	cluster.node[0].clock_us = _i ? -20 * MSEC : -5 * SEC;
	all_feel(MOOD_WELL);
	passes(MSEC);
	ck_assert_str_eq(store_state(0, 0), JUMPED);
	ck_assert(!was_logged("stood-still *"));
	ignores(1);
}

TEST(a_second_stop_while_the_first_is_looked_into_is_a_stop)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	clocks_go_on_without_us(200 * MSEC);
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
	clocks_go_on_without_us(300 * MSEC);
	passes(5 * MSEC);
	all_feel(MOOD_WELL);
	passes(SEC);
	nobody_is_marked();
	ignores(1);
}

/* A jump too small to be noticed that all stores show is no sign that they show the next one. */
LOOP_TEST(after_a_shorter_stop_a_longer_one_is_known_from_looks_that_came_later, 2)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	clocks_go_on_without_us(38 * MSEC);
	passes(1400 * MSEC);
	clocks_go_on_without_us(_i ? 70 * MSEC : 0);
	cluster.node[1].clock_us += _i ? 0 : 70 * MSEC;
	falls(1); /* it is looked at first */
	comes(1);
	passes(1100 * MSEC);
	if (_i) {
		nobody_is_marked();
	} else {
		ck_assert_str_eq(store_state(0, 0), "joined");
		ck_assert_str_eq(store_state(0, 1), JUMPED);
	}
}

/* The length of the first stop is known only roughly, and so is what was known of the clocks before the second one. */
TEST(after_a_stop_that_was_seen_late_a_shorter_one_marks_no_store)
{
	cluster_begin(3);
	passes(2050 * MSEC);
	clocks_go_on_without_us(170 * MSEC);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	passes(40 * MSEC);
	serves(0, 1);
	serves(1, 1);
	ck_assert(was_logged("stood-still for_ms=210 *"));
	all_feel(MOOD_WELL);
	passes(300 * MSEC);
	says(1, "LOCK b");
	passes(100 * MSEC);
	clocks_go_on_without_us(60 * MSEC);
	feels(0, MOOD_TARDY);
	feels(1, MOOD_TARDY);
	feels(2, MOOD_SILENT);
	says(1, "LOCK c");
	passes(20 * MSEC);
	feels(0, MOOD_WELL);
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	passes(SEC);
	nobody_is_marked();
	ignores(1);
}

TEST(a_store_that_is_alone_and_jumps_is_quarantined)
{
	cluster_begin(1);
	passes(1500 * MSEC);
	clocks_go_on_without_us(80 * MSEC);
	passes(SEC);
	ck_assert_str_eq(store_state(0, 0), JUMPED);
	ck_assert_int_eq(marker_of(0)[0], 'q');
}

/* One store of its quorum has forgotten the lock, but the client was told a validity, and may not have read LOST before another session gets the lock. */
LOOP_TEST(a_lock_that_a_jump_has_cost_is_left_alone_until_its_validity_has_passed, 3)
{
	int64_t told;

	cluster_begin(3);
	daemon_starts(1);
	passes(1500 * MSEC);
	session_opens(2, 1);
	falls(2);
	says(1, "LOCK a renew=no");
	told = number_in(hears(1, "OK name=a *"), "valid_ms") * MSEC;
	says(2, "LOCK a wait=1m");
	comes(2);
	passes(SEC);
	cluster.node[0].clock_us = _i * 5 * SEC;
	passes(told - 1100 * MSEC);
	if (_i)
		hears(1, "! LOST name=a fence=* reason=expired");
	hears_nothing(2);
	ck_assert(key_is_there(1, "a"));
	passes(2 * SEC);
	hears(2, "OK name=a *");
	ignores(1);
}

TEST(a_store_that_restarted_meanwhile_is_quarantined_whoever_stood_still)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	clocks_go_on_without_us(200 * MSEC);
	restarts_blank(0);
	passes(SEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	ck_assert_str_eq(store_state(0, 1), "joined");
	ck_assert_str_eq(store_state(0, 2), "joined");
	ck_assert_int_eq(marker_of(1)[0], 'j');
}
