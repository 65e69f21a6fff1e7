/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/adopt.c and resume.c: RESUME after a restart. It tells what was lost meanwhile, and waits in bounded time for locks that the daemon still
 * adopts.
 */
#include "tests/fixture/resumable.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

static struct secret s1;
static int64_t fence;

START_TEST(a_loss_during_the_detachment_is_told_right_after_the_OK)
{
	fence = held_with_grace(3, "grace=60s", "", &s1);
	says(1, "LOCK b renew=no ttl=2s");
	ignores(1);
	goes(1, GONE_HANGUP);
	passes(5 * SEC);
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	says(3, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	hears(3, "@r \\* name=a *");
	hears(3, "@r OK session=* n=1");
	hears(3, "! LOST name=b fence=* reason=expired");
	says(3, "CHECK b");
	hears(3, "ERR LOST *");
	goes(3, GONE_HANGUP);
	resumes(4, &s1);
	hears(4, ROW_A);
	hears(4, "OK session=* n=1");
	hears_nothing(4);
	says(4, "UNLOCK b");
	hears(4, "ERR LOST *");
	says(4, "CHECK b");
	hears(4, "ERR NOTHELD *");
}
END_TEST

START_TEST(show_and_list_say_that_the_holder_has_no_connection)
{
	fence = held_with_grace(3, "name=w grace=20s", "", &s1);
	goes(1, GONE_HANGUP);
	passes(5 * SEC);
	says(2, "SHOW a");
	hears(2, "\\* role=holder * name=w peer=unix * detached_ms=5000 grace_ms=15000 fence=*");
	hears(2, "OK n=1");
	says(2, "LIST sessions");
	hears(2, "\\* * name=w * detached_ms=5000 grace_ms=15000 * held=1 waiting=0");
	hears(2, "\\* *");
	hears(2, "OK n=2 more=0");
	ck_assert_int_eq(figure(0, METRIC_SESSIONS), 1);
}
END_TEST

/* --- RESUME while the adoption is under way --- */

/* The daemon is back, and no store has carried out its adoption yet. */
static void daemon_is_back(void)
{
	daemon_ends(0);
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
}

static void adoption_is_under_way(void)
{
	fence = held_with_grace(3, "grace=30s", "", &s1);
	daemon_is_back();
}

/* The stores carry out none of the daemon's first calls. */
static void all_come_and_lose_it(void)
{
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 3; i++)
		comes(i);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1); /* the probe */
	passes(0);
	for (unsigned i = 0; i < 3; i++)
		loses(i, waiting_at(i));
	all_feel(MOOD_WELL);
}

static void all_come(void)
{
	for (unsigned i = 0; i < 3; i++)
		comes(i);
}

START_TEST(resume_waits_for_the_adoption)
{
	adoption_is_under_way();
	resumes(2, &s1);
	says(2, "PING");
	passes(SEC);
	hears_nothing(2);
	all_come();
	ck_assert_int_eq(number_in(hears(2, ROW_A), "fence"), fence);
	hears(2, "OK session=* n=1");
	hears(2, "OK");
}
END_TEST

/* Also when the session has given up its grace meanwhile, and ends with its input. */
START_TEST(resume_is_answered_before_a_half_closed_session_ends)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	says(2, "@h HELLO 1 grace=0");
	hears(2, "@h OK *");
	half_closes(2);
	passes(SEC);
	all_come();
	ck_assert_int_eq(number_in(hears(2, "@r " ROW_A), "fence"), fence);
	hears(2, "@r OK session=* n=1");
	ck_assert(hung_up(2));
	says(3, "LOCK a");
	hears(3, GRANT);
}
END_TEST

START_TEST(RESUME_answers_in_bounded_time_and_the_open_locks_follow)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(2010 * MSEC);
	hears(2, "@r OK session=* n=0 open=1");
	says(2, "CHECK a");
	hears(2, "ERR QUORUM *");
	says(2, "EXTEND a");
	hears(2, "ERR QUORUM *");
	says(3, "LOCK a");
	hears(3, "BUSY name=a *");
	all_come();
	hears(2, "! SAFE name=a fence=* valid_ms=*");
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a * count=1"), "fence"), fence);
}
END_TEST

START_TEST(a_resume_that_waits_is_answered_when_the_daemon_stops)
{
	struct event stop = {.kind = EVENT_STOP};

	adoption_is_under_way();
	says(2, "RESUME %lld %s", (long long)s1.serial, s1.text);
	says(2, "CHECK a");
	hears_nothing(2);
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears(2, "ERR DRAINING *");
	hears(2, "ERR QUORUM *");
	ck_assert(hung_up(2));
	daemon_ends(0);
}
END_TEST

/* A lock that was granted behind RESUME belongs to this connection: its loss is told at once. */
START_TEST(a_loss_of_what_was_granted_meanwhile_is_told_before_the_answer)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	all_feel(MOOD_SILENT);
	passes(920 * MSEC);
	hears_nothing(2);
	passes(40 * MSEC);
	hears(2, "! LOST name=b fence=* reason=expired");
	all_feel(MOOD_WELL);
	hears(2, "@r \\* name=a *");
	hears(2, "@r OK session=* n=1");
	hears_nothing(2);
}
END_TEST

/* Each of them wakes the session. */
START_TEST(two_losses_at_once_do_not_end_the_wait_of_resume)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=1s renew=no");
	says(2, "@c LOCK c ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	hears(2, "@c OK name=c *");
	all_feel(MOOD_SILENT);
	passes(960 * MSEC);
	hears(2, "! LOST name=b fence=* reason=expired");
	hears(2, "! LOST name=c fence=* reason=expired");
	hears_nothing(2);
	all_feel(MOOD_WELL);
	hears(2, "@r \\* name=a *");
	hears(2, "@r OK session=* n=1");
	hears_nothing(2);
}
END_TEST

/* The same answer ends the adoption and shows that the clock was set forward by which the vote for b was counted. */
START_TEST(a_lock_that_the_last_answer_of_a_store_takes_away_is_no_row)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	feels(2, MOOD_SILENT);
	says(2, "@b LOCK b ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	all_feel(MOOD_SILENT);
	passes(510 * MSEC);
	serves(1, waiting_at(1));
	hears_nothing(2);
	cluster.node[0].clock_us += 2 * SEC;
	serves(0, waiting_at(0));
	hears(2, "@r \\* name=a *");
	hears(2, "@r OK session=* n=1");
	hears(2, "! LOST name=b fence=* reason=expired");
	all_feel(MOOD_WELL);
	ignores(2);
}
END_TEST

/* The same with RESUME without a tag: a request behind it is served after everything that ended its wait was told. */
START_TEST(a_lock_that_the_last_answer_of_a_store_takes_away_is_LOST_before_the_next_request_is_served)
{
	adoption_is_under_way();
	resumes(2, &s1);
	all_come_and_lose_it();
	feels(2, MOOD_SILENT);
	says(2, "@b LOCK b ttl=1s renew=no");
	hears(2, "@b OK name=b *");
	says(2, "UNLOCK b");
	all_feel(MOOD_SILENT);
	passes(510 * MSEC);
	serves(1, waiting_at(1));
	hears_nothing(2);
	cluster.node[0].clock_us += 2 * SEC;
	serves(0, waiting_at(0));
	hears(2, "\\* name=a *");
	hears(2, "OK session=* n=1");
	hears(2, "! LOST name=b fence=* reason=expired");
	hears(2, "ERR LOST *");
	all_feel(MOOD_WELL);
	ignores(2);
}
END_TEST

/* The session locks a lost name again behind RESUME. The loss is told before the grant. */
START_TEST(a_loss_is_told_before_its_name_is_taken_anew)
{
	fence = held_with_grace(3, "grace=30s", "", &s1);
	says(1, "LOCK b ttl=1s renew=no");
	hears(1, "OK name=b *");
	daemon_is_back();
	passes(2 * SEC);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	all_come_and_lose_it();
	says(2, "@b LOCK b ttl=1s renew=no");
	ck_assert_int_eq(number_in(hears(2, "! LOST name=b fence=* reason=expired"), "fence"), fence + 1);
	ck_assert_int_gt(number_in(hears(2, "@b OK name=b *"), "fence"), fence + 1);
	passes(600 * MSEC);
	hears(2, "@r \\* name=a *");
	hears(2, "@r \\* name=b *");
	hears(2, "@r OK session=* n=2");
	hears_nothing(2);
}
END_TEST

START_TEST(a_grant_that_was_not_notified_is_kept_no_longer_because_it_was_adopted_late)
{
	cluster_begin(3);
	passes(2 * SEC);
	says(3, "LOCK a");
	ignores(3);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a wait=1m");
	goes(1, GONE_HANGUP);
	says(3, "UNLOCK a");
	ignores(3);
	daemon_ends(0);
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	resumes(2, &s1);
	passes(2010 * MSEC);
	hears(2, "OK session=* n=0 open=1");
	all_come();
	hears_nothing(2);
	says(4, "LOCK a wait=2m");
	passes(29 * SEC);
	hears_nothing(4);
	passes(2 * SEC);
	hears(4, GRANT);
	says(2, "CHECK a");
	hears(2, "ERR NOTHELD *");
}
END_TEST

START_TEST(a_lock_that_no_quorum_confirms_is_lost_when_it_must_have_expired)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(10 * SEC);
	hears(2, "@r OK session=* n=0 open=1");
	hears_nothing(2);
	passes(SEC + 210 * MSEC);
	hears(2, "! LOST name=a fence=* reason=quorum");
	all_come();
	passes(SEC);
	says(2, "CHECK a");
	hears(2, "ERR LOST *");
	says(3, "LOCK a wait=1m");
	ck_assert_int_gt(number_in(hears(3, GRANT), "fence"), fence);
}
END_TEST

START_TEST(unlock_before_the_adoption_is_decided_releases_the_old_value)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(2010 * MSEC);
	ignores(2);
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	all_come();
	passes(SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	passes(8 * SEC); /* the cluster does not know that 1 and 2 are one client */
	says(3, "LOCK a");
	hears(3, GRANT);
}
END_TEST

START_TEST(a_lock_of_the_same_owner_meanwhile_is_reentrant_when_it_is_adopted)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(2010 * MSEC);
	ignores(2);
	says(2, "@l LOCK a");
	says(2, "@w LOCK a wait=1m");
	all_come();
	hears(2, "! SAFE *");
	ck_assert_int_eq(number_in(hears(2, "@l OK name=a * count=2"), "fence"), fence);
	hears(2, "@w OK name=a * count=3");
}
END_TEST

/* Without a quorum there is no decision. A LOCK without wait= hears so, and does not wait until the lease must have expired. */
START_TEST(a_lock_of_the_same_owner_that_does_not_wait_is_answered_meanwhile)
{
	adoption_is_under_way();
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(2010 * MSEC);
	ignores(2);
	says(2, "@l LOCK a");
	says(2, "@w LOCK a wait=1m");
	passes(3 * cluster.conf.timeout_us);
	hears(2, "@l ERR QUORUM *");
	hears_nothing(2);
	all_come();
	hears(2, "! SAFE *");
	hears(2, "@w OK name=a * count=2");
}
END_TEST

START_TEST(a_drop_while_resume_waits_detaches_again)
{
	adoption_is_under_way();
	resumes(2, &s1);
	goes(2, GONE_RESET);
	passes(5 * SEC);
	all_come();
	resumes(3, &s1);
	ck_assert_int_eq(number_in(hears(3, ROW_A), "fence"), fence);
	hears(3, "OK session=* n=1");
}
END_TEST

Suite *adopt_resume_suite(void)
{
	Suite *suite = suite_create("adopt_resume");
	TCase *tcase = tcase_create("resume");

	tcase_add_checked_fixture(tcase, NULL, cluster_close);
	tcase_add_test(tcase, a_lock_that_the_last_answer_of_a_store_takes_away_is_no_row);
	tcase_add_test(tcase, a_lock_that_the_last_answer_of_a_store_takes_away_is_LOST_before_the_next_request_is_served);
	tcase_add_test(tcase, a_loss_during_the_detachment_is_told_right_after_the_OK);
	tcase_add_test(tcase, show_and_list_say_that_the_holder_has_no_connection);
	tcase_add_test(tcase, resume_waits_for_the_adoption);
	tcase_add_test(tcase, resume_is_answered_before_a_half_closed_session_ends);
	tcase_add_test(tcase, RESUME_answers_in_bounded_time_and_the_open_locks_follow);
	tcase_add_test(tcase, a_resume_that_waits_is_answered_when_the_daemon_stops);
	tcase_add_test(tcase, a_loss_of_what_was_granted_meanwhile_is_told_before_the_answer);
	tcase_add_test(tcase, two_losses_at_once_do_not_end_the_wait_of_resume);
	tcase_add_test(tcase, a_loss_is_told_before_its_name_is_taken_anew);
	tcase_add_test(tcase, a_grant_that_was_not_notified_is_kept_no_longer_because_it_was_adopted_late);
	tcase_add_test(tcase, a_lock_that_no_quorum_confirms_is_lost_when_it_must_have_expired);
	tcase_add_test(tcase, unlock_before_the_adoption_is_decided_releases_the_old_value);
	tcase_add_test(tcase, a_lock_of_the_same_owner_meanwhile_is_reentrant_when_it_is_adopted);
	tcase_add_test(tcase, a_lock_of_the_same_owner_that_does_not_wait_is_answered_meanwhile);
	tcase_add_test(tcase, a_drop_while_resume_waits_detaches_again);
	suite_add_tcase(suite, tcase);
	return suite;
}
