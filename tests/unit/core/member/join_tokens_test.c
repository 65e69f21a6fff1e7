/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/members.c, member.c: a store that lost its memory is joined above every token, whatever the clocks did. */
#include "tests/fixture/short_lease.h"

#include <check.h>
#include <stdio.h>

#define MINUTE     (61 * SEC)
#define SET_BACK   (400 * SEC)

/* Daemon 1 has joined stores 0 and 1, and store 0 knows that token; or daemon 1 grants one, which the cluster holds against all before it. */
static void is_joined_above(int64_t fence, bool is_granted)
{
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_str_eq(store_state(1, 1), "joined");
	if (is_granted)
		(void)grants_a(5);
	else
		ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
}

FIXTURE(.teardown = cluster_close)

/* Daemon 1 was stopped when the last tokens were granted. Its last look at the clock of store 0 is forty seconds old. */
LOOP_TEST(a_join_counts_the_time_for_which_its_daemon_was_cut_off, 2)
{
	int64_t fence;

	two_with_short_lease();
	falls_behind(1, SET_BACK);
	passes(1500 * MSEC);
	cluster.daemon[1].stopped = true;
	passes(40 * SEC);
	fence = grants_a(1);
	falls_behind(0, SET_BACK);
	cluster.daemon[0].stopped = true;
	feels(2, MOOD_SILENT);
	cluster.daemon[1].stopped = false;
	restarts_blank(0);
	passes(1300 * MSEC);
	is_joined_above(fence, _i);
}

/* Nobody wanted a lock for a while, so the next token leaps, and daemon 1 was cut off then. Store 2, which knows the token, is the one whose clock is off. */
LOOP_TEST(a_token_that_leapt_while_the_daemon_was_cut_off_is_counted, 2)
{
	int64_t fence;

	two_with_short_lease();
	falls_behind(1, SET_BACK);
	passes(1500 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		daemon_node_event(1, i, EVENT_NODE_DOWN);
	passes(70 * SEC);
	fence = grants_a(1);
	falls_behind(0, SET_BACK);
	cluster.daemon[0].stopped = true;
	restarts_blank(0);
	for (unsigned i = 1; i < 3; i++)
		daemon_node_event(1, i, EVENT_NODE_UP);
	runs();
	passes(3 * SEC);
	is_joined_above(fence, _i);
}

/*
 * Leases of 30 s. Store 1 was ahead of store 0 by all that is tolerated: the fences stand at the limit of store 0. It is set back by less than a quarantine
 * takes.
 */
LOOP_TEST(a_clock_that_is_set_back_by_less_than_a_quarantine_takes_forgets_no_token, 2)
{
	int64_t fence = 0;

	cluster_open(3);
	tolerance_is(5 * SEC);
	cluster.node[0].clock_us = -4900 * MSEC;
	cluster.node[1].clock_us = 4900 * MSEC;
	daemon_starts(0);
	daemon_starts(1);
	session_opens(5, 1);
	passes(500 * MSEC);
	(void)grants_a(1);
	passes(2 * SEC); /* daemon 1 has seen that one everywhere */
	falls(1);
	for (unsigned i = 0; i < 5; i++)
		fence = grants_a(1);
	cluster.daemon[0].stopped = true;
	falls_behind(0, 25 * SEC);
	falls_behind(1, 34800 * MSEC);
	feels(2, MOOD_SILENT);
	comes(1);
	restarts_blank(0);
	passes(30600 * MSEC + 2 * cluster.conf.timeout_us + 20 * MSEC);
	is_joined_above(fence, _i);
}

/* The clock is set back after the store has told its time, while another one hangs: the store is joined without another look. */
LOOP_TEST(a_clock_that_is_set_back_while_the_others_are_asked_forgets_no_token, 2)
{
	int64_t fence;

	two_with_short_lease();
	falls_behind(1, SET_BACK);
	passes(40500 * MSEC);
	fence = grants_a(1);
	cluster.daemon[0].stopped = true;
	restarts_blank(0);
	passes(SHORT_QUARANTINE - 20 * MSEC);
	feels(2, MOOD_SILENT);
	passes(40 * MSEC);
	ck_assert_str_ne(store_state(1, 0), "joined");
	falls_behind(0, SET_BACK);
	passes(cluster.conf.timeout_us);
	ck_assert_str_eq(store_state(1, 0), "joined");
	if (_i) {
		passes(2 * SEC);
		ck_assert_str_eq(store_state(1, 1), "joined");
		(void)grants_a(5);
	} else {
		ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
	}
}

/*
 * All answer, one forgets. Store 1 has not voted for long; store 2, which knows the last token, is the one whose clock is off, and daemon 1 was not there
 * before.
 */
LOOP_TEST(the_one_whose_clock_is_right_is_believed_by_a_daemon_that_is_new, 2)
{
	int64_t fence;

	short_lease_opens();
	daemon_starts(0);
	passes(2 * SEC);
	falls_behind(1, SET_BACK);
	passes(100 * SEC);
	fence = grants_a(1);
	falls_behind(0, SET_BACK);
	cluster.daemon[0].stopped = true;
	cluster.conf.trust_first_start = false;
	restarts_blank(0);
	daemon_starts(1);
	session_opens(5, 1);
	passes(SHORT_QUARANTINE + 2 * SEC);
	is_joined_above(fence, _i);
}

/* Fences stand far beyond the clocks and grow by single tokens: no limit of a clock tells the last of them. */
LOOP_TEST(single_tokens_of_the_last_second_are_counted, 2)
{
	int64_t fence = 0;

	two_with_short_lease();
	for (unsigned i = _i ? 2 : 0; i < 3; i++) /* 1: store 0 takes it beyond its limit, since store 1 is away */
		/* So many single grants, or a clock that was set back before daemon 1 was started. */
		memory_set_fence(cluster.node[i].memory, memory_fence(cluster.node[i].memory) + 40 * SEC);
	if (_i == 0)
		(void)grants_a(1);
	passes(1500 * MSEC);
	falls(1);
	for (unsigned i = 0; i < 5; i++)
		fence = grants_a(1);
	cluster.daemon[0].stopped = true;
	falls_behind(0, SET_BACK);
	falls_behind(1, SET_BACK);
	feels(2, MOOD_SILENT);
	comes(1);
	restarts_blank(0);
	passes(SHORT_QUARANTINE + 2 * cluster.conf.timeout_us);
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
}

/*
 * The clock of store 0 was a day ahead while daemon 0 was started. The others are out of reach, so there is nothing to compare it with, and it is joined for a
 * second. Its fence was right all the time. It is set right, and restarts blank.
 */
LOOP_TEST(a_clock_that_was_wrong_for_a_second_lifts_no_fence_later, 4)
{
	const int64_t day = 86400 * SEC, quarantine = 31 * SEC;

	cluster_open(3);
	tolerance_is(5 * SEC);
	daemon_starts(0);
	passes(2 * SEC);
	daemon_ends(0);
	cluster.node[0].clock_us += day;
	falls(1);
	falls(2);
	daemon_starts(0);
	passes(SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	comes(1);
	comes(2);
	passes(2 * SEC);
	ck_assert_str_ne(store_state(0, 0), "joined");
	ck_assert_int_lt(memory_fence(cluster.node[0].memory), CLUSTER_WALL_US + cluster.now.us + MINUTE);
	falls_behind(0, day);
	if (_i < 3) { /* else its host is restarted to set it right */
		passes(quarantine + 2 * SEC); /* keys may have expired early */
		ck_assert_str_eq(store_state(0, 0), "joined");
	}
	restarts_blank(0);
	passes(quarantine + SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	if (_i == 1) {
		restarts_blank(1);
		passes(quarantine);
		ck_assert_str_eq(store_state(0, 1), "joined");
	}
	if (_i == 2) {
		/* A bare majority with it: from now on there are no ranges. */
		session_opens(5, 0);
		falls(1);
		says(1, "LOCK a ttl=10s");
		hears(1, "OK name=a *");
		says(5, "LOCK a ttl=10s wait=10s");
		says(1, "UNLOCK a");
		hears(1, "OK *");
		hears(5, "OK name=a *");
	}
	ck_assert_int_lt(memory_fence(cluster.node[_i % 3].memory), CLUSTER_WALL_US + cluster.now.us + MINUTE);
}

/*
 * The same without a restart of the daemon: two of three are set forward at one moment, which looks as if this host had stood still; an hour is taken back
 * soon. Not one token was granted meanwhile. Later one of them restarts blank, and two sessions want one lock: the range that this takes is not refused.
 */
LOOP_TEST(a_forward_step_of_two_that_is_taken_for_a_stop_lifts_no_fence_later, 2)
{
	const int64_t hour = 3600 * SEC;

	cluster_open(3);
	tolerance_is(5 * SEC);
	daemon_starts(0);
	passes(2500 * MSEC);
	falls_behind(0, -hour);
	falls_behind(1, -hour);
	passes(2 * SEC);
	ck_assert(was_logged("stood-still *"));
	ck_assert_str_eq(store_state(0, 0), "joined");
	falls_behind(0, hour);
	falls_behind(1, hour);
	passes(5 * SEC);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_str_eq(store_state(0, i), "joined");
		ck_assert_int_lt(memory_fence(cluster.node[i].memory), CLUSTER_WALL_US + cluster.now.us + MINUTE);
	}
	restarts_blank(0);
	passes(33 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	falls(1);
	for (unsigned k = 1; k <= 3; k++)
		says(k, "LOCK a ttl=10s wait=10s");
	for (unsigned k = 1; k <= 3; k++) {
		hears(k, "OK name=a *");
		says(k, "UNLOCK a");
		hears(k, "OK *");
	}
	if (_i == 0)
		ck_assert_int_gt(figure(0, METRIC_HANDOFFS), 0);
	else
		ck_assert_int_lt(memory_fence(cluster.node[2].memory), CLUSTER_WALL_US + cluster.now.us + MINUTE);
}
