/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/resume.c: sessions that wait for a lock and lose their connection: their places in the queue, their turns, and the LOCK that is repeated.
 * */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s2;

FIXTURE(.teardown = cluster_close)

TEST(a_detached_session_keeps_its_place_and_the_lock_repeated_takes_it)
{
	(void)resumed_while_waiting("grace=20s");
	says(4, "@again LOCK a wait=1m");
	says(1, "SHOW a");
	hears(1, "\\* role=holder *");
	hears(1, "\\* role=waiter pos=1 session=* peer=unix pid=1004 *");
	hears(1, "\\* role=waiter pos=2 session=* peer=unix pid=1003 *");
	hears(1, "OK n=3");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(4, "@again " GRANT);
	hears_nothing(3);
	says(4, "UNLOCK a");
	hears(4, "OK *");
	hears(3, GRANT);
}

TEST(a_turn_that_comes_while_the_session_is_detached_is_held_and_is_a_row)
{
	int64_t fence;

	s2 = waiting_with_grace("grace=30s");
	goes(2, GONE_HANGUP);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(25 * SEC);
	hears_nothing(3);
	resumes(4, &s2);
	fence = number_in(hears(4, ROW_A), "fence");
	hears(4, "OK session=* n=1");
	says(4, "CHECK a");
	ck_assert_int_eq(number_in(hears(4, "OK name=a * count=1"), "fence"), fence);
	says(4, "LOCK a");
	hears(4, "OK name=a * count=2");
}

TEST(a_turn_that_comes_between_resume_and_the_lock_repeated_answers_that)
{
	(void)resumed_while_waiting("grace=30s");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears_nothing(4);
	hears_nothing(3);
	says(4, "@t LOCK a wait=1m");
	hears(4, "@t " GRANT);
	says(4, "LOCK a");
	hears(4, "OK name=a * count=2");
}

TEST(a_turn_that_is_not_asked_for_again_is_checked_and_released_like_any_lock)
{
	(void)resumed_while_waiting("grace=30s");
	says(4, "CHECK a");
	hears(4, "ERR NOTHELD *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(4, "CHECK a");
	hears(4, "OK name=a fence=* valid_ms=* count=1");
	says(4, "LOCK a");
	hears(4, "OK name=a * count=2");
	says(4, "UNLOCK a");
	hears(4, "OK name=a count=1");
	hears_nothing(3);
	says(4, "UNLOCK a");
	hears(4, "OK name=a count=0");
	hears(3, GRANT);
}

TEST(a_turn_that_is_not_asked_for_again_goes_to_the_next_after_the_grace)
{
	(void)resumed_while_waiting("grace=15s");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(14900 * MSEC);
	hears_nothing(3);
	passes(200 * MSEC);
	hears(3, GRANT);
	hears_nothing(4);
	says(4, "CHECK a");
	hears(4, "ERR NOTHELD *");
}

TEST(a_turn_that_comes_after_resume_does_not_begin_its_time_anew)
{
	(void)resumed_while_waiting("grace=15s");
	passes(10 * SEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(4900 * MSEC);
	hears_nothing(3);
	passes(200 * MSEC);
	hears(3, GRANT);
}

TEST(a_place_that_is_not_asked_for_again_is_given_up_after_the_grace)
{
	(void)resumed_while_waiting("grace=15s");
	passes(14900 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 2);
	passes(200 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 1);
	hears_nothing(4);
}

TEST(the_end_of_the_grace_gives_up_the_place)
{
	s2 = waiting_with_grace("grace=5s");
	goes(2, GONE_HANGUP);
	passes(5010 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 1);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(3, GRANT);
}

TEST(the_end_of_the_grace_hands_a_turn_on)
{
	s2 = waiting_with_grace("grace=20s");
	goes(2, GONE_KEEPALIVE);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(19900 * MSEC);
	hears_nothing(3);
	/* Nobody was told of the grant, so nobody trusts it. */
	passes(200 * MSEC);
	hears(3, GRANT);
}

TEST(the_wait_runs_on_while_the_session_is_detached)
{
	cluster_begin(1);
	says(1, "LOCK a");
	ignores(1);
	s2 = says_hello(2, "grace=60s");
	says(2, "LOCK a wait=5s");
	goes(2, GONE_HANGUP);
	passes(6 * SEC);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
	is_resumed_with_nothing(4, &s2);
	hears_nothing(4);
}

TEST(a_lock_repeated_without_waiting_gives_up_the_place)
{
	(void)resumed_while_waiting("grace=20s");
	says(4, "LOCK a");
	hears(4, "BUSY name=a * waiters=1 *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(3, GRANT);
	hears_nothing(4);
}

TEST(an_owner_takes_its_own_place_only)
{
	(void)resumed_while_waiting("grace=20s");
	says(4, "@other LOCK a owner=t9 wait=1m");
	says(4, "@same LOCK a wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(4, "@same " GRANT);
	says(4, "UNLOCK a");
	hears(4, "OK *");
	hears(3, GRANT);
	says(3, "UNLOCK a");
	hears(3, "OK *");
	hears(4, "@other " GRANT);
}

TEST(a_place_is_taken_on_the_terms_of_the_lock_repeated)
{
	(void)resumed_while_waiting("grace=20s");
	says(4, "LOCK a wait=3s ttl=5s note=anew");
	passes(2900 * MSEC);
	hears_nothing(4);
	says(5, "SHOW a");
	hears(5, "\\* role=holder *");
	hears(5, "\\* role=waiter pos=1 * note=anew");
	ignores(5);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(4, "OK name=a fence=* valid_ms=* ttl_ms=5000 count=1");
}

TEST(an_untagged_lock_repeated_holds_back_the_lines_behind_it)
{
	s2 = waiting_with_grace("grace=20s");
	says(2, "PING"); /* never served: it went with the connection */
	goes(2, GONE_HANGUP);
	resumes(4, &s2);
	ignores(4);
	says(4, "LOCK a wait=1m");
	says(4, "PING");
	hears_nothing(4);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(4, GRANT);
	hears(4, "OK");
	hears_nothing(4);
}

TEST(the_tag_of_a_request_that_broke_with_its_connection_is_free)
{
	cluster_begin(1);
	says(1, "LOCK a");
	ignores(1);
	s2 = says_hello(2, "grace=60s");
	says(2, "@t LOCK a wait=1m");
	goes(2, GONE_HANGUP);
	resumes(4, &s2);
	ignores(4);
	says(4, "CANCEL @t");
	hears(4, "ERR NOTFOUND *");
	says(4, "@t PING");
	hears(4, "@t OK");
	says(4, "@t LOCK a wait=1m");
	says(4, "CANCEL @t");
	hears(4, "OK");
	hears(4, "@t ERR CANCELLED *");
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
}

TEST(a_turn_that_is_lost_before_it_was_notified_is_never_told)
{
	s2 = waiting_with_grace("grace=60s");
	goes(2, GONE_HANGUP);
	says(3, "PING"); /* read ahead, behind its LOCK */
	says(1, "UNLOCK a");
	hears(1, "OK *");
	for (unsigned i = 0; i < 3; i++)
		is_flushed(i);
	passes(50 * SEC);
	is_resumed_with_nothing(4, &s2);
	hears_nothing(4);
	says(4, "CHECK a");
	hears(4, "ERR NOTHELD *");
	ignores(3);
}

TEST(half_close_answers_the_round_under_way_and_keeps_the_place)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCK a wait=1m");
	half_closes(2);
	ck_assert(!hung_up(2));
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	hears(2, GRANT);
	ck_assert(hung_up(2));
	s2 = says_hello(3, "grace=20s");
	says(3, "LOCK a wait=1m");
	half_closes(3);
	passes(60 * MSEC);
	hears_nothing(3);
	ck_assert(hung_up(3));
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 1);
	is_resumed_with_nothing(4, &s2);
}

TEST(two_requests_of_one_owner_that_broke_with_the_connection_hold_the_lock_once)
{
	cluster_begin(1);
	passes(2 * SEC);
	says(1, "LOCK a");
	ignores(1);
	s2 = says_hello(2, "grace=60s");
	says(2, "@t1 LOCK a wait=1m");
	says(2, "@t2 LOCK a wait=1m");
	goes(2, GONE_HANGUP);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	resumes(4, &s2);
	hears(4, ROW_A);
	hears(4, "OK session=* n=1");
	says(4, "UNLOCK a");
	hears(4, "OK name=a count=0");
}

/* Well beyond the time for which a turn is kept when nobody asks for it. */
static void is_kept_for_good(unsigned k)
{
	passes(70 * SEC);
	says(k, "CHECK a");
	hears(k, "OK name=a * count=1");
	hears_nothing(k);
}

TEST(a_turn_is_notified_whatever_became_of_the_grace)
{
	(void)resumed_while_waiting("grace=30s");
	says(4, "HELLO 1 grace=0");
	hears(4, "OK proto=1 *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears_nothing(3);
	says(4, "LOCK a");
	hears(4, GRANT);
	is_kept_for_good(4);
}

TEST(a_turn_of_an_older_request_is_told_to_the_younger_one)
{
	cluster_begin(1);
	passes(2 * SEC);
	s2 = says_hello(2, "grace=30s");
	feels(0, MOOD_SILENT);
	says(2, "@t1 LOCK a");
	says(2, "@t2 LOCK a wait=1m");
	goes(2, GONE_HANGUP);
	is_resumed_with_nothing(4, &s2);
	says(4, "@t3 LOCK a wait=1m"); /* takes the place of t1, which could not wait: there is none */
	feels(0, MOOD_WELL);
	hears(4, "@t3 " GRANT);
	is_kept_for_good(4);
}
