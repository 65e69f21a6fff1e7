/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/members.c, probe.c: a new generation of the configuration waits for what the one before has promised. */
#include "daemon/core/member/members.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

#define NEW_QUARANTINE_US (5103 * MSEC)
#define TOO_FEW  "refused: too few servers of the previous configuration are taken over: see CHANGING THE SERVERS in redlockd(8)"

/* Daemon 1 will be of the next generation. */
static void next_generation(int64_t max_lease_us)
{
	cluster.conf.generation++;
	cluster.conf.trust_first_start = false;
	cluster.conf.max_lease_us = max_lease_us;
	cluster.conf.lease_us = 2 * SEC;
}

static void nobody_is_joined_before(int64_t us, unsigned nodes)
{
	passes(us - 20 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 0);
	passes(40 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), nodes);
}

FIXTURE(.teardown = cluster_close)

TEST(a_smaller_max_lease_waits_for_the_promises_of_the_larger)
{
	cluster_begin(3);
	next_generation(5 * SEC);
	daemon_starts(1);
	daemon_ends(0);
	nobody_is_joined_before(QUARANTINE_US, 3);
}

TEST(a_larger_max_lease_waits_for_its_own)
{
	cluster_begin(3);
	next_generation(60 * SEC);
	daemon_starts(1);
	daemon_ends(0);
	nobody_is_joined_before(61203 * MSEC, 3);
}

LOOP_TEST(servers_that_forgot_the_larger_one_wait_for_it_as_long_as_one_remembers, 2)
{
	cluster_begin(3);
	daemon_ends(0);
	restarts_blank(0);
	restarts_blank(1);
	next_generation(5 * SEC);
	feels(2, _i ? MOOD_SILENT : MOOD_WELL);
	daemon_starts(1);
	feels(2, MOOD_WELL); /* after the other two were begun to be timed */
	nobody_is_joined_before(QUARANTINE_US, 3);
}

TEST(a_restart_in_between_knows_the_larger_max_lease_from_the_new_markers)
{
	cluster_begin(3);
	daemon_ends(0);
	next_generation(5 * SEC);
	daemon_starts(1);
	passes(10 * SEC);
	daemon_ends(1);
	restarts_blank(0);
	daemon_starts(1);
	nobody_is_joined_before(QUARANTINE_US, 3);
	/* By then the promises of the larger max_lease had ended, and the markers no longer name it. */
	daemon_ends(1);
	restarts_blank(1);
	daemon_starts(1);
	passes(NEW_QUARANTINE_US + 20 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
}

TEST(once_all_stores_are_taken_over_and_its_promises_have_ended_the_larger_max_lease_is_over)
{
	cluster_begin(3);
	daemon_ends(0);
	next_generation(5 * SEC);
	daemon_starts(1);
	passes(QUARANTINE_US + SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
	restarts_blank(0);
	passes(NEW_QUARANTINE_US - 20 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	passes(40 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
	ck_assert_ptr_nonnull(strstr(marker_of(0), "|5000|3."));
}

TEST(a_server_that_was_never_seen_under_the_new_max_lease_waits_for_the_larger_one_whenever_it_comes)
{
	cluster_begin(3);
	falls(0);
	daemon_ends(0);
	next_generation(5 * SEC);
	daemon_starts(1);
	passes(2 * QUARANTINE_US);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	restarts_blank(0);
	passes(QUARANTINE_US - 20 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	passes(40 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
}

/* This daemon has known for long that the larger promises are over at the servers it sees. Another daemon takes over a third server only now. */
TEST(a_server_that_another_daemon_takes_over_late_waits_for_the_larger)
{
	cluster_begin(3);
	next_generation(5 * SEC);
	cluster.node[2].up = false;
	daemon_starts(1);
	passes(QUARANTINE_US + SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	cluster.node[0].up = cluster.node[1].up = false;
	cluster.node[2].up = true;
	daemon_starts(2);
	daemon_ends(2);
	cluster.node[0].up = cluster.node[1].up = true;
	daemon_node_event(1, 2, EVENT_NODE_UP);
	passes(QUARANTINE_US - 20 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	passes(120 * MSEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
}

LOOP_TEST(a_marker_of_an_earlier_version_names_no_bound_and_no_set, 3)
{
	static const char *const marker[] = {"j|1.0123456789abcdef|run-0-1|run-0-1|0123456789abcdef", "j|1.0123456789abcdef|r|r|n||", "j|1.0|r|r|n|x|y|z"};

	cluster_open(1);
	marker_is_set(0, marker[_i]);
	daemon_starts(1);
	daemon_ends(1);
	next_generation(5 * SEC);
	daemon_starts(1);
	nobody_is_joined_before(NEW_QUARANTINE_US, 1);
}

/* An age, and one of which a number of 64 bits keeps 1. */
LOOP_TEST(a_marker_that_names_an_age_is_bounded, 2)
{
	static const char *const marker[] = {
		"j|1.0123456789abcdef|r|r|n|9999999999999999999|1.00000000|", "j|1.0123456789abcdef|r|r|n|18446744073709551617|1.00000000|"};

	cluster_open(1);
	marker_is_set(0, marker[_i]);
	daemon_starts(1);
	daemon_ends(1);
	next_generation(5 * SEC);
	daemon_starts(1);
	passes(60 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 0);
}

/* --- another set: of the five servers of the new one three are of the old --- */

static void old_set_of_three(void)
{
	cluster_open(5);
	cluster.conf.nodes = 3;
	daemon_starts(0);
	passes(2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	cluster.conf.nodes = 5;
	next_generation(30 * SEC);
	cluster.conf.set = "five";
}

LOOP_TEST(another_set_serves_once_the_old_one_has_no_quorum_any_more, 2)
{
	old_set_of_three();
	if (_i)
		restarts_blank(0);
	daemon_starts(1);
	nobody_is_joined_before(QUARANTINE_US, 5);
}

TEST(another_set_does_not_serve_while_the_old_one_may_have_a_quorum_out_of_its_sight)
{
	old_set_of_three();
	daemon_ends(0);
	restarts_blank(0);
	restarts_blank(1);
	daemon_starts(1);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 0);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_str_eq(store_state(1, i), TOO_FEW);
	ck_assert(was_logged("node *"));
	while (was_logged("node *"))
		continue;
	passes(5 * SEC);
	ck_assert_msg(!was_logged("node *"), "told once");
}

TEST(a_second_server_that_is_taken_over_late_is_waited_for)
{
	old_set_of_three();
	falls(0);
	falls(1);
	daemon_starts(1);
	passes(20 * SEC);
	comes(0);
	passes(11 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 0);
	passes(20 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 4);
}

/* Two that are new have joined before any of the old set was in reach. They know nothing of it. */
TEST(new_servers_that_joined_alone_do_not_vouch_for_the_end_of_the_old_set)
{
	old_set_of_three();
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].up = false;
	daemon_starts(1);
	session_opens(2, 1);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].up = true;
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	daemon_node_event(1, 0, EVENT_NODE_UP);
	passes(QUARANTINE_US + 2 * SEC);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	says(2, "LOCK a ttl=2s"); /* the cluster sees to it that nobody else has it */
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	ck_assert_str_eq(store_state(1, 0), TOO_FEW);
	hears(2, "ERR QUORUM *");
	daemon_node_event(1, 1, EVENT_NODE_UP);
	ignores(1);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 4);
	/* A server that has lost its marker since is no reason to wait for the old set again. */
	for (unsigned i = 0; i < 2; i++) {
		falls(i);
		node_is_born(i);
		cluster.node[i].up = true;
		daemon_node_event(1, i, EVENT_NODE_UP);
	}
	passes(QUARANTINE_US + 2 * SEC);
	daemon_node_event(1, 2, EVENT_NODE_UP);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 5);
	ignores(1);
}

/* Two new servers have joined when this daemon knew of no old set. It hears of the old set only from a server that another daemon has taken over. */
TEST(an_old_set_that_another_daemon_tells_of_is_waited_for)
{
	old_set_of_three();
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].up = false;
	daemon_starts(1);
	session_opens(2, 1);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	cluster.node[0].up = true;
	cluster.node[3].up = cluster.node[4].up = false;
	daemon_starts(2);
	daemon_ends(2);
	for (unsigned i = 1; i < 5; i++)
		cluster.node[i].up = true;
	daemon_node_event(1, 0, EVENT_NODE_UP);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 2);
	ck_assert_str_eq(store_state(1, 0), TOO_FEW);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	says(2, "LOCK a ttl=2s"); /* the fixture checks that nobody else holds it */
	hears(2, "ERR QUORUM *");
}

/* Another daemon has just taken a second one over, and it has become a replica since: its time has not begun here, and is not over. */
TEST(a_second_server_that_is_taken_over_and_must_not_be_used_is_waited_for)
{
	old_set_of_three();
	cluster.node[0].up = cluster.node[1].up = false;
	daemon_starts(2);
	cluster.node[0].up = cluster.node[1].up = true;
	session_opens(2, 2);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_str_eq(store_state(2, 4), TOO_FEW);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	for (unsigned i = 1; i < 5; i++)
		cluster.node[i].up = false;
	daemon_starts(1);
	daemon_ends(1);
	for (unsigned i = 1; i < 5; i++)
		cluster.node[i].up = true;
	cluster.node[0].probe.role = SPAN("slave");
	daemon_node_event(2, 0, EVENT_NODE_UP);
	says(2, "LOCK a wait=1m"); /* the cluster sees to it that nobody else has it */
	passes(2 * SEC);
	ck_assert_uint_eq(figure(2, METRIC_NODES_JOINED), 0);
	cluster.node[0].probe.role = SPAN("master");
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(2, METRIC_NODES_JOINED), 4);
	hears(2, "OK name=a *");
	ignores(1);
}

TEST(servers_that_were_taken_over_before_a_restart_count)
{
	old_set_of_three();
	daemon_starts(1);
	passes(10 * SEC);
	daemon_ends(1);
	daemon_starts(1);
	nobody_is_joined_before(QUARANTINE_US, 5);
	/* And later nobody asks for it any more. */
	restarts_blank(0);
	restarts_blank(1);
	restarts_blank(2);
	passes(QUARANTINE_US + SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 5);
}
