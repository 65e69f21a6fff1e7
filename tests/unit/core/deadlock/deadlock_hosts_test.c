/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/deadlock/deadlock.c: deadlocks among the sessions of several daemons. */
#include "daemon/core/deadlock/deadlock.h"
#include "tests/fixture/resumable.h"

#include <check.h>

/* Session k, and what it holds. */
static void takes(unsigned k, const char *name)
{
	says(k, "LOCK %s", name);
	hears(k, "OK name=*");
}

/* Session 1 at daemon 0 has a and waits for b, session 2 at daemon 1 has b and waits for a. */
static void wait_for_each_other(void)
{
	takes(1, "a");
	takes(2, "b");
	says(1, "LOCK b wait=100s");
	passes(SEC / 10);
	says(2, "LOCK a wait=100s");
}

static void it_is_found(unsigned nodes)
{
	two_daemons(nodes);
	wait_for_each_other();
	passes(FOUND_US);
	ck_assert_str_eq(hears(2, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=a@h0<-b@h1<-a@h0");
	hears_nothing(1);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	passes(SEC);
	hears(1, "OK name=b *");
	cluster_close();
}

TEST(the_later_of_two_that_wait_for_each_other_is_refused_and_the_other_goes_on)
{
	it_is_found(1);
	it_is_found(3);
	it_is_found(5);
}

/*
 * Session 1 waits for 1 ms longer than session 2. Since session 3 waits longer, their daemons look at different moments, and each compares its own row with an
 * older one of the other. In each second the clocks of the stores fall behind those of the daemons by 5 ms, keep up with them, or gain 5 ms.
 */
RANGE_TEST(while_clocks_drift_one_of_two_that_asked_at_almost_the_same_time_is_refused, -1, 2)
{
	bool one, two;

	two_daemons(3);
	session_opens(3, 1);
	session_opens(4, 1);
	takes(3, "c");
	takes(4, "d");
	says(3, "LOCK d wait=100s");
	passes(300 * MSEC);
	takes(1, "a");
	takes(2, "b");
	says(1, "LOCK b wait=100s");
	passes(MSEC);
	says(2, "LOCK a wait=100s");
	for (int64_t us = 0; us < FOUND_US; us += SEC / 10) {
		passes(SEC / 10);
		clocks_go_on_without_us(_i * 5 * MSEC / 10);
	}
	one = next_line(1) != NULL;
	two = next_line(2) != NULL;
	ck_assert_msg(one != two, "%s is refused", one ? "each of them" : "none of them");
	hears_nothing(1);
	hears_nothing(2);
	hears_nothing(3);
	cluster_close();
}

TEST(three_daemons_in_a_circle_lose_one_request)
{
	three_daemons(3);
	takes(1, "a");
	takes(2, "b");
	takes(3, "c");
	says(1, "LOCK b wait=100s");
	passes(SEC / 10);
	says(3, "LOCK a wait=100s");
	passes(SEC / 10);
	says(2, "LOCK c wait=100s");
	passes(FOUND_US);
	ck_assert_str_eq(hears(2, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=c@h2<-a@h0<-b@h1<-c@h2");
	hears_nothing(1);
	hears_nothing(3);
	cluster_close();
}

TEST(nobody_pays_where_no_owner_waits_long_while_it_holds)
{
	two_daemons(3);
	takes(1, "a");
	says(2, "@w LOCK a wait=60s"); /* it holds nothing */
	passes(20 * SEC);
	session_opens(3, 0);
	says(3, "@w LOCK a wait=60s owner=x");
	takes(3, "c"); /* held by another owner of this session */
	passes(20 * SEC);
	takes(2, "d owner=y");
	ck_assert_uint_eq(asked(CALL_TABLE), 0);
	session_opens(4, 1);
	takes(4, "e");
	says(4, "LOCK a wait=4900ms");
	passes(5 * SEC);
	hears(4, "TIMEOUT *");
	ck_assert_uint_eq(asked(CALL_TABLE), 0);
	cluster_close();
}

TEST(a_long_wait_while_holding_is_told_to_one_store_every_second_and_withdrawn_at_its_end)
{
	unsigned before;

	two_daemons(3);
	takes(1, "a");
	takes(2, "b");
	says(2, "LOCK a wait=11s");
	passes(4900 * MSEC);
	ck_assert_uint_eq(asked(CALL_TABLE), 0);
	passes(SEC / 5);
	ck_assert_uint_eq(asked(CALL_TABLE), 1);
	passes(5 * SEC);
	ck_assert_uint_eq(asked(CALL_TABLE), 6);
	passes(5 * SEC);
	hears(2, "TIMEOUT *");
	before = asked(CALL_TABLE);
	ck_assert_uint_le(before, 9);
	passes(60 * SEC);
	ck_assert_uint_eq(asked(CALL_TABLE), before);
	cluster_close();
}

/* Session 3 lets its daemon look each second. What daemon 1 said of session 2 stays at the store for up to three. */
TEST(what_was_true_one_after_the_other_is_no_deadlock)
{
	two_daemons(3);
	session_opens(3, 0);
	session_opens(4, 0);
	takes(3, "c");
	takes(4, "d");
	says(3, "LOCK d wait=100s");
	takes(1, "a");
	takes(2, "b");
	says(2, "@1 LOCK a wait=100s");
	passes(7 * SEC);
	says(2, "CANCEL @1");
	hears(2, "OK");
	hears(2, "@1 ERR CANCELLED *");
	cluster.daemon[1].stopped = true;
	says(1, "LOCK b wait=2500ms");
	passes(2 * SEC);
	hears_nothing(1);
	passes(SEC);
	hears(1, "TIMEOUT *");
	cluster.daemon[1].stopped = false;
	says(1, "LOCK b wait=100s");
	passes(20 * SEC);
	hears_nothing(1);
	hears_nothing(3);
	cluster_close();
}

/* Session 2 at daemon 1 gets y, for which session 1 waits, at the moment in which that releases x, for which 2 waits behind 4. Daemon 0 has told before. */
TEST(what_somebody_got_a_moment_ago_closes_no_circle_with_what_another_one_had)
{
	two_daemons(3);
	session_opens(3, 1);
	session_opens(4, 0);
	takes(1, "x");
	takes(2, "w");
	takes(3, "y");
	says(4, "LOCK x wait=100s");
	says(2, "@y LOCK y wait=100s");
	passes(SEC / 2);
	says(1, "@y LOCK y wait=100s");
	passes(SEC / 10);
	says(2, "@x LOCK x wait=100s");
	passes(8 * SEC);
	says(3, "UNLOCK y");
	hears(2, "@y OK name=y *");
	says(1, "UNLOCK x");
	hears(1, "OK *");
	hears(4, "OK name=x *");
	passes(FOUND_US);
	hears_nothing(1);
	hears_nothing(2);
	cluster_close();
}

TEST(an_owner_that_releases_and_takes_again_is_another_one)
{
	two_daemons(3);
	takes(1, "a");
	takes(2, "b");
	says(1, "LOCK b wait=100s");
	passes(SEC / 10);
	says(2, "@a LOCK a wait=100s");
	for (unsigned i = 0; i < 20; i++) {
		passes(1700 * MSEC);
		says(2, "@u UNLOCK b");
		hears(2, "@u OK *");
		for (unsigned node = 0; node < 3; node++)
			is_woken(0, node, "b");
		hears(1, "OK name=b *");
		says(1, "UNLOCK b");
		hears(1, "OK *");
		says(2, "@l LOCK b");
		hears(2, "@l OK *");
		says(1, "LOCK b wait=100s");
	}
	hears_nothing(1);
	cluster_close();
}

TEST(after_RESUME_a_repeated_LOCK_is_in_the_same_deadlock)
{
	struct secret s;

	two_daemons(3);
	s = says_hello(1, "grace=60s");
	takes(1, "a");
	takes(2, "b");
	says(2, "LOCK a wait=100s");
	passes(SEC / 10);
	says(1, "LOCK b wait=100s");
	passes(SEC);
	goes(1, GONE_KEEPALIVE);
	session_opens(3, 0);
	resumes(3, &s);
	hears(3, ROW_A);
	hears(3, "OK *");
	says(3, "LOCK b wait=100s");
	passes(FOUND_US);
	hears(3, "ERR DEADLOCK cycle=b@h1<-a@h0<-b@h1");
	hears_nothing(2);
	cluster_close();
}

TEST(a_detached_session_waits_and_holds_as_any_other)
{
	two_daemons(3);
	says(1, "HELLO 1 grace=60s");
	hears(1, "OK *");
	takes(1, "a");
	takes(2, "b");
	says(1, "LOCK b wait=100s");
	goes(1, GONE_KEEPALIVE);
	passes(SEC / 10);
	says(2, "LOCK a wait=100s");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK cycle=a@h0<-b@h1<-a@h0");
	cluster_close();
}

TEST(the_request_of_a_detached_session_is_withdrawn_unheard)
{
	two_daemons(3);
	says(1, "HELLO 1 grace=60s");
	hears(1, "OK *");
	takes(1, "a");
	takes(2, "b");
	says(2, "LOCK a wait=100s");
	passes(SEC / 10);
	says(1, "LOCK b wait=100s");
	goes(1, GONE_KEEPALIVE);
	passes(FOUND_US);
	hears_nothing(2);
	passes(100 * SEC); /* the grace is over */
	hears(2, "OK name=a *");
	cluster_close();
}

TEST(one_store_that_answers_is_enough)
{
	two_daemons(3);
	wait_for_each_other();
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	passes(8 * SEC);
	hears(1, "! RISK *");
	hears(2, "! RISK *");
	hears(2, "ERR DEADLOCK cycle=a@h0<-b@h1<-a@h0");
	hears_nothing(1);
	cluster_close();
}

/* --- readers and writers ---------------------------------------------------------------------------------------------- */

static void reads(unsigned k, const char *name)
{
	says(k, "LOCK %s mode=shared wait=5s", name);
	passes(2 * SEC);
	hears(k, "OK name=*");
}

TEST(of_two_readers_of_two_hosts_that_wait_to_write_what_the_other_reads_one_is_refused)
{
	two_daemons(3);
	session_opens(1, 0);
	reads(1, "a");
	reads(2, "b");
	says(1, "LOCK b wait=100s");
	passes(SEC / 10);
	says(2, "LOCK a wait=100s");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK *");
	hears_nothing(1);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	passes(3 * SEC);
	hears(1, "OK name=b *");
	cluster_close();
}

TEST(readers_that_hold_a_lock_together_and_wait_for_others_are_in_no_deadlock)
{
	two_daemons(3);
	session_opens(1, 0);
	session_opens(3, 1);
	reads(1, "a");
	reads(2, "a");
	says(3, "LOCK b");
	hears(3, "OK *");
	says(1, "LOCK b wait=100s");
	says(2, "LOCK b wait=100s");
	passes(2 * FOUND_US);
	hears_nothing(1);
	hears_nothing(2);
	cluster_close();
}
