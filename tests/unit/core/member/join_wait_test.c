/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/members.c, member.c: whom a join waits for, and for how long. */
#include "tests/fixture/short_lease.h"

#include <check.h>
#include <stdio.h>

#define MINUTE     (61 * SEC)
#define SET_BACK   (400 * SEC)

FIXTURE(.teardown = cluster_close)

/* Store 2 is out of reach when the quarantine of store 0 ends, and is back before the wait for it ends. */
TEST(a_store_whose_connection_is_broken_for_a_moment_is_waited_for)
{
	int64_t fence;

	short_lease_opens();
	daemon_starts(0);
	passes(2 * SEC);
	falls_behind(1, SET_BACK / 20);
	passes(2 * SEC);
	fence = grants_a(1);
	falls_behind(0, SET_BACK / 20);
	cluster.daemon[0].stopped = true;
	cluster.conf.trust_first_start = false;
	restarts_blank(0);
	falls(2);
	daemon_starts(1);
	session_opens(5, 1);
	passes(SHORT_QUARANTINE + 2 * MSEC);
	comes(2);
	passes(cluster.conf.timeout_us + 10 * MSEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
}

/* A store stays in quarantine until the others were heard: retry_ms counts that wait as well. */
TEST(a_request_while_the_others_are_asked_is_told_when_to_come_again)
{
	short_lease_opens();
	cluster.conf.timeout_us = 500 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	falls(1);
	restarts_blank(0);
	passes(SHORT_QUARANTINE / 2);
	feels(2, MOOD_SILENT);
	passes(SHORT_QUARANTINE / 2 + 10 * MSEC);
	ck_assert_str_ne(store_state(0, 0), "joined");
	says(1, "LOCK a ttl=200ms");
	ck_assert_ptr_null(strstr(hears(1, "ERR QUORUM *"), "retry_ms=1\0"));
	feels(2, MOOD_WELL);
}

/* Four of nine forget at one moment, and one hangs. Each of the others is asked once more, and each is joined once. */
TEST(stores_that_leave_quarantine_together_are_asked_once)
{
	unsigned probes, joins;

	cluster_open(9);
	cluster.conf.max_lease_us = cluster.conf.lease_us = 200 * MSEC;
	cluster.conf.clock_tol_us = 40 * MSEC;
	daemon_starts(0);
	passes(1500 * MSEC);
	for (unsigned i = 0; i < 4; i++)
		restarts_blank(i);
	passes(SHORT_QUARANTINE - 5 * MSEC);
	feels(8, MOOD_SILENT);
	probes = asked(CALL_PROBE);
	joins = asked(CALL_MARK);
	passes(10 * MSEC);
	ck_assert_uint_le(asked(CALL_PROBE) - probes, 9);
	ck_assert_uint_eq(asked(CALL_MARK) - joins, 0);
	passes(cluster.conf.timeout_us);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_str_eq(store_state(0, i), "joined");
	ck_assert_uint_le(asked(CALL_PROBE) - probes, 9);
	ck_assert_uint_eq(asked(CALL_MARK) - joins, 4);
	feels(8, MOOD_WELL);
}

/* The others are being asked when a marker names a longer lease: the quarantine lasts 30 ms more, less than a call may take. */
TEST(a_quarantine_that_is_extended_while_the_others_are_asked_asks_again_at_its_end)
{
	char marker[MARKER_MAX], *bound;
	int64_t fence;

	short_lease_opens();
	daemon_starts(0);
	passes(1500 * MSEC);
	restarts_blank(0);
	passes(SHORT_QUARANTINE / 2);
	snprintf(marker, sizeof(marker), "%s", marker_of(1));
	ck_assert_ptr_nonnull(bound = strstr(marker, "|200|"));
	memcpy(bound, "|230|", 5);
	marker_is_set(1, marker);
	passes(SHORT_QUARANTINE / 2 + 20 * MSEC); /* store 0 and 2 have answered */
	fence = memory_fence(cluster.node[2].memory) + MINUTE;
	memory_set_fence(cluster.node[2].memory, fence); /* as by a grant with the old vote, before the later end */
	passes(60 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_int_ge(memory_fence(cluster.node[0].memory), fence);
}

/* The store is flushed while the others are asked. */
TEST(a_second_loss_while_the_others_are_asked_is_seen)
{
	short_lease_opens();
	daemon_starts(0);
	passes(1500 * MSEC);
	restarts_blank(0);
	passes(SHORT_QUARANTINE - 5 * MSEC);
	feels(2, MOOD_SILENT);
	passes(20 * MSEC);
	ck_assert_str_ne(store_state(0, 0), "joined");
	is_flushed(0);
	passes(cluster.conf.timeout_us);
	ck_assert_str_ne(store_state(0, 0), "joined");
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(SHORT_QUARANTINE - 30 * MSEC);
	ck_assert_str_ne(store_state(0, 0), "joined");
	passes(100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* A store that refuses to answer is asked once. So is one whose own clock jumps when it is asked. */
LOOP_TEST(a_store_that_refuses_to_tell_its_fence_is_not_waited_for, 3)
{
	unsigned probes;

	short_lease_opens();
	daemon_starts(0);
	passes(1500 * MSEC);
	restarts_blank(0);
	passes(SHORT_QUARANTINE - 5 * MSEC);
	probes = asked(CALL_PROBE);
	if (_i == 0) {
		cluster.node[2].mute = true;
		refuses(2, "LOADING");
	} else if (_i == 1) {
		cluster.node[2].mute = true;
		refuses(2, "NOAUTH");
	} else if (_i == 2) {
		cluster.node[2].clock_us += MINUTE;
	}
	passes(cluster.conf.timeout_us + 10 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_uint_le(asked(CALL_PROBE) - probes, _i == 2 ? 8 : 4);
	cluster.node[2].mute = false;
	feels(2, MOOD_WELL);
}

TEST(a_store_that_is_alone_joins_at_once)
{
	cluster_open(1);
	daemon_starts(0);
	passes(1500 * MSEC);
	restarts_blank(0);
	passes(30603 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}
