/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/probe.c: which clock is off, and what proves that a clock jumped. */
#include "daemon/core/member/clock.h"
#include "daemon/core/member/members.h"
#include "daemon/core/member/membership.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

static int64_t looked(struct member_clock *clock, int64_t server, int64_t sent, int64_t received)
{
	return clock_measure(clock, server, (struct instant){sent}, (struct instant){received});
}

TEST(the_first_look_at_a_clock_proves_nothing)
{
	struct member_clock clock = {0};

	ck_assert_int_eq(looked(&clock, 5000 * SEC, 0, 100), 0);
	ck_assert(clock.known);
}

TEST(drift_and_50_ms_are_no_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	/* After 100 s: 1 s by drift and 50 ms more. */
	ck_assert_int_eq(looked(&clock, 1101 * SEC + 50 * MSEC, 100 * SEC, 100 * SEC), 0);
	clock = (struct member_clock){0};
	looked(&clock, 1000 * SEC, 0, 0);
	ck_assert_int_eq(looked(&clock, 1101 * SEC + 51 * MSEC, 100 * SEC, 100 * SEC), SEC + 51 * MSEC);
}

TEST(a_slow_answer_widens_the_bounds_instead_of_being_a_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	/* Sent at 1 s, carried out at 4 s, read at 5 s. */
	ck_assert_int_eq(looked(&clock, 1004 * SEC, 1 * SEC, 5 * SEC), 0);
	ck_assert_int_eq(looked(&clock, 1006 * SEC, 6 * SEC, 6 * SEC), 0);
	ck_assert_int_gt(looked(&clock, 1009 * SEC, 7 * SEC, 7 * SEC), SEC);
}

/* The process stood still, and its clock did not: the answer waited to be read, and the two clocks drifted apart meanwhile. */
TEST(what_clocks_drift_apart_while_an_answer_waits_to_be_read_is_no_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	ck_assert_int_eq(looked(&clock, 1001 * SEC, 1 * SEC, 101 * SEC), 0);
	ck_assert_int_eq(looked(&clock, 1102 * SEC + 900 * MSEC, 102 * SEC, 102 * SEC), 0);
}

TEST(a_step_back_is_the_new_truth_and_coming_back_from_it_a_jump)
{
	struct member_clock clock = {0};

	looked(&clock, 1000 * SEC, 0, 0);
	ck_assert_int_eq(looked(&clock, 961 * SEC, SEC, SEC), 0);
	ck_assert_int_ge(looked(&clock, 1002 * SEC, 2 * SEC, 2 * SEC), 40 * SEC);
}

/* Tolerances as the daemon has them, before the stores are there. */
static void clocks_matter(unsigned nodes)
{
	cluster_open(nodes);
	cluster.conf.clock_tol_us = clock_tol_us(nodes, cluster.conf.max_lease_us, 0);
	for (unsigned i = 0; i < nodes; i++)
		node_is_born(i);
}

#define AHEAD  "refused: its clock is more than 5000 ms ahead of the other servers': set it right"
#define BEHIND "refused: its clock is more than 5000 ms behind the other servers': set it right"

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_store_whose_clock_is_off_is_refused_and_used_again_once_it_is_right, 4)
{
	static const int64_t step[] = {3600 * SEC, -3600 * SEC, 6 * SEC, -6 * SEC};

	clocks_matter(3);
	cluster.node[0].clock_us = step[_i];
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), step[_i] > 0 ? AHEAD : BEHIND);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
	was_logged("*"); /* all so far */
	store_becomes(step[_i] > 0 ? AHEAD : BEHIND);
	ck_assert_msg(!was_logged("node *"), "a refusal is told once");
	cluster.node[0].clock_us = 0;
	passes(2 * quarantine_us(cluster.conf.max_lease_us, 0));
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(clocks_within_the_tolerance_are_all_used)
{
	clocks_matter(3);
	cluster.node[0].clock_us = 4900 * MSEC;
	cluster.node[1].clock_us = -4900 * MSEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	/* And the fence that a join lifted where the clock is ahead is in nobody's way, whoever is asked with it. */
	for (unsigned i = 1; i < 3; i++) {
		falls(i);
		says(1, "LOCK a");
		passes(5 * MSEC);
		hears(1, "OK name=a *");
		passes(8 * SEC);
		hears_nothing(1); /* renewals carry its floor */
		says(1, "UNLOCK a");
		hears(1, "OK *");
		comes(i);
		passes(2 * SEC);
	}
}

TEST(a_clock_at_the_edge_is_not_taken_in_and_out)
{
	clocks_matter(3);
	cluster.node[0].clock_us = -5100 * MSEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), BEHIND);
	for (unsigned i = 0; i < 5; i++) {
		cluster.node[0].clock_us = i % 2 ? -5100 * MSEC : -4900 * MSEC;
		passes(3 * SEC);
		ck_assert_str_eq(store_state(0, 0), BEHIND);
	}
	cluster.node[0].clock_us = -3900 * MSEC;
	passes(3 * SEC);
	ck_assert_str_ne(store_state(0, 0), BEHIND);
}

/* Whoever sets the clock right may leave it where it was before, when the store was used. */
TEST(a_clock_that_stays_within_the_tolerance_is_used_again)
{
	clocks_matter(3);
	cluster.node[0].clock_us = -3600 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), BEHIND);
	cluster.node[0].clock_us = -4900 * MSEC;
	passes(7 * SEC);
	ck_assert_str_ne(store_state(0, 0), BEHIND);
}

TEST(of_two_stores_the_one_that_disagrees_with_this_host_is_refused)
{
	clocks_matter(2);
	cluster.node[1].clock_us = -60 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 1), BEHIND);
	ck_assert_str_ne(store_state(0, 0), AHEAD);
}

TEST(one_store_alone_may_have_whatever_clock)
{
	clocks_matter(1);
	cluster.node[0].clock_us = -3600 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(the_clock_of_this_host_does_not_matter_where_the_stores_agree)
{
	clocks_matter(5);
	for (unsigned i = 0; i < 5; i++)
		cluster.node[i].clock_us = 7200 * SEC;
	daemon_starts(0);
	passes(3 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 5);
}

TEST(a_jump_is_marked_for_all_daemons_though_the_clock_is_off)
{
	clocks_matter(3);
	daemon_starts(0);
	passes(3 * SEC);
	cluster.node[0].clock_us = 40 * SEC;
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), AHEAD);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	/* The time of the quarantine runs meanwhile, and no join comes of it before the clock is right. */
	passes(quarantine_us(cluster.conf.max_lease_us, 0) + 5 * SEC);
	ck_assert_str_eq(store_state(0, 0), AHEAD);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	cluster.node[0].clock_us = 0;
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* No daemon has seen the step: the only one ran before it, and the next one is asked before it has anything to compare that clock with. */
TEST(a_key_that_a_step_ended_before_the_daemon_was_started_frees_no_name)
{
	clocks_matter(3);
	daemon_starts(0);
	passes(3 * SEC);
	falls(2);
	says(1, "LOCK a ttl=20s");
	passes(5 * MSEC);
	hears(1, "OK name=a *");
	daemon_ends(0);
	comes(2);
	cluster.node[0].clock_us = 21 * SEC;
	daemon_starts(1);
	session_opens(2, 1);
	for (unsigned i = 0; i < 10; i++) {
		passes(SEC);
		says(2, "LOCK a");
		passes(20 * MSEC);
		hears(2, "BUSY name=a *");
	}
	ck_assert_str_eq(store_state(1, 0), AHEAD);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	/* Set right it is joined after its quarantine, not before: until then somebody may rely on the keys that it lost. */
	cluster.node[0].clock_us = 0;
	passes(2 * SEC);
	ck_assert_str_eq(store_state(1, 0), "quarantine: its clock was ahead when it was first seen: keys may have expired early");
	passes(quarantine_us(cluster.conf.max_lease_us, 0));
	ck_assert_str_eq(store_state(1, 0), "joined");
}

/* The store answers first and is joined. The others answer a moment later. */
TEST(the_first_store_to_answer_is_compared_as_soon_as_others_have_answered)
{
	clocks_matter(3);
	daemon_starts(0);
	passes(3 * SEC);
	daemon_ends(0);
	falls(1);
	falls(2);
	cluster.node[0].clock_us = 6 * SEC;
	daemon_starts(1);
	passes(100 * MSEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	comes(1);
	passes(100 * MSEC);
	ck_assert_str_ne(store_state(1, 0), "joined");
}

/* The store only seems to be ahead: nothing has ended early there. */
TEST(the_store_that_was_right_when_the_others_were_set_back_is_not_quarantined)
{
	clocks_matter(3);
	daemon_starts(0);
	passes(3 * SEC);
	daemon_ends(0);
	cluster.node[1].clock_us = cluster.node[2].clock_us = -3600 * SEC;
	daemon_starts(1);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(1, 0), AHEAD);
	cluster.node[1].clock_us = cluster.node[2].clock_us = 0;
	passes(2 * SEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
}

TEST(a_blank_store_with_a_clock_behind_has_a_greater_fence_than_the_one_it_replaces)
{
	int64_t tol, fence;

	clocks_matter(3);
	tol = cluster.conf.clock_tol_us;
	cluster.node[0].clock_us = tol - SEC / 10;
	daemon_starts(0);
	passes(3 * SEC);
	/* All that a script lets a fence run ahead of that clock. */
	fence = CLUSTER_WALL_US + cluster.now.us + cluster.node[0].clock_us + cluster.conf.skew_us + 2 * tol;
	memory_set_fence(cluster.node[0].memory, fence);
	cluster.node[0].clock_us = -tol + SEC / 10;
	restarts_blank(0);
	passes(2 * SEC + quarantine_us(cluster.conf.max_lease_us, 0));
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_int_gt(memory_fence(cluster.node[0].memory), fence);
}

FIXTURE()

TEST(the_tolerance_is_a_fifth_of_the_longest_lease_and_five_seconds_at_most)
{
	ck_assert_int_eq(clock_tol_us(3, 30 * SEC, 0), 5 * SEC);
	ck_assert_int_eq(clock_tol_us(3, SEC, SEC), 400 * MSEC);
	ck_assert_int_eq(clock_tol_us(1, 30 * SEC, 0), 0);
	for (int64_t lease = 100 * MSEC; lease < 1000 * SEC; lease += 7 * SEC + 3) {
		int64_t advanced = quarantine_us(lease, 0) - drift_us(2 * lease);

		ck_assert_int_ge(advanced, 4 * clock_tol_us(9, lease, 0));
	}
}
