/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/stay.c, belief.c: readers with a lock-delay. */
#include "tests/fixture/readers.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static void readers_may_delay_on(bool redis)
{
	cluster_open(1);
	cluster.conf.max_delay_us = 10 * SEC;
	cluster.conf.shared = redis;
	daemon_starts(0);
	passes(2 * SEC);
}

static void readers_may_delay(void)
{
	readers_may_delay_on(true);
}

static void reads_with_delay(unsigned k)
{
	says(k, "LOCK a mode=shared delay=5s");
	passes(MSEC);
	hears(k, READER);
}

static void is_delayed(unsigned writer, unsigned reader)
{
	is_refused_to(writer);
	reads(reader);
	says(reader, "UNLOCK a");
	hears(reader, "OK *");
	passes(4500 * MSEC);
	is_refused_to(writer);
	reads(reader);
	says(reader, "UNLOCK a");
	hears(reader, "OK *");
	passes(SEC);
	is_free_for(writer);
}

START_TEST(a_reader_with_a_lock_delay_keeps_writers_out_and_no_readers)
{
	readers_may_delay_on(_i == 0);
	reads_with_delay(1);
	goes(1, GONE_RESET);
	is_delayed(2, 3);
}
END_TEST

START_TEST(a_lock_delay_outlasts_the_other_readers)
{
	readers_may_delay();
	reads(3);
	reads_with_delay(1);
	goes(1, GONE_RESET);
	says(3, "UNLOCK a");
	hears(3, "OK *");
	is_delayed(2, 3);
}
END_TEST

START_TEST(a_lock_delay_begins_when_the_lease_has_ended)
{
	readers_may_delay();
	says(1, "LOCK a mode=shared renew=no delay=5s");
	hears(1, READER);
	if (_i == 1)
		reads(3);
	passes(9700 * MSEC);
	hears(1, "! LOST name=a fence=* reason=expired");
	if (_i == 1) {
		says(3, "UNLOCK a");
		hears(3, "OK *");
	}
	passes(700 * MSEC);
	is_delayed(2, 3);
}
END_TEST

START_TEST(an_unlock_leaves_no_lock_delay)
{
	readers_may_delay();
	reads(3);
	reads_with_delay(1);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	goes(3, GONE_RESET);
	is_free_for(2);
}
END_TEST

/* The daemon dies as soon as the reader with the lock-delay has joined: its key allows for it. */
START_TEST(a_reader_joins_when_the_keys_allow_for_its_lock_delay)
{
	cluster_open(3);
	cluster.conf.max_delay_us = 10 * SEC;
	daemon_starts(0);
	passes(SEC);
	daemon_starts(1);
	session_opens(4, 1);
	passes(SEC);
	reads(1);
	all_feel(MOOD_SILENT);
	says(2, "LOCK a mode=shared delay=5s");
	passes(20 * MSEC);
	hears_nothing(2);
	all_feel(MOOD_WELL);
	passes(20 * MSEC);
	hears(2, READER);
	daemon_ends(0);
	passes(11 * SEC);
	is_refused_to(4);
	reads(4);
	says(4, "UNLOCK a");
	hears(4, "OK *");
	passes(2 * SEC);
	is_refused_to(4);
	passes(3 * SEC);
	is_free_for(4);
}
END_TEST

/* It is asked for no more when the reader that wanted it has unlocked. */
START_TEST(the_keys_allow_for_the_lock_delays_of_those_who_hold_the_lock)
{
	readers_may_delay();
	reads(3);
	reads_with_delay(1);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(10 * SEC);
	ck_assert_int_le(cluster.node[0].last[CALL_EXTEND].call.px_ms, 10000);
	reads_with_delay(1);
	ck_assert_int_ge(cluster.node[0].last[CALL_EXTEND].call.px_ms, 15000);
}
END_TEST

START_TEST(keep_of_a_reader_keeps_no_readers_out)
{
	readers_may_delay_on(_i == 0);
	reads(1);
	says(1, "UNLOCK a keep=5s");
	hears(1, "OK *");
	is_delayed(2, 3);
}
END_TEST

START_TEST(a_lock_delay_of_readers_is_bounded_like_others)
{
	cluster_begin(1);
	says(1, "LOCK a mode=shared delay=1s");
	hears(1, "ERR LIMIT *max_delay*");
	says(1, "LOCKALL a b mode=shared delay=1s");
	hears(1, "ERR LIMIT *max_delay*");
}
END_TEST

START_TEST(a_lock_delay_survives_a_restart)
{
	struct secret s;

	readers_may_delay();
	s = says_hello(1, "grace=1m");
	reads_with_delay(1);
	daemon_returns(0);
	passes(SEC);
	session_opens(2, 0);
	resumes(2, &s);
	hears(2, "\\* name=a *");
	hears(2, "OK session=* n=1");
	passes(15 * SEC);
	goes(2, GONE_RESET);
	passes(71 * SEC);
	session_opens(3, 0);
	session_opens(4, 0);
	is_free_for(3);
}
END_TEST

enum fellow { FELLOW_GONE, FELLOW_HOLDS, FELLOW_KEEPS, FELLOW_UNLOCKS, FELLOWS };

/* Session 1, with grace, reads beside 2, which has a lock-delay. The daemon is restarted. 1 resumes as 3, and unlocks 15 s later. */
static void restarts_beside(enum fellow fellow)
{
	struct secret s;

	begins_with_delay(3, 20 * SEC);
	passes(SEC);
	s = says_hello(1, "grace=1m");
	reads(1);
	says(2, "LOCK a mode=shared delay=20s");
	passes(MSEC);
	hears(2, READER);
	if (fellow == FELLOW_GONE)
		goes(2, GONE_RESET);
	if (fellow == FELLOW_KEEPS || fellow == FELLOW_UNLOCKS) {
		says(2, fellow == FELLOW_KEEPS ? "UNLOCK a keep=20s" : "UNLOCK a");
		hears(2, "OK *");
	}
	passes(100 * MSEC);
	daemon_returns(0);
	passes(SEC);
	session_opens(3, 0);
	resumes(3, &s);
	hears(3, "\\* name=a *");
	hears(3, "OK session=* n=1");
	passes(14 * SEC);
	says(3, "UNLOCK a");
	hears(3, "OK *");
	session_opens(4, 0);
	session_opens(5, 0);
}

START_TEST(what_a_reader_keeps_from_writers_survives_a_restart_beside_another_reader)
{
	restarts_beside((enum fellow)_i);
	if (_i == FELLOW_UNLOCKS) {
		is_free_for(4);
		return;
	}
	is_refused_to(4);
	reads(4);
	says(4, "UNLOCK a");
	hears(4, "OK *");
	passes(_i == FELLOW_HOLDS ? 12 * SEC : 3500 * MSEC);
	is_refused_to(5);
	passes(_i == FELLOW_HOLDS ? 6 * SEC : 2500 * MSEC);
	is_free_for(5);
}
END_TEST

/* When one of them ends, the others are told; and none of them is left. Only a sanitizer sees that one is told which is freed. */
START_TEST(readers_of_one_session_end_with_it)
{
	begins_with_delay(3, 5 * SEC);
	passes(2 * SEC);
	says(1, "LOCK a mode=shared delay=5s");
	hears(1, READER);
	says(1, "LOCK a mode=shared delay=5s owner=x");
	hears(1, READER);
	says(1, "LOCK a mode=shared delay=5s owner=y");
	hears(1, READER);
	if (_i == 0) {
		says(1, "QUIT");
		hears(1, "OK");
	} else {
		goes(1, _i == 1 ? GONE_HANGUP : GONE_OVERFLOW);
	}
	passes(20 * SEC);
	is_free_for(2);
}
END_TEST

Suite *readers_delay_suite(void)
{
	Suite *s = suite_create("readers delay");
	TCase *c = tcase_create("delay");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_loop_test(c, a_reader_with_a_lock_delay_keeps_writers_out_and_no_readers, 0, 2);
	tcase_add_test(c, a_lock_delay_outlasts_the_other_readers);
	tcase_add_loop_test(c, a_lock_delay_begins_when_the_lease_has_ended, 0, 2);
	tcase_add_test(c, an_unlock_leaves_no_lock_delay);
	tcase_add_test(c, a_reader_joins_when_the_keys_allow_for_its_lock_delay);
	tcase_add_test(c, the_keys_allow_for_the_lock_delays_of_those_who_hold_the_lock);
	tcase_add_loop_test(c, keep_of_a_reader_keeps_no_readers_out, 0, 2);
	tcase_add_test(c, a_lock_delay_of_readers_is_bounded_like_others);
	tcase_add_test(c, a_lock_delay_survives_a_restart);
	tcase_add_loop_test(c, what_a_reader_keeps_from_writers_survives_a_restart_beside_another_reader, 0, FELLOWS);
	tcase_add_loop_test(c, readers_of_one_session_end_with_it, 0, 3);
	suite_add_tcase(s, c);
	return s;
}
