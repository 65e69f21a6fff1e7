/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/joblog.c, jobs.c: the log has no space for another record. */
#include "tests/fixture/home_run.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int64_t log_bytes(void)
{
	struct stat st;

	ck_assert_int_eq(stat(home_run_path("jobs"), &st), 0);
	return st.st_size;
}

static void files_may_have(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static unsigned defer_until_refused(void)
{
	char id[16];
	unsigned n = 0;

	do
		snprintf(id, sizeof(id), "id%u", n++);
	while (defer("q", id, "some payload") == 'D');
	return n - 1;
}

START_TEST(without_space_a_defer_is_refused_and_what_runs_may_end)
{
	unsigned stored;

	defer("runs", "a", "x");
	ck_assert_int_eq(take("runs", "v", "3000"), 'J');
	defer("runs", "b", "y");
	files_may_have((rlim_t)log_bytes());
	stored = defer_until_refused();
	ck_assert_uint_gt(stored, 100);
	ck_assert_int_eq(home_run.answer.class, ANSWER_REFUSED);
	ck_assert(span_starts(home_run.answer.text, SPAN("its jobs cannot be written: File too large")));
	ck_assert_int_eq(home_run.files.jobs.error, -EFBIG);
	ck_assert_int_eq(take("runs", "w", "3000"), 0);
	ck_assert_int_eq(defer("q", "id0", "the same"), 'D'); /* that is stored already */
	ck_assert_int_eq(home_run_ask("runs", "j", "renew", "v", "v", "5000", NULL), 'K');
	ck_assert_int_eq(done("runs", "v"), 'R');
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, stored + 1);
	ck_assert_str_eq(jobs_shown("runs"), "b due 0 y ");
	ck_assert_int_eq(defer("q", "new", "x"), 0);
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(defer("q", "new", "x"), 'D');
	ck_assert_int_eq(home_run.files.jobs.error, 0);
	ck_assert_int_eq(take("runs", "w", "3000"), 'J');
}
END_TEST

START_TEST(without_space_for_a_log_nothing_is_stored)
{
	files_may_have(1000);
	ck_assert_int_eq(defer("q", "a", "x"), 0);
	ck_assert_str_eq(jobs_shown("q"), "");
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
}
END_TEST

/* When even the spare is used up, nothing changes that is not written. */
START_TEST(without_any_space_nothing_changes)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "100000"), 'J');
	files_may_have((rlim_t)log_bytes());
	while (home_run_ask("q", "j", "renew", "v", "v", "100000", NULL) == 'K')
		;
	ck_assert_int_eq(done("q", "v"), 0);
	ck_assert_int_eq(home_run_ask("q", "j", "retry", "v", "0", "3", NULL), 0);
	ck_assert_int_eq(home_run_ask("q", "j", "back", "v", "0", NULL), 0);
	ck_assert_str_eq(jobs_shown("q"), "a leased 0 x ");
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a leased 0 x ");
	home_run.now.us += 101 * SEC;
	ck_assert_int_eq(take("q", "w", "1000"), 0); /* the sweep has no room either */
	ck_assert_str_eq(jobs_shown("q"), "a leased 0 x ");
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(take("q", "w", "1000"), 'J');
}
END_TEST

Suite *jobs_full_suite(void)
{
	Suite *s = suite_create("jobs_full");
	TCase *c = tcase_create("no space");

	tcase_add_checked_fixture(c, home_runs_start, home_runs_stop);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, without_space_a_defer_is_refused_and_what_runs_may_end);
	tcase_add_test(c, without_space_for_a_log_nothing_is_stored);
	tcase_add_test(c, without_any_space_nothing_changes);
	suite_add_tcase(s, c);
	return s;
}
