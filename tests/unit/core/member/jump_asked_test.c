/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/clock.c, observe.c: while it is not known whose clock jumped, the other stores are asked. */
#include "tests/fixture/jumped_clock.h"

#include <check.h>

static void jumps_while_the_others_hang(void)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	cluster.node[0].clock_us = 200 * MSEC;
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
}

FIXTURE(.teardown = cluster_close)

/* Store 0 has jumped, store 2 hangs, and what store 1 says tells nothing of its clock. */
TEST(a_store_that_fails_while_it_is_asked_about_the_jump_of_another_is_asked_once)
{
	unsigned before;

	cluster_begin(3);
	passes(1500 * MSEC);
	before = cluster.node[1].count[CALL_PROBE];
	feels(2, MOOD_SILENT);
	cluster.node[1].mute = true;
	refuses(1, "LOADING Redis is loading the dataset in memory");
	cluster.node[0].clock_us += 20 * SEC;
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
	passes(100 * MSEC);
	ck_assert_uint_le(cluster.node[1].count[CALL_PROBE] - before, 1);
	ck_assert_str_eq(store_state(0, 0), JUMPED);
	ck_assert_str_eq(store_state(0, 1), "refused: it is loading its data");
	all_feel(MOOD_WELL);
	passes(SEC);
	ignores(1);
}

/* Store 1 is full, so it refuses the marker, but it tells its time. Store 2 is away. */
TEST(a_store_that_cannot_be_marked_is_asked_about_the_jump_of_another)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	refuses(1, "OOM command not allowed when used memory > 'maxmemory'");
	restarts_blank(1);
	passes(2200 * MSEC); /* store 0 is looked at before it is */
	ck_assert_str_eq(store_state(0, 1), "refused: it refuses writes: OOM command not allowed when used memory > 'maxmemory'");
	falls(2);
	clocks_go_on_without_us(20 * SEC);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_int_eq(marker_of(0)[0], 'j');
	ck_assert(was_logged("stood-still for_ms=*"));
}

/* The clock of store 0 was set forward, and did not stand still with the others: what it shows of that is told once, and asking again shows no more. */
TEST(a_store_that_shows_less_than_a_stop_is_asked_about_it_once)
{
	unsigned before;

	jumps_while_the_others_hang();
	before = cluster.node[0].count[CALL_PROBE];
	feels(0, MOOD_SILENT);
	passes(MSEC);
	cluster.node[1].clock_us = cluster.node[2].clock_us = 20 * SEC;
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	passes(MSEC);
	feels(0, MOOD_WELL);
	passes(100 * MSEC);
	ck_assert(was_logged("stood-still for_ms=*"));
	ck_assert_str_eq(store_state(0, 0), JUMPED);
	ck_assert_uint_le(cluster.node[0].count[CALL_PROBE] - before, 4);
	ignores(1);
}

LOOP_TEST(until_it_is_known_whose_clock_jumped_a_store_does_not_count, 2)
{
	jumps_while_the_others_hang();
	ck_assert_int_eq(marker_of(0)[0], 'j');
	passes(cluster.conf.timeout_us - MSEC);
	ck_assert_str_eq(store_state(0, 0), ASKING);
	if (_i) {
		clocks_go_on_without_us(200 * MSEC);
		cluster.node[0].clock_us -= 200 * MSEC;
		all_feel(MOOD_WELL);
		passes(MSEC);
		nobody_is_marked();
	} else {
		passes(2 * MSEC); /* nobody else says a word */
		ck_assert_str_eq(store_state(0, 0), JUMPED);
		all_feel(MOOD_WELL);
		ck_assert_int_eq(marker_of(0)[0], 'q');
	}
	passes(SEC);
	ignores(1);
}

/* The answer of the store shows nothing of the jump, for which it is asked again, but it shows that the store was made a replica. */
TEST(a_role_that_a_store_reports_counts_while_it_is_asked_about_the_jump_of_another)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(0, MOOD_SILENT);
	while (waiting_at(0) == 0)
		passes(MSEC);
	passes(MSEC);
	feels(2, MOOD_SILENT);
	cluster.node[0].probe.role = SPAN("slave");
	cluster.node[1].clock_us = 200 * MSEC;
	says(1, "LOCK a");
	passes(20 * MSEC);
	ck_assert_str_eq(store_state(0, 1), ASKING);
	serves(0, 1);
	ck_assert_str_eq(store_state(0, 0), "refused: it is a replica: only a master may hold locks");
	all_feel(MOOD_WELL);
	passes(SEC);
	ignores(1);
}

/* The daemon is stopped twice in a row: the second look, which decides, would come before the answers of the others are read. */
TEST(a_daemon_that_is_stopped_again_while_the_others_are_asked_marks_no_store)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	clocks_go_on_without_us(2 * SEC);
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
	feels(0, MOOD_SILENT);
	passes(cluster.conf.timeout_us + MSEC);
	all_feel(MOOD_TARDY);
	jumps(5 * cluster.conf.timeout_us);
	all_feel(MOOD_WELL);
	passes(SEC);
	nobody_is_marked();
	ignores(1);
}

/* The answers of the others lie unread: that the daemon did not hear them in time says nothing of those stores. */
LOOP_TEST(a_daemon_that_is_stopped_while_the_others_are_asked_marks_no_store, 2)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	clocks_go_on_without_us(2 * SEC);
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
	if (_i)
		all_feel(MOOD_TARDY);
	jumps(5 * cluster.conf.timeout_us);
	all_feel(MOOD_TARDY);
	wakes(0);
	all_feel(MOOD_WELL);
	passes(SEC);
	nobody_is_marked();
	ck_assert(was_logged("stood-still for_ms=*"));
	ignores(1);
}

/* The process runs for 45 ms, which is less than the timeout, between two stops. The others say nothing, and store 0 has jumped by itself. */
TEST(a_verdict_comes_though_the_process_is_stopped_again_and_again)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	cluster.node[0].clock_us += 2 * SEC;
	says(1, "LOCK a");
	ck_assert_str_eq(store_state(0, 0), ASKING);
	jumps(5 * cluster.conf.timeout_us);
	wakes(0);
	for (unsigned i = 0; i < 100; i++) {
		passes(45 * MSEC);
		jumps(51 * MSEC);
		wakes(0);
	}
	ck_assert_str_eq(store_state(0, 0), JUMPED);
	all_feel(MOOD_WELL);
	ignores(1);
}
