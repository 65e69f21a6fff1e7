/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores whose connection breaks, or that lose their memory, again and again: between two times all looks well. */
#include "tests/fixture/held_lock.h"

#include <check.h>

#define WELL "joined"
#define BLANK "quarantine: it carries no marker: new, restarted blank, or flushed"

static void breaks_after(int64_t us)
{
	passes(us);
	breaks(0);
	passes(50 * MSEC);
}

FIXTURE(.teardown = cluster_close)

TEST(a_third_break_within_a_minute_is_shown_while_the_store_is_joined)
{
	cluster_begin(3);
	breaks(0);
	breaks_after(5 * SEC);
	ck_assert_str_eq(store_state(0, 0), WELL);
	breaks_after(5 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined: its connection broke 3 times within 11 s: connection lost");
	says(1, "LIST nodes");
	hears(1, "\\* node=a state=joined reason=* cause=breaks *");
	ignores(1);
	ck_assert(was_logged("node node=a state=down was=joined cause=breaks reason=\"its connection broke 3 times within 11 s: connection lost\""));
	breaks_after(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined: its connection broke 3 times within 8 s: connection lost");
	passes(61 * SEC);
	ck_assert_str_eq(store_state(0, 0), WELL);
}

TEST(breaks_far_apart_are_not_shown)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 6; i++) {
		breaks_after(31 * SEC);
		ck_assert_str_eq(store_state(0, 0), WELL);
	}
}

TEST(a_store_that_is_down_says_why_it_is)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++) {
		falls(0);
		if (i < 2)
			comes(0);
	}
	ck_assert_str_eq(store_state(0, 0), "down: its connection broke 3 times within 1 s: connection lost");
	is_down_for(0, 0, DEFECT_UNREACHED); /* it cannot be dialled */
	ck_assert_str_eq(store_state(0, 0), "down: left");
}

/* The daemon was restarted, sentinels named another master, or the server is silent or talks nonsense: it says that, and not that something cuts it off. */
LOOP_TEST(connections_that_the_daemon_ends_are_not_counted, 4)
{
	static const enum defect planned[] = {DEFECT_OTHER, DEFECT_SENTINEL, DEFECT_SILENT, DEFECT_NO_REDIS};

	cluster_begin(3);
	for (unsigned i = 0; i < 5; i++) {
		passes(SEC);
		is_down_for(0, 0, planned[_i]);
		comes(0);
	}
	ck_assert_str_eq(store_state(0, 0), WELL);
}

static void is_flushed_after(int64_t us)
{
	passes(us);
	is_flushed(0);
	passes(1100 * MSEC);
}

TEST(a_third_loss_of_memory_is_told_as_such)
{
	cluster_begin(1);
	is_flushed_after(0);
	ck_assert_str_eq(store_state(0, 0), BLANK);
	ck_assert(was_logged("node node=a state=quarantine *"));
	is_flushed_after(5 * SEC);
	ck_assert_str_eq(store_state(0, 0), BLANK);
	ck_assert(was_logged("node node=a state=quarantine *")); /* it begins anew: each time is told */
	is_flushed_after(5 * SEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it had to be quarantined 3 times within 13 s: it carries no marker: new, restarted blank, or flushed");
	ck_assert(was_logged("node node=a state=quarantine *reason=\"it had to be quarantined 3 times *"));
	says(1, "LIST nodes");
	hears(1, "\\* node=a state=quarantine reason=* cause=forgets left_ms=*");
	ignores(1);
	passes(QUARANTINE_US + SEC);
	ck_assert_str_eq(store_state(0, 0), WELL);
	is_flushed_after(10 * 60 * SEC);
	ck_assert_ptr_nonnull(strstr(store_state(0, 0), "quarantine: it had to be quarantined 4 times within 64"));
}

/* Nobody flushes it: each sign of lost memory has its own cause. */
TEST(a_clock_that_is_stepped_again_and_again_is_told_as_a_clock)
{
	cluster_begin(1);
	for (unsigned i = 0; i < 4; i++) {
		passes(QUARANTINE_US + SEC);
		cluster.node[0].clock_us += 60 * SEC;
		passes(2 * SEC);
	}
	says(1, "LIST nodes");
	hears(1, "\\* node=a state=quarantine reason=* cause=clock left_ms=*");
	ignores(1);
}

TEST(the_log_of_sentinels_that_come_and_go_is_bounded)
{
	unsigned lines = 0;

	cluster_begin(1);
	is_watched(0, 0, "no sentinel tells where locks is");
	ck_assert(was_logged("node node=a state=joined cause=sentinel reason=\"no sentinel tells where locks is\""));
	is_watched(0, 0, "");
	ck_assert(was_logged("node node=a state=joined cause=sentinel note=*"));
	for (unsigned i = 0; i < 60; i++) {
		is_watched(0, 0, i % 2 ? "" : "no sentinel tells where locks is");
		passes(SEC);
		lines += was_logged("node *");
	}
	ck_assert_uint_ge(lines, 10);
	ck_assert_uint_le(lines, 20);
}

TEST(the_log_of_stops_is_bounded)
{
	unsigned lines = 0;

	cluster_begin(3);
	for (unsigned i = 0; i < 60; i++) {
		clocks_go_on_without_us(80 * MSEC);
		passes(1300 * MSEC);
		lines += was_logged("stood-still *");
	}
	ck_assert_uint_ge(lines, 10);
	ck_assert_uint_le(lines, 30);
}

TEST(losses_of_memory_far_apart_are_not_added_up)
{
	cluster_begin(1);
	for (unsigned i = 0; i < 5; i++) {
		is_flushed_after(16 * 60 * SEC + QUARANTINE_US);
		ck_assert_ptr_null(strstr(store_state(0, 0), "times within"));
	}
}

TEST(the_log_of_losses_is_bounded)
{
	unsigned lines = 0;

	cluster_begin(1);
	for (unsigned i = 0; i < 60; i++) {
		is_flushed_after(0);
		lines += was_logged("node node=a state=quarantine *");
	}
	ck_assert_uint_ge(lines, 10);
	ck_assert_uint_le(lines, 20);
}
