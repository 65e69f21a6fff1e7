/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume.c, deliver.c: the ends of readers that the watchdog does not keep, and whose clients were away. */
#include "tests/fixture/readers.h"
#include "tests/fixture/resumable.h"

#include <check.h>

START_TEST(a_reader_whose_end_has_come_is_not_resumed)
{
	struct secret s;

	stores_have_room(3);
	s = says_hello(1, "grace=1m");
	(void)says_hello(2, "grace=1m");
	says(2, "LOCK a mode=shared ttl=20s");
	hears(2, "OK *");
	passes(100 * MSEC);
	says(1, "LOCK a mode=shared renew=no ttl=5s");
	hears(1, "OK *");
	passes(2 * SEC);
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	passes(2500 * MSEC);
	session_opens(3, 0);
	resumes(3, &s);
	passes(SEC);
	hears_nothing(3);
	all_feel(MOOD_WELL);
	passes(500 * MSEC);
	hears(3, "OK session=* n=0");
	hears(3, "! LOST name=a fence=* reason=expired");
}
END_TEST

START_TEST(an_end_that_an_extend_moved_while_its_client_was_away_survives_a_restart)
{
	struct secret s;

	stores_have_room(3);
	s = says_hello(1, "grace=1m");
	says(1, "LOCK a mode=shared renew=no");
	hears(1, "OK name=a *mode=shared");
	passes(8 * SEC);
	all_feel(MOOD_SILENT);
	says(1, "EXTEND a");
	goes(1, GONE_RESET);
	all_feel(MOOD_WELL);
	passes(20 * MSEC);
	daemon_returns(0);
	passes(200 * MSEC);
	session_opens(3, 0);
	resumes(3, &s);
	ck_assert_int_ge(number_in(hears(3, "\\* name=a *"), "valid_ms"), 9000);
	hears(3, "OK session=* n=1");
	passes(3 * SEC);
	hears_nothing(3);
}
END_TEST

Suite *stay_resume_suite(void)
{
	Suite *s = suite_create("stay_resume");
	TCase *c = tcase_create("ends");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, a_reader_whose_end_has_come_is_not_resumed);
	tcase_add_test(c, an_end_that_an_extend_moved_while_its_client_was_away_survives_a_restart);
	suite_add_tcase(s, c);
	return s;
}
