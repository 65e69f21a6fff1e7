/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/stay.c, holders.c, waiters.c: readers that are about to join those who hold the name, and wait for a renewal on their terms. */
#include "tests/fixture/readers.h"
#include "tests/fixture/resumable.h"

#include <check.h>

/* Two readers hold. A third one, of a high priority, wants a lock-delay, and the fourth does not wait, behind it. A writer comes between them. */
static void a_writer_comes_between_those_who_are_about_to_join(void)
{
	cluster_open(1);
	cluster.conf.max_delay_us = 10 * SEC;
	cluster.conf.timeout_us = 40 * MSEC;
	daemon_starts(0);
	passes(3 * SEC);
	reads(1);
	reads(2);
	feels(0, MOOD_SILENT);
	says(3, "LOCK a mode=shared delay=5s priority=1 wait=1m");
	says(4, "LOCK a mode=shared");
	hears_nothing(4);
	passes(MSEC);
	says(5, "LOCK a priority=1 wait=1m");
}

/* The next lease is not the one that the fourth was about to join. */
START_TEST(who_was_about_to_join_is_answered_when_the_next_lease_is_won)
{
	a_writer_comes_between_those_who_are_about_to_join();
	says(1, "UNLOCK a");
	says(2, "UNLOCK a");
	feels(0, MOOD_WELL);
	passes(2 * SEC);
	hears(1, "OK *");
	hears(2, "OK *");
	hears(3, READER);
	hears_nothing(5);
	hears(4, "BUSY *");
}
END_TEST

START_TEST(who_was_about_to_join_is_answered_when_the_turn_of_the_last_reader_lapses)
{
	struct secret s3;

	cluster_open(3);
	cluster.conf.max_delay_us = 10 * SEC;
	daemon_starts(0);
	passes(2 * SEC);
	says(5, "LOCK a");
	hears(5, GRANT);
	s3 = says_hello(3, "grace=10s");
	says(3, "LOCK a mode=shared wait=1m");
	says(1, "LOCK a mode=shared wait=1m");
	goes(3, GONE_RESET);
	is_resumed_with_nothing(4, &s3);
	passes(5 * SEC);
	says(5, "UNLOCK a");
	hears(5, "OK *");
	passes(100 * MSEC);
	hears(1, "OK name=a *");
	passes(4 * SEC);
	session_opens_from_afar(9, 0);
	says(9, "LOCK a mode=shared");
	hears(9, "OK *");
	goes(9, GONE_KEEPALIVE);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(800 * MSEC);
	all_feel(MOOD_SILENT);
	says(6, "LOCK a mode=shared delay=5s");
	hears_nothing(6);
	passes(500 * MSEC);
	hears(6, "BUSY *");
}
END_TEST

/* The stores are silent: 2 waits for the lock-delay that it wants, and does not wait for anything else. */
static void one_is_about_to_join(void)
{
	begins_with_delay(3, 10 * SEC);
	passes(SEC);
	reads(1);
	all_feel(MOOD_SILENT);
	says(2, "LOCK a mode=shared delay=5s");
	hears_nothing(2);
}

START_TEST(who_was_about_to_join_is_busy_when_the_reader_is_upgraded)
{
	one_is_about_to_join();
	says(1, "LOCK a wait=1m");
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	hears(1, GRANT);
	hears(2, "BUSY *");
}
END_TEST

START_TEST(who_was_about_to_join_is_busy_when_a_writer_comes_before_it)
{
	one_is_about_to_join();
	says(3, "LOCK a priority=1 wait=1m");
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	hears_nothing(3);
	hears(2, "BUSY *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(100 * MSEC);
	hears(3, GRANT);
}
END_TEST

/* The first of its requests ends after the second. No writer waits. */
START_TEST(who_is_about_to_join_waits_on_when_the_session_of_the_first_one_ends)
{
	stores_have_room(3);
	says(1, "LOCK a mode=shared renew=no");
	hears(1, "OK *");
	passes(6 * SEC);
	all_feel(MOOD_SILENT);
	says(2, "@1 LOCK a mode=shared renew=no owner=x wait=1m");
	says(2, "@2 LOCK a mode=shared renew=no owner=y wait=1m");
	says(3, "LOCK a mode=shared renew=no");
	hears_nothing(3);
	goes(2, GONE_HANGUP);
	hears_nothing(3);
	all_feel(MOOD_WELL);
	passes(100 * MSEC);
	hears(3, READER);
}
END_TEST

/* A reader holds with a ttl of 10 s, and 2 was about to join on other terms. */
START_TEST(who_does_not_join_leaves_no_terms)
{
	static const char *const terms[] = {"delay=5s", "ttl=30s renew=no"};

	begins_with_delay(3, 10 * SEC);
	passes(SEC);
	reads(1);
	says(3, "LOCK a mode=shared");
	hears(3, READER);
	all_feel(MOOD_SILENT);
	says(2, "@x LOCK a mode=shared wait=1m %s", terms[_i % 2]);
	if (_i < 2)
		says(2, "CANCEL @x");
	else
		goes(2, GONE_HANGUP);
	all_feel(MOOD_WELL);
	passes(30 * SEC);
	ck_assert_int_le(cluster.node[0].last[CALL_EXTEND].call.px_ms, 10000);
	says(1, "CHECK a");
	ck_assert_int_le(number_in(hears(1, "OK name=a *"), "valid_ms"), 10000);
	if (_i < 2)
		ignores(2);
}
END_TEST

/* The lease stands alone at the store, which is busy, so that renewals wait. */
static void a_reader_has_the_lease_alone(void)
{
	cluster_open(1);
	cluster.conf.window = 1;
	cluster.conf.max_delay_us = 10 * SEC;
	daemon_starts(0);
	passes(11 * SEC);
	for (int i = 0; i < 2; i++) {
		says(9, "LOCK a");
		hears(9, GRANT);
		says(1, "LOCK a mode=shared wait=1m");
		says(9, "UNLOCK a");
		hears(9, "OK *");
		hears(1, READER);
		if (i == 0) {
			says(1, "UNLOCK a");
			hears(1, "OK *");
		}
	}
	feels(0, MOOD_SILENT);
	says(4, "@1 LOCK other-1");
	says(4, "@2 LOCK other-2");
}

/* The writer asks for the lock-delay that the reader wanted. The key does not allow for it. */
START_TEST(a_lease_is_not_handed_on_with_terms_that_its_keys_have_not)
{
	a_reader_has_the_lease_alone();
	says(2, "@x LOCK a mode=shared delay=5s wait=1m");
	passes(MSEC);
	if (_i == 0)
		says(2, "CANCEL @x");
	says(3, "LOCK a priority=1 delay=5s wait=1m");
	hears_nothing(3);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears_nothing(3);
	feels(0, MOOD_WELL);
	passes(SEC);
	hears(3, GRANT);
	ck_assert_int_ge(key_ttl_us(0, "a"), 14 * SEC);
	ignores(2);
	ignores(4);
}
END_TEST

Suite *readers_join_suite(void)
{
	Suite *s = suite_create("readers_join");
	TCase *c = tcase_create("readers join");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, who_was_about_to_join_is_answered_when_the_next_lease_is_won);
	tcase_add_test(c, who_was_about_to_join_is_answered_when_the_turn_of_the_last_reader_lapses);
	tcase_add_test(c, who_was_about_to_join_is_busy_when_the_reader_is_upgraded);
	tcase_add_test(c, who_was_about_to_join_is_busy_when_a_writer_comes_before_it);
	tcase_add_test(c, who_is_about_to_join_waits_on_when_the_session_of_the_first_one_ends);
	tcase_add_loop_test(c, who_does_not_join_leaves_no_terms, 0, 4);
	tcase_add_loop_test(c, a_lease_is_not_handed_on_with_terms_that_its_keys_have_not, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
