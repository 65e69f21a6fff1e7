/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/observe.c: trust_first_start, and when it ends. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(on_a_first_start_all_blank_stores_are_trusted_at_once)
{
	cluster_open(3);
	daemon_starts(0);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
}

TEST(on_a_first_start_a_slow_store_is_waited_for_a_moment_and_then_goes_through_quarantine)
{
	cluster_open(3);
	cluster.node[2].up = false;
	daemon_starts(0);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(2100 * MSEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
	comes(2);
	ck_assert_str_eq(store_state(0, 2), "quarantine: it carries no marker: new, restarted blank, or flushed");
}

TEST(keys_that_a_reboot_deleted_are_waited_out_from_the_boot_on)
{
	cluster_open(1);
	cluster.now.us = 5 * SEC;
	cluster.conf.trust_first_start = false;
	cluster.conf.rebooted = true;
	daemon_starts(0);
	says(1, "LOCK a");
	hears(1, "ERR QUORUM *retry_ms=25604*");
	passes(QUARANTINE_US - 6 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 1);
	/* A loss after that is a loss. */
	restarts_blank(0);
	passes(QUARANTINE_US - SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(3 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 1);
	ignores(1);
}

TEST(a_boot_that_is_long_ago_is_waited_for_no_more)
{
	cluster_open(1);
	cluster.now.us = QUARANTINE_US + SEC;
	cluster.conf.trust_first_start = false;
	cluster.conf.rebooted = true;
	daemon_starts(0);
	passes(0);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 1);
}

TEST(one_marker_is_enough_to_trust_no_store)
{
	cluster_open(3);
	marker_is_set(2, "q|old|x|y|z");
	daemon_starts(0);
	passes(10 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	passes(QUARANTINE_US);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
}

TEST(a_marker_that_shows_late_stops_the_trust_in_the_others)
{
	cluster_open(3);
	cluster.node[2].up = false;
	marker_is_set(2, "q|old|x|y|z");
	daemon_starts(0);
	passes(500 * MSEC);
	comes(2);
	passes(10 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
}

TEST(less_than_a_quorum_is_never_trusted)
{
	cluster_open(3);
	cluster.node[1].up = cluster.node[2].up = false;
	daemon_starts(0);
	passes(60 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	comes(1);
	passes(2100 * MSEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
}

TEST(trust_ends_with_the_first_join)
{
	cluster_begin(1);
	restarts_blank(0);
	passes(20 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0);
	ck_assert_int_eq(marker_of(0)[0], 'q');
}

/* The store is blank at first, and proves unfit a second later, when the others have had their time. */
LOOP_TEST(a_blank_store_that_must_not_be_used_is_not_trusted, 2)
{
	cluster_open(3);
	cluster.node[2].up = false;
	cluster.conf.clock_tol_us = 5 * SEC;
	if (_i)
		cluster.node[0].clock_us = 3600 * SEC; /* there was no other clock to hold it against when it was looked at first */
	daemon_starts(0);
	passes(500 * MSEC);
	if (!_i)
		cluster.node[0].probe.role = SPAN("slave");
	passes(1600 * MSEC);
	ck_assert_int_eq(strncmp(store_state(0, 0), "refused", 7), 0);
	ck_assert_str_eq(marker_of(0), "");
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 0); /* nor is it one of a quorum */
	comes(2);
	passes(2100 * MSEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
}

/* Store 0 is probed again at the moment when the last store shows that it is blank. */
static void the_other_is_trusted_while_it_is_asked(int64_t hangs_us)
{
	cluster_open(2);
	cluster.node[1].up = false;
	daemon_starts(0);
	passes(990 * MSEC);
	feels(0, MOOD_SILENT);
	passes(20 * MSEC);
	ck_assert_uint_eq(waiting_at(0), 1);
	comes(1);
	ck_assert_str_eq(store_state(0, 1), "joined");
	passes(hangs_us);
	feels(0, MOOD_WELL);
}

TEST(a_store_that_is_asked_again_while_the_others_are_trusted_is_trusted_as_well)
{
	the_other_is_trusted_while_it_is_asked(10 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_store_that_hung_while_the_others_were_trusted_may_have_been_used_and_flushed)
{
	the_other_is_trusted_while_it_is_asked(70 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
}

TEST(a_store_that_hung_while_it_was_to_be_joined_is_trusted_no_more)
{
	cluster_open(2);
	cluster.node[1].up = false;
	daemon_starts(0);
	passes(100 * MSEC);
	feels(0, MOOD_SILENT);
	comes(1);
	ck_assert_str_eq(store_state(0, 1), "joined");
	passes(cluster.conf.timeout_us + 20 * MSEC);
	feels(0, MOOD_WELL);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it carries no marker: new, restarted blank, or flushed");
}
