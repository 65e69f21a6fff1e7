/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/admin/alarm.c: what the log and LIST say of long holds and waits, and of LOCKs that fail, and how often. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* The service as it is reconfigured. */
static void alarms_are(int64_t held_us, int64_t waited_us, unsigned failures)
{
	cluster.conf.alarm_held_us = held_us;
	cluster.conf.alarm_waited_us = waited_us;
	cluster.conf.alarm_failures = failures;
	service_reload(cluster.daemon[0].service, &cluster.conf);
}

FIXTURE(.teardown = cluster_close)

TEST(a_lock_that_is_held_for_long_is_told_once_a_grant)
{
	cluster_begin(3);
	alarms_are(10 * SEC, 0, 0);
	says(1, "HELLO 1 name=worker");
	hears(1, "OK *");
	says(1, "LOCK a note=\"n o\"");
	hears(1, GRANT);
	passes(10 * SEC - MSEC);
	ck_assert(!was_logged("alarm *"));
	passes(MSEC);
	ck_assert(was_logged("alarm kind=held name=a holder=\"worker *\" session=* held_ms=10000 fence=* note=\"n o\""));
	passes(60 * SEC);
	ck_assert(!was_logged("alarm *"));
	ck_assert_int_eq(figure(0, METRIC_ALARMS_HELD), 1);
	says(1, "UNLOCK a");
	says(1, "LOCK a");
	hears(1, "OK *");
	hears(1, GRANT);
	says(1, "LIST");
	hears(1, "\\* name=a fence=* count=1 waiters=0");
	hears(1, "OK *");
	passes(10 * SEC);
	ck_assert_int_eq(figure(0, METRIC_ALARMS_HELD), 2);
	says(1, "LIST");
	hears(1, "\\* name=a fence=* count=1 alarm=held *");
	hears(1, "OK *");
	says(1, "SHOW a");
	hears(1, "\\* role=holder * count=1 alarm=held*");
	hears(1, "OK *");
}

TEST(a_lock_that_is_freed_in_time_is_not_told)
{
	int64_t timers;

	cluster_begin(3);
	alarms_are(SEC, SEC, 0);
	timers = figure(0, METRIC_TIMERS);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	passes(500 * MSEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK *");
	passes(900 * MSEC);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(10 * SEC);
	ck_assert(!was_logged("alarm *"));
	ck_assert_int_eq(figure(0, METRIC_TIMERS), timers);
}

TEST(a_request_that_waits_for_long_is_told_once)
{
	cluster_begin(3);
	alarms_are(0, 5 * SEC, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m note=why");
	passes(5 * SEC);
	ck_assert(was_logged("alarm kind=waited name=a waiter=* session=* waited_ms=5000 note=why"));
	passes(20 * SEC);
	ck_assert_int_eq(figure(0, METRIC_ALARMS_WAITED), 1);
	says(1, "SHOW a");
	hears(1, "\\* role=holder *");
	hears(1, "\\* role=waiter * alarm=waited*");
	hears(1, "OK *");
	says(1, "UNLOCK a");
	hears(2, "OK *");
	passes(20 * SEC);
	ck_assert(!was_logged("alarm *"));
	ck_assert_int_eq(figure(0, METRIC_ALARMS_HELD), 0);
}

/* It waits for one name after the other. */
TEST(a_group_that_waits_is_one_request)
{
	cluster_begin(3);
	alarms_are(0, 5 * SEC, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "LOCK b");
	hears(1, "OK *");
	says(2, "LOCKALL a b wait=1m");
	passes(3 * SEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(3 * SEC);
	ck_assert(was_logged("alarm kind=waited name=[ab] waiter=* session=* waited_ms=* names=2"));
	passes(20 * SEC);
	ck_assert_int_eq(figure(0, METRIC_ALARMS_WAITED), 1);
}

TEST(permits_are_told_as_locks_are)
{
	cluster_begin(3);
	alarms_are(10 * SEC, 5 * SEC, 0);
	says(1, "ACQUIRE s limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE s limit=1 wait=1m");
	passes(5 * SEC);
	ck_assert(was_logged("alarm kind=waited name=s waiter=* waited_ms=5000*"));
	passes(5 * SEC);
	ck_assert(was_logged("alarm kind=held name=s holder=* held_ms=10000 fence=*"));
	says(1, "LIST");
	hears(1, "\\* name=s kind=semaphore limit=1 held=1 waiters=1 alarm=held*");
	hears(1, "OK *");
	says(1, "RELEASE s");
	hears(1, "OK *");
	hears(2, "OK *");
	passes(5 * SEC);
	says(2, "RELEASE s");
	hears(2, "OK *");
	passes(20 * SEC);
	ck_assert_int_eq(figure(0, METRIC_ALARMS_WAITED), 1);
	ck_assert_int_eq(figure(0, METRIC_ALARMS_HELD), 1);
}

TEST(an_alarm_of_a_permit_goes_when_it_is_lost)
{
	cluster_begin(3);
	alarms_are(10 * SEC, 0, 0);
	says(1, "ACQUIRE s limit=1");
	hears(1, "OK *");
	passes(10 * SEC);
	session_opens_as_admin(9, 0);
	says(9, "BREAK s");
	hears(9, "OK *");
	hears(1, "! LOST *");
	says(1, "LIST");
	hears(1, "\\* name=s kind=semaphore limit=1 held=0 waiters=0");
	hears(1, "OK *");
}

TEST(a_new_configuration_is_about_what_is_held_already)
{
	int64_t timers;

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=5m");
	passes(8 * SEC);
	timers = figure(0, METRIC_TIMERS);
	alarms_are(10 * SEC, 9 * SEC, 0);
	passes(1 * SEC);
	ck_assert(was_logged("alarm kind=waited *"));
	passes(1 * SEC);
	ck_assert(was_logged("alarm kind=held * held_ms=10000 *"));
	alarms_are(20 * SEC, 20 * SEC, 0);
	passes(30 * SEC);
	ck_assert(!was_logged("alarm *"));
	alarms_are(0, 0, 0);
	ck_assert_int_eq(figure(0, METRIC_TIMERS), timers);
	alarms_are(SEC, 0, 0);
	wakes(0);
	ck_assert(was_logged("alarm kind=held *"));
}

TEST(what_was_held_in_the_previous_run_is_told_again)
{
	char resume[100];
	const char *greeting;

	cluster_begin(3);
	alarms_are(10 * SEC, 0, 0);
	says(1, "HELLO 1 grace=1m");
	greeting = hears(1, "OK proto=1 *");
	snprintf(resume, sizeof(resume), "RESUME %lld %.32s", (long long)number_in(greeting, "session"), strstr(greeting, "secret=") + 7);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(5 * SEC);
	says(1, "ACQUIRE s limit=2");
	hears(1, "OK *");
	passes(4 * SEC);
	daemon_returns(0);
	says(2, "%s", resume);
	passes(SEC);
	hears(2, ROW_A);
	ck_assert(was_logged("alarm kind=held name=a * held_ms=1*"));
	passes(5 * SEC);
	ck_assert(was_logged("alarm kind=held name=s * held_ms=1*"));
	ck_assert_int_eq(figure(0, METRIC_ALARMS_HELD), 2);
}

/* --- failures --- */

static void locks_fail(unsigned n, const char *answer)
{
	for (unsigned i = 0; i < n; i++) {
		says(1, "LOCK name%u", i);
		hears(1, answer);
		says(1, "UNLOCK name%u", i);
		ignores(1);
	}
}

TEST(LOCKs_that_fail_are_told_when_they_are_too_many_of_the_last_minute)
{
	cluster_begin(3);
	alarms_are(0, 0, 50);
	locks_fail(10, "OK *");
	falls(0);
	falls(1);
	locks_fail(9, "ERR QUORUM *");
	passes(SEC);
	ck_assert(!was_logged("alarm *"));
	locks_fail(1, "ERR QUORUM *");
	passes(SEC);
	ck_assert(was_logged("alarm kind=failures percent=50 failed=10 of=20 seconds=60"));
	locks_fail(10, "ERR QUORUM *");
	passes(10 * SEC);
	ck_assert(!was_logged("alarm *"));
	passes(60 * SEC);
	locks_fail(20, "ERR QUORUM *");
	passes(SEC);
	ck_assert(was_logged("alarm kind=failures percent=100 failed=20 of=20 *"));
	ck_assert_int_eq(figure(0, METRIC_ALARMS_FAILURES), 2);
	alarms_are(0, 0, 0);
}

/* --- many --- */

TEST(many_at_once_are_logged_by_their_number)
{
	cluster_begin(3);
	alarms_are(SEC, 0, 0);
	for (unsigned i = 0; i < 50; i++) {
		says(1, "LOCK name%u", i);
		hears(1, "OK *");
	}
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_ALARMS_HELD), 50);
	says(1, "LOCK more");
	hears(1, "OK *");
	passes(2 * SEC);
	ck_assert(was_logged("left-out event=alarm lines=30"));
}
