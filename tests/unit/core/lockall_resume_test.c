/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/groups.c: sessions that wait for several names and lose their connection; journals that end within a LOCKALL. */
#include "tests/fixture/groups.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s2;

/* Session 1 holds b, and session 2, which has grace, asks so and loses its connection. */
static void waits_and_drops(const char *request, const char *grace)
{
	cluster_begin(1);
	takes(1, "b");
	s2 = says_hello(2, grace);
	says(2, "%s", request);
	passes(10 * MSEC);
	goes(2, GONE_RESET);
}

START_TEST(a_lockall_keeps_its_place_and_the_request_repeated_takes_it)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	says(3, "@w LOCK b wait=1m");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "@again LOCKALL b a wait=1m");
	gives_back(1, "b");
	passes(10 * MSEC);
	hears_all(4, "@again ", "ba");
	hears_nothing(3);
	ignores(3);
}
END_TEST

START_TEST(what_a_lockall_gets_while_the_session_is_away_are_rows)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	gives_back(1, "b");
	passes(10 * SEC);
	says(3, "LOCKALL a c");
	hears(3, "BUSY name=a *");
	resumes(4, &s2);
	hears(4, "\\* name=a *");
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=2");
	says(4, "CHECK a");
	hears(4, "OK name=a *");
}
END_TEST

START_TEST(what_a_lockall_gets_between_resume_and_the_request_repeated_answers_that)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	gives_back(1, "b");
	passes(10 * MSEC);
	says(4, "@again LOCKALL a b wait=1m");
	hears(4, "@again \\* name=a fence=* count=1");
	hears(4, "@again \\* name=b fence=* count=1");
	hears(4, "@again OK n=2");
}
END_TEST

START_TEST(a_lockall_that_is_not_repeated_lapses)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=15s");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	passes(15100 * MSEC);
	gives_back(1, "b");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}
END_TEST

START_TEST(what_a_lockall_got_and_nobody_asks_for_lapses)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=15s");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	gives_back(1, "b");
	passes(14 * SEC);
	ck_assert(key_is_there(0, "a") && key_is_there(0, "b"));
	passes(1100 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}
END_TEST

START_TEST(a_lockall_ends_with_the_grace_of_its_session)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=15s");
	passes(15100 * MSEC);
	gives_back(1, "b");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}
END_TEST

START_TEST(another_request_does_not_take_the_place_of_a_lockall)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "@1 LOCKALL a c wait=1m");
	hears_all(4, "@1 ", "ac");
	says(4, "@2 LOCKANY d b wait=1m");
	hears(4, "@2 OK name=d *");
}
END_TEST

/* It insists: it has a, and waits for b. */
START_TEST(a_lockall_that_insists_is_repeated_and_keeps_what_it_has)
{
	cluster_begin(1);
	takes(1, "b");
	takes(3, "a");
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCKALL a b wait=1h");
	goes(2, GONE_RESET);
	passes(2 * SEC);
	gives_back(3, "a");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "@x LOCKALL b a wait=1h owner=x");
	says(4, "@again LOCKALL b a wait=1h");
	ck_assert(key_is_there(0, "a"));
	gives_back(1, "b");
	passes(10 * MSEC);
	hears_all(4, "@again ", "ba");
	hears_nothing(4);
}
END_TEST

/* The first name ends the LOCKALL, which has a; the second one ends the LOCKANY, which must not be granted that before. */
START_TEST(groups_that_make_way_for_one_request_grant_each_other_nothing)
{
	cluster_begin(1);
	takes(1, "b");
	takes(1, "c");
	takes(3, "a");
	s2 = says_hello(2, "grace=20s");
	says(2, "@1 LOCKALL a b wait=1h");
	says(2, "@2 LOCKANY c a wait=1h");
	goes(2, GONE_RESET);
	passes(2 * SEC);
	gives_back(3, "a");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	ck_assert(key_is_there(0, "a"));
	says(4, "@x LOCKANY b a c mode=shared wait=1m");
	hears(4, "@x OK name=a * mode=shared");
	gives_back(4, "a");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a"));
}
END_TEST

START_TEST(a_lockany_keeps_its_places_and_what_it_gets_is_a_row)
{
	cluster_begin(1);
	takes(1, "a");
	takes(1, "b");
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCKANY a b wait=1m");
	goes(2, GONE_RESET);
	gives_back(1, "b");
	gives_back(1, "a");
	ck_assert(!key_is_there(0, "a"));
	resumes(4, &s2);
	hears(4, "\\* name=b *");
	hears(4, "OK session=* n=1");
}
END_TEST

START_TEST(what_a_lockall_took_is_adopted_by_the_next_run)
{
	cluster_begin(3);
	s2 = says_hello(2, "grace=20s");
	says(2, "LOCKALL a b c");
	hears_all(2, "", "abc");
	daemon_returns(0);
	passes(SEC);
	resumes(4, &s2);
	hears(4, "\\* name=a *");
	hears(4, "\\* name=b *");
	hears(4, "\\* name=c *");
	hears(4, "OK session=* n=3");
}
END_TEST

START_TEST(a_lockall_whose_records_are_torn_was_told_to_nobody)
{
	for (unsigned torn = 1; torn <= 2; torn++) {
		cluster_begin(3);
		s2 = says_hello(2, "grace=20s");
		takes(2, "d");
		says(2, "LOCKALL a b c");
		ignores(2);
		journal_loses_tail(0, torn);
		daemon_returns(0);
		passes(SEC);
		resumes(4, &s2);
		hears(4, "\\* name=d *");
		hears(4, "OK session=* n=1");
		if (torn == 1)
			cluster_close();
	}
}
END_TEST

START_TEST(what_a_group_has_while_it_waits_is_not_in_the_journal)
{
	cluster_begin(3);
	takes(1, "b");
	s2 = says_hello(2, "grace=20s");
	takes(3, "a");
	says(2, "LOCKALL a b wait=1m");
	passes(2 * SEC);
	gives_back(3, "a");
	passes(50 * MSEC);
	ck_assert(key_is_there(0, "a"));
	daemon_returns(0);
	passes(SEC);
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
}
END_TEST

START_TEST(a_lockall_repeated_without_a_wait_ends_the_one_that_waits)
{
	waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "LOCKALL a b");
	hears(4, "BUSY name=b *");
	gives_back(1, "b");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a") && !key_is_there(0, "b"));
}
END_TEST

START_TEST(a_lockall_repeated_before_its_stores_answer_takes_the_names)
{
	static const char *const asks[] = {"LOCKALL a b", "LOCKALL a b wait=1m", "LOCKALL a b wait=forever"};

	cluster_begin(3);
	s2 = says_hello(2, "grace=20s");
	all_feel(MOOD_SILENT);
	says(2, "%s", asks[_i]);
	goes(2, GONE_RESET);
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "%s", asks[_i]);
	all_feel(MOOD_WELL);
	passes(SEC);
	hears_all(4, "", "ab");
}
END_TEST

START_TEST(a_request_in_the_other_mode_ends_the_lockall_that_was_not_repeated)
{
	static const char *const asks[] = {"LOCK a mode=shared", "LOCKALL a c mode=shared", "LOCKALL a b mode=shared wait=1m", "LOCKANY a c mode=shared"};

	for (unsigned i = 0; i < 4; i++) {
		waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
		resumes(4, &s2);
		hears(4, "OK session=* n=0");
		says(4, "%s", asks[i]);
		gives_back(1, "b");
		passes(10 * MSEC);
		hears(4, "*name=a *mode=shared");
		if (i < 3)
			cluster_close();
	}
}
END_TEST

/* When the connection breaks, one LOCKALL insists, and keeps a; the other waits for a. */
START_TEST(what_a_lockall_gives_back_is_not_granted_to_another_that_makes_way_as_well)
{
	static const char *const asks[] = {"LOCK a mode=shared", "LOCKALL a b mode=shared", "LOCKALL a b"};

	for (unsigned i = 0; i < 3; i++) {
		cluster_begin(1);
		takes(1, "a");
		takes(3, "b");
		s2 = says_hello(2, "grace=20s");
		says(2, "@1 LOCKALL a b wait=1m");
		says(2, "@2 LOCKALL a b wait=1m");
		passes(2 * SEC);
		gives_back(1, "a");
		passes(MSEC);
		goes(2, GONE_RESET);
		resumes(4, &s2);
		hears(4, "OK session=* n=0");
		says(4, "%s", asks[i]);
		hears(4, i == 0 ? "OK name=a *mode=shared" : "BUSY name=b *");
		gives_back(3, "b");
		passes(10 * MSEC);
		ck_assert(key_is_there(0, "a") == (i == 0) && !key_is_there(0, "b"));
		if (i < 2)
			cluster_close();
	}
}
END_TEST

START_TEST(all_locks_that_were_not_repeated_make_way_for_one_in_the_other_mode)
{
	cluster_begin(1);
	takes(1, "b");
	s2 = says_hello(2, "grace=20s");
	says(2, "@1 LOCK b wait=1m");
	says(2, "@2 LOCK b wait=1m");
	says(2, "@3 LOCK b wait=1m");
	goes(2, GONE_RESET);
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "LOCK b mode=shared wait=1m");
	gives_back(1, "b");
	passes(10 * MSEC);
	hears(4, "OK name=b *mode=shared");
}
END_TEST

/* Nobody else of this daemon is concerned with the name. */
START_TEST(the_only_lock_that_waits_for_another_daemon_makes_way)
{
	two_daemons(1);
	takes(1, "a");
	session_opens(3, 1);
	session_opens(4, 1);
	s2 = says_hello(3, "grace=20s");
	says(3, "LOCK a wait=1m");
	passes(100 * MSEC);
	goes(3, GONE_RESET);
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "LOCK a mode=shared wait=1m");
	gives_back(1, "a");
	passes(5 * SEC);
	hears(4, "OK name=a *mode=shared");
}
END_TEST

START_TEST(a_lockall_in_the_other_mode_ends_the_lock_that_was_not_repeated)
{
	waits_and_drops("LOCK b wait=1m", "grace=20s");
	resumes(4, &s2);
	hears(4, "OK session=* n=0");
	says(4, "LOCKALL a b mode=shared wait=1m");
	gives_back(1, "b");
	passes(10 * MSEC);
	hears_all(4, "", "ab");
}
END_TEST

Suite *lockall_resume_suite(void)
{
	Suite *s = suite_create("lockall_resume");
	TCase *t = tcase_create("lockall_resume");

	tcase_add_checked_fixture(t, NULL, cluster_close);
	tcase_add_test(t, a_lockall_keeps_its_place_and_the_request_repeated_takes_it);
	tcase_add_test(t, what_a_lockall_gets_while_the_session_is_away_are_rows);
	tcase_add_test(t, what_a_lockall_gets_between_resume_and_the_request_repeated_answers_that);
	tcase_add_test(t, a_lockall_that_is_not_repeated_lapses);
	tcase_add_test(t, what_a_lockall_got_and_nobody_asks_for_lapses);
	tcase_add_test(t, a_lockall_ends_with_the_grace_of_its_session);
	tcase_add_test(t, another_request_does_not_take_the_place_of_a_lockall);
	tcase_add_test(t, a_lockall_that_insists_is_repeated_and_keeps_what_it_has);
	tcase_add_test(t, groups_that_make_way_for_one_request_grant_each_other_nothing);
	tcase_add_test(t, a_lockany_keeps_its_places_and_what_it_gets_is_a_row);
	tcase_add_test(t, what_a_lockall_took_is_adopted_by_the_next_run);
	tcase_add_test(t, a_lockall_whose_records_are_torn_was_told_to_nobody);
	tcase_add_test(t, what_a_group_has_while_it_waits_is_not_in_the_journal);
	tcase_add_test(t, a_lockall_repeated_without_a_wait_ends_the_one_that_waits);
	tcase_add_loop_test(t, a_lockall_repeated_before_its_stores_answer_takes_the_names, 0, 3);
	tcase_add_test(t, a_request_in_the_other_mode_ends_the_lockall_that_was_not_repeated);
	tcase_add_test(t, a_lockall_in_the_other_mode_ends_the_lock_that_was_not_repeated);
	tcase_add_test(t, what_a_lockall_gives_back_is_not_granted_to_another_that_makes_way_as_well);
	tcase_add_test(t, all_locks_that_were_not_repeated_make_way_for_one_in_the_other_mode);
	tcase_add_test(t, the_only_lock_that_waits_for_another_daemon_makes_way);
	suite_add_tcase(s, t);
	return s;
}
