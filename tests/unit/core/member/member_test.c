/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/member.c: how a store joins: cases A, B and C of membership.h. */
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <stdio.h>

static void strict(unsigned nodes)
{
	cluster_open(nodes);
	cluster.conf.trust_first_start = false;
}

/* --- A, B, C --- */

FIXTURE(.teardown = cluster_close)

TEST(a_blank_store_waits_for_its_quarantine)
{
	strict(1);
	daemon_starts(0);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(QUARANTINE_US - MSEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_int_eq(marker_of(0)[0], 'j');
}

TEST(a_longer_max_lease_of_the_previous_run_counts_in_the_quarantine)
{
	strict(1);
	cluster.conf.past_lease_us = 2 * cluster.conf.max_lease_us;
	daemon_starts(0);
	passes(2 * QUARANTINE_US - 4 * MSEC); /* the constant slack counts once */
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(MSEC);
	ck_assert_int_eq(marker_of(0)[0], 'j');
}

TEST(a_join_lifts_the_fence_above_every_token_issued)
{
	strict(1);
	memory_set_fence(cluster.node[0].memory, CLUSTER_WALL_US);
	daemon_starts(0);
	passes(QUARANTINE_US);
	ck_assert_int_eq(memory_fence(cluster.node[0].memory), CLUSTER_WALL_US + cluster.now.us + cluster.conf.skew_us);
	says(1, "LOCK a");
	ck_assert_int_gt(number_in(hears(1, GRANT), "fence"), CLUSTER_WALL_US + cluster.now.us + cluster.conf.skew_us);
}

TEST(a_store_with_our_marker_and_its_identity_joins_at_once)
{
	cluster_begin(3);
	daemon_ends(0);
	cluster.conf.trust_first_start = false;
	daemon_starts(0);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
}

TEST(a_restarted_store_is_quarantined_though_its_data_survived)
{
	cluster_begin(1);
	falls(0);
	strcpy(cluster.node[0].run_id, "another-run");
	comes(0);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it was restarted, replaced or taken over");
	passes(QUARANTINE_US);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_change_of_its_run_id_alone_is_a_restart)
{
	cluster_open(1);
	cluster.node[0].probe.replid = SPAN("the same");
	daemon_starts(0);
	ck_assert_str_eq(store_state(0, 0), "joined");
	strcpy(cluster.node[0].run_id, "another-run");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it was restarted, replaced or taken over");
}

TEST(a_change_of_its_replication_id_is_a_restart)
{
	cluster_begin(1);
	cluster.node[0].probe.replid = SPAN("promoted");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it was restarted, replaced or taken over");
	passes(QUARANTINE_US);
}

TEST(a_flushed_store_answers_no_vote_from_the_very_next_call_on)
{
	cluster_begin(3);
	is_flushed(0);
	is_flushed(1);
	says(1, "LOCK a");
	passes(60 * MSEC); /* for a moment, in case their markers are all right */
	hears(1, "ERR QUORUM 1 of 3 *");
	ck_assert(!key_is_there(0, "a"));
	ck_assert(!key_is_there(2, "a"));
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
	ck_assert_str_eq(store_state(0, 2), "joined");
}

TEST(no_vote_counts_in_a_quarantine_not_even_a_renewal)
{
	held_after_lock(3, "LOCK a");
	restarts_blank(0);
	passes(3400 * MSEC);
	/* b and c renew; without one of them what a did would have to count. */
	falls(1);
	passes(9 * SEC);
	hears(1, "! RISK *");
	passes(SEC);
	hears(1, "! LOST name=a fence=* reason=quorum");
	ck_assert(!key_is_there(0, "a"));
}

TEST(a_second_loss_in_a_quarantine_begins_it_anew)
{
	strict(1);
	daemon_starts(0);
	passes(QUARANTINE_US - 500 * MSEC);
	is_flushed(0);
	passes(SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(QUARANTINE_US - 2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(3 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 1);
}

TEST(a_loss_between_the_last_look_and_the_join_is_seen)
{
	strict(1);
	daemon_starts(0);
	passes(QUARANTINE_US - MSEC);
	is_flushed(0);
	passes(MSEC);
	/* The compare-and-set finds another marker: no join. */
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(QUARANTINE_US);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 1);
}

/* --- two daemons --- */

TEST(a_second_daemon_times_the_quarantine_that_the_first_began_by_its_own_clock)
{
	char marker[MARKER_MAX + 1];

	strict(1);
	daemon_starts(0);
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	passes(10 * SEC);
	daemon_starts(1);
	ck_assert_str_eq(marker_of(0), marker);
	ck_assert_str_eq(store_state(1, 0), "quarantine: another daemon found that it may have lost memory");
	passes(QUARANTINE_US - 10 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 1);
	/* The first joined it: that is a marker of case A for the second as well. */
	passes(2 * SEC);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 1);
}

TEST(of_two_daemons_that_join_at_once_both_are_in)
{
	strict(3);
	daemon_starts(0);
	daemon_starts(1);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
}

TEST(two_daemons_do_not_open_a_store_that_lost_its_memory_twice)
{
	strict(1);
	daemon_starts(0);
	passes(20 * SEC);
	daemon_starts(1);
	is_flushed(0);
	passes(2 * SEC);
	/* For the second daemon the store was blank both times. Only the value of the marker tells one loss from the other. */
	passes(QUARANTINE_US - 3 * SEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED) + figure(1, METRIC_NODES_JOINED), 0);
	passes(4 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED) + figure(1, METRIC_NODES_JOINED), 2);
}

TEST(eviction_quarantines_a_store_for_all_daemons)
{
	cluster_begin(1);
	daemon_starts(1);
	cluster.daemon[1].stopped = true;
	cluster.node[0].probe.evicted = 1;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it evicted keys");
	cluster.daemon[1].stopped = false;
	session_opens(2, 1);
	says(2, "LOCK a");
	hears(2, "ERR QUORUM *");
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED) + figure(1, METRIC_NODES_JOINED), 2);
}

TEST(a_store_that_evicts_its_marker_as_well_was_not_flushed)
{
	cluster_begin(1);
	daemon_starts(1);
	session_opens(1, 0);
	says(1, "LOCK a");
	hears(1, "OK *");
	is_flushed(0);
	cluster.node[0].probe.evicted = 3;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it evicted keys");
}

TEST(a_connection_that_breaks_does_not_begin_the_quarantine_anew)
{
	strict(1);
	daemon_starts(0);
	passes(20 * SEC);
	falls(0);
	ck_assert_str_eq(store_state(0, 0), "down: connection lost");
	passes(5 * SEC);
	comes(0);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
	says(1, "LIST nodes");
	ck_assert_int_eq(number_in(hears(1, "\\* node=a state=quarantine reason=* left_ms=*"), "left_ms"), (QUARANTINE_US - 25 * SEC) / MSEC);
	ignores(1);
	says(1, "LOCK a");
	hears(1, "ERR QUORUM 0 of 1 * retry_ms=5604"); /* QUARANTINE_US - 25 s */
	passes(QUARANTINE_US - 25 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_refusal_says_why_the_stores_are_not_used)
{
	cluster_begin(5);
	restarts_blank(0);
	restarts_blank(1);
	cluster.node[2].probe.role = SPAN("slave");
	falls(3);
	passes(1100 * MSEC);
	says(1, "LOCK a");
	hears(1, "ERR QUORUM 1 of 5 stores can be used, 3 are needed: 2 in quarantine, 1 refused, 1 down; c: it is a replica: only a master may hold locks; "
		 "d: connection lost; enough are back in 29504 ms retry_ms=29504");
	cluster.node[2].probe.role = SPAN("master");
}

TEST(a_quarantine_whose_time_is_over_while_out_of_reach_ends_at_once)
{
	strict(1);
	daemon_starts(0);
	passes(20 * SEC);
	falls(0);
	passes(QUARANTINE_US);
	comes(0);
	passes(MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

LOOP_TEST(a_loss_while_out_of_reach_begins_the_quarantine_anew, 2)
{
	strict(1);
	daemon_starts(0);
	passes(20 * SEC);
	falls(0);
	if (_i)
		is_flushed(0);
	else
		strcpy(cluster.node[0].run_id, "another-run"); /* its data, the marker among it, survived */
	passes(5 * SEC);
	comes(0);
	passes(QUARANTINE_US - SEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

static int64_t told_rtt_us(unsigned node)
{
	const char *row = NULL;
	int64_t rtt = -1;

	says(1, "LIST nodes");
	for (unsigned i = 0; i <= node; i++)
		row = next_line(1);
	rtt = number_in(row, "rtt_us");
	ignores(1);
	return rtt;
}

TEST(a_sample_that_a_stop_held_up_counts_once_and_one_above_the_timeout_not_at_all)
{
	cluster_begin(1);
	feels(0, MOOD_TARDY);
	says(1, "LOCK a");
	passes(16 * MSEC);
	feels(0, MOOD_WELL);
	hears(1, "OK *");
	ck_assert_int_eq(told_rtt_us(0), 16000);
	for (unsigned i = 0; i < 20; i++)
		says(1, "LOCK b%u", i);
	ignores(1);
	ck_assert_int_eq(told_rtt_us(0), 16000);
	passes(MSEC);
	for (unsigned i = 0; i < 20; i++)
		says(1, "LOCK c%u", i);
	ignores(1);
	ck_assert_int_eq(told_rtt_us(0), 14000);
	feels(0, MOOD_TARDY);
	says(1, "LOCK d wait=1m");
	passes(60 * MSEC);
	feels(0, MOOD_WELL);
	ignores(1);
	ck_assert_int_eq(told_rtt_us(0), 14000);
}

/* Ten calls of a crowd, one after the other, and then the store stops for nearly as long as a command may take. */
TEST(a_stop_shorter_than_the_timeout_hardly_changes_the_round_trip_estimate)
{
	cluster_begin(1);
	feels(0, MOOD_TARDY);
	says(1, "LOCK a");
	passes(MSEC);
	feels(0, MOOD_WELL);
	hears(1, "OK *");
	ck_assert_int_eq(told_rtt_us(0), 1000);
	feels(0, MOOD_TARDY);
	for (unsigned i = 0; i < 10; i++) {
		passes(MSEC);
		says(2 + i, "LOCK b%u wait=1m", i);
	}
	passes(40 * MSEC - 10 * MSEC);
	feels(0, MOOD_WELL);
	ignores(1);
	ck_assert_int_eq(told_rtt_us(0), (7 * 1000 + 3000) / 8);
}
