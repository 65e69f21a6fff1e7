/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/joblog.c, jobs.c: the log has no space for another record. */
#include "tests/fixture/home_run.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void files_may_have(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void stop(void)
{
	files_may_have(RLIM_INFINITY);
	rmdir(home_run_path("jobs.new"));
	home_runs_stop();
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

FIXTURE(.setup = home_runs_start, .teardown = stop, .seconds = 60)

TEST(without_space_a_defer_is_refused_and_what_runs_may_end)
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
	while (take("q", "w", "3000") == 'J') /* a shorter record may still fit */
		;
	ck_assert_int_eq(home_run.answer.class, ANSWER_REFUSED);
	ck_assert_int_eq(take("runs", "w", "3000"), 0);
	ck_assert_int_eq(defer("q", "id0", "the same"), 'D'); /* that is stored already */
	ck_assert_int_eq(home_run_ask("runs", "j", "renew", "v", "5000", NULL), 'K');
	ck_assert_int_eq(done("runs", "v"), 'R');
	ck_assert_int_eq(home_run.files.jobs.error, -EFBIG); /* that a job has ended is no sign of space */
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, stored + 1);
	ck_assert_str_eq(jobs_shown("runs"), "b due 0 y ");
	ck_assert_int_eq(defer("q", "new", "x"), 0);
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(defer("q", "new", "x"), 'D');
	ck_assert_int_eq(home_run.files.jobs.error, 0);
	ck_assert_int_eq(take("runs", "w", "3000"), 'J');
}

TEST(without_space_for_a_log_nothing_is_stored)
{
	files_may_have(1000);
	ck_assert_int_eq(defer("q", "a", "x"), 0);
	ck_assert_str_eq(jobs_shown("q"), "");
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
}

static char renew(const char *value)
{
	return home_run_ask("q", "j", "renew", value, "100000", NULL);
}

/* As if the device had no space for a second file, beside the log. */
static void no_second_file(bool there_is_none)
{
	if (there_is_none)
		ck_assert_int_eq(mkdir(home_run_path("jobs.new"), 0700), 0);
	else
		ck_assert_int_eq(rmdir(home_run_path("jobs.new")), 0);
}

/* Removed, or cut: nothing is added to it, and another takes its place. */
LOOP_TEST(a_log_that_somebody_removes_or_cuts_is_written_anew, 2)
{
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	if (_i == 0)
		ck_assert_int_eq(unlink(home_run_path("jobs")), 0);
	else
		ck_assert_int_eq(truncate(home_run_path("jobs"), 0), 0);
	no_second_file(true);
	ck_assert_int_eq(defer("q", "b", "y"), 0);
	ck_assert_int_eq(home_run.answer.class, ANSWER_REFUSED);
	no_second_file(false);
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x b due 0 y ");
}

/* Renewals must leave the room in which each lease can end. */
TEST(what_runs_may_end_however_often_it_was_renewed)
{
	enum { RUN = 3000 };
	char id[16];

	for (unsigned i = 0; i < RUN; i++) {
		snprintf(id, sizeof(id), "id%u", i);
		ck_assert_int_eq(defer("q", id, "x"), 'D');
		ck_assert_int_eq(take("q", id, "100000"), 'J');
	}
	files_may_have((rlim_t)log_bytes());
	no_second_file(true);
	while (renew("id7") == 'K')
		;
	ck_assert_int_eq(home_run.answer.class, ANSWER_REFUSED);
	ck_assert(span_starts(home_run.answer.text, SPAN("its jobs cannot be written: File too large")));
	ck_assert_int_eq(take("q", "w", "1000"), 'W');
	for (unsigned i = 0; i < RUN; i++) {
		snprintf(id, sizeof(id), "id%u", i);
		if (i % 3 == 0)
			ck_assert_int_eq(done("q", id), 'R');
		else
			ck_assert_int_eq(home_run_ask("q", "j", i % 3 == 1 ? "retry" : "back", id, "0", "1", NULL), 'R');
	}
	no_second_file(false);
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, 2 * RUN / 3);
	ck_assert_uint_eq(home_run.found.jobs.log.damaged + home_run.found.jobs.log.torn, 0);
}

/* Leases that nobody ends do so by the clock, and that has its room, too. Nothing changes that is not written. */
TEST(without_any_space_leases_end_and_nothing_else_changes)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "100000"), 'J');
	files_may_have((rlim_t)log_bytes());
	no_second_file(true);
	while (renew("v") == 'K')
		;
	ck_assert_int_eq(defer("q", "b", "y"), 0);
	ck_assert_str_eq(jobs_shown("q"), "a leased 0 x ");
	home_run.now.us += 101 * SEC;
	ck_assert_int_eq(take("q", "w", "1000"), 0);
	ck_assert_str_eq(jobs_shown("q"), "a due 1 x ");
	ck_assert_int_eq(take("q", "w", "1000"), 0);
	no_second_file(false);
	files_may_have(RLIM_INFINITY);
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 1 x ");
	ck_assert_int_eq(take("q", "w", "1000"), 'J');
}

static void take_and_give_back(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		ck_assert_int_eq(take("q", "v", "100000"), 'J');
		ck_assert_int_eq(renew("v"), 'K');
		ck_assert_int_eq(home_run_ask("q", "j", "back", "v", "0", NULL), 'R');
	}
}

TEST(where_the_device_is_full_the_dead_make_room)
{
	defer("q", "a", "x");
	files_may_have((rlim_t)log_bytes());
	take_and_give_back(5000);
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	home_run_again();
	take_and_give_back(5000);
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x b due 0 y ");
}

/* Without jobs the old log may go first: then a new one has its space. */
TEST(a_log_without_jobs_is_not_in_the_way_of_another)
{
	struct stat before, after;

	defer("q", "a", "x");
	take_and_give_back(500);
	ck_assert_int_eq(take("q", "v", "100000"), 'J');
	files_may_have((rlim_t)log_bytes());
	no_second_file(true);
	while (renew("v") == 'K')
		;
	ck_assert_int_eq(done("q", "v"), 'R');
	ck_assert_int_eq(stat(home_run_path("jobs"), &before), 0);
	ck_assert_int_eq(defer("q", "b", "y"), 0);
	ck_assert_int_eq(stat(home_run_path("jobs"), &after), -1);
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, 0);
	no_second_file(false);
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
}

static void next_run_by_a_clock_that_is_ahead(void)
{
	home_run_kill();
	home_run.epoch_us += 10 * SEC;
	home_run.past.jobs.later_ms = 10000;
	home_run_begin();
	home_run.past.jobs.later_ms = 0;
}

/* The run after the next one knows of the two clocks as well. */
TEST(a_lease_that_ends_later_by_this_clock_is_in_the_log_or_it_is_told)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "100000"), 'J');
	files_may_have((rlim_t)log_bytes());
	no_second_file(true);
	next_run_by_a_clock_that_is_ahead();
	ck_assert_int_eq(home_run.found.jobs.error, 0);
	home_run_again();
	home_run.now.us += 99 * SEC;
	ck_assert_int_eq(take("q", "w", "1000"), 'W');
	while (renew("v") == 'K')
		;
	next_run_by_a_clock_that_is_ahead();
	ck_assert_int_eq(home_run.found.jobs.error, -EFBIG);
	ck_assert_int_eq(home_run.files.jobs.error, -EFBIG);
}

/* --- the log is as long as it may be -------------------------------------------------------------------------------------- */

static void the_log_may_have(size_t bytes)
{
	defer("other", "first", "x");
	home_run.files.jobs.most = bytes;
}

TEST(a_log_that_is_full_of_jobs_is_emptied_again)
{
	unsigned stored;

	the_log_may_have((size_t)4 << 20);
	for (unsigned round = 0; round < 2; round++) {
		stored = defer_until_refused();
		ck_assert_uint_gt(stored, 10000);
		for (unsigned i = 0; i < stored; i++) {
			ck_assert_int_eq(take("q", "v", "100000"), 'J');
			ck_assert_int_eq(renew("v"), 'K');
			ck_assert_int_eq(done("q", "v"), 'R');
		}
	}
	home_run_again();
	ck_assert_uint_eq(home_run.found.jobs.jobs, 1);
}

/* What ends leases has its room set apart: a snapshot must be worth it before all else of the log is used. */
TEST(in_a_log_that_is_full_of_jobs_what_runs_goes_on)
{
	unsigned stored, taken = 0;
	char value[64];

	the_log_may_have((size_t)2 << 20);
	stored = defer_until_refused();
	for (char code = 'J'; code == 'J'; taken += code == 'J') {
		snprintf(value, sizeof(value), "value-of-a-lease-that-is-about-as-long-as-one-is-%u", taken);
		code = take("q", value, "100000");
		if (taken == stored)
			break;
	}
	ck_assert_uint_gt(taken, 500);
	for (unsigned i = 0; i < 30000; i++) {
		snprintf(value, sizeof(value), "value-of-a-lease-that-is-about-as-long-as-one-is-%u", i % taken);
		ck_assert_int_eq(renew(value), 'K');
	}
}

/* Renewals alone would use up the last part, and a run may leave it so. */
TEST(a_log_that_was_left_nearly_full_is_written_anew_at_once)
{
	struct joblog *l = &home_run.files.jobs;

	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "100000"), 'J');
	l->snapshot_at = SIZE_MAX;
	while (l->end < ((size_t)3 << 19))
		ck_assert_int_eq(renew("v"), 'K');
	l->most = l->end + JOBLOG_SPARE + 1000;
	joblog_put_off(l, l->end); /* as when it is opened */
	ck_assert_int_eq(renew("v"), 'K');
	ck_assert_uint_lt(l->end, 1000);
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a leased 0 x ");
}
