/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/job_restore.c: a file of jobs that cannot be read now, whose store goes on without it and reads it as soon as it can. */
#include "tests/fixture/home_run.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANOTHER_USES_IT, OF_A_LATER_VERSION, NOT_TO_BE_OPENED, TROUBLES };

static sqlite3 *other;

static void other_executes(const char *text)
{
	ck_assert_int_eq(sqlite3_open(home_run_path("jobs.db"), &other), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(other, text, NULL, NULL, NULL), SQLITE_OK);
}

static void other_ends(void)
{
	ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
	other = NULL;
}

/* A link in its place may not be followed, whoever looks. */
static void trouble_begins(int what)
{
	char aside[128];

	snprintf(aside, sizeof(aside), "%s", home_run_path("aside"));
	if (what == ANOTHER_USES_IT) {
		other_executes("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
	} else if (what == OF_A_LATER_VERSION) {
		other_executes("PRAGMA user_version = 2");
		other_ends();
	} else {
		ck_assert_int_eq(rename(home_run_path("jobs.db"), aside), 0);
		ck_assert_int_eq(symlink("aside", home_run_path("jobs.db")), 0);
	}
}

static void trouble_ends(int what)
{
	char aside[128];

	snprintf(aside, sizeof(aside), "%s", home_run_path("aside"));
	if (what == OF_A_LATER_VERSION)
		other_executes("PRAGMA user_version = 1");
	if (what == NOT_TO_BE_OPENED)
		ck_assert_int_eq(rename(aside, home_run_path("jobs.db")), 0);
	else
		other_ends();
}

static const int error_of[] = {[ANOTHER_USES_IT] = -EBUSY, [OF_A_LATER_VERSION] = -EPROTO, [NOT_TO_BE_OPENED] = -ELOOP};

static void refused(char code, int error)
{
	char text[200];

	snprintf(text, sizeof(text), "its jobs cannot be written: %s", jobs_trouble(error));
	ck_assert_int_eq(code, 0);
	ck_assert_int_eq(home_run.answer.class, ANSWER_REFUSED);
	ck_assert(span_equal(home_run.answer.text, span_of(text)));
}

static void begin_with_a_job(void)
{
	home_runs_start();
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	ck_assert_int_eq(take("q", "v", "60000"), 'J');
	home_run_write();
	home_run_kill();
}

/* Root may look at everything, and open it. */
static void nobody_runs(bool on)
{
	if (on && geteuid() == 0) {
		for (const char *const *file = (const char *const[]){"", "jobs.db", "jobs.db-wal", "jobs.spare", NULL}; *file; file++)
			ck_assert(chown(home_run_path(*file), 65534, 65534) == 0 || errno == ENOENT);
		ck_assert_int_eq(setresuid(65534, 65534, 0), 0);
	} else if (!on && geteuid() == 65534) {
		ck_assert_int_eq(setresuid(0, 0, 0), 0);
	}
}

static void forbidden(const char *file, mode_t mode)
{
	ck_assert_int_eq(chmod(home_run_path(file), mode), 0);
}

static void stop(void)
{
	nobody_runs(false);
	sqlite3_close(other);
	home_runs_stop();
}

/* Until it is killed. */
static pid_t other_process_uses_it(void)
{
	int ready[2];
	pid_t child;
	char one;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (sqlite3_open(home_run_path("jobs.db"), &other) ||
		    sqlite3_exec(other, "PRAGMA locking_mode = EXCLUSIVE; UPDATE job SET failed = 0", NULL, NULL, NULL) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &one, 1), 1);
	close(ready[0]);
	return child;
}

FIXTURE(.setup = begin_with_a_job, .teardown = stop, .seconds = 60)

/* That a job is not in memory does not mean that it is gone: who has it, or sends it again, is told nothing. */
LOOP_TEST(what_cannot_be_read_now_is_read_once_it_can_be, TROUBLES)
{
	trouble_begins(_i);
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, error_of[_i]);
	ck_assert(home_run.found.stays);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(home_run.file.error, error_of[_i]);
		refused(defer("q", "b", "y"), error_of[_i]);
		refused(take("q", "w", "3000"), error_of[_i]);
		refused(done("q", "v"), error_of[_i]);
		refused(home_run_ask("q", "j", "renew", "v", "v", "70000", NULL), error_of[_i]);
		refused(home_run_ask("q", "j", "list", "0", KEEP_MS, NULL), error_of[_i]);
		home_run_write();
		memory_look(home_run.memory);
	}
	trouble_ends(_i);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, 0);
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y a leased 0 x ");
	ck_assert_int_eq(done("q", "v"), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
}

TEST(leases_end_later_by_this_clock_though_they_are_read_later)
{
	trouble_begins(ANOTHER_USES_IT);
	home_run.later_ms = 30000;
	home_run_begin();
	home_run.later_ms = 0;
	trouble_ends(ANOTHER_USES_IT);
	memory_look(home_run.memory);
	home_run.now.us += 89 * SEC;
	ck_assert_int_eq(home_run_ask("q", "j", "drop", "b", NULL), 'R');
	ck_assert_int_eq(take("q", "w", "3000"), 'W');
	home_run.now.us += 2 * SEC;
	ck_assert_int_eq(take("q", "w", "3000"), 'J');
}

/* It may be half of a copy that somebody is making. */
TEST(what_is_damaged_by_then_stays_until_the_next_run)
{
	FILE *f;

	trouble_begins(NOT_TO_BE_OPENED);
	home_run_begin();
	ck_assert_int_eq(unlink(home_run_path("jobs.db")), 0);
	f = fopen(home_run_path("jobs.db"), "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fclose(f), 0);
	memory_look(home_run.memory);
	refused(defer("q", "c", "z"), -EBADMSG);
	trouble_ends(NOT_TO_BE_OPENED);
	memory_look(home_run.memory);
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y a leased 0 x ");
}

TEST(once_the_file_is_removed_the_store_begins_without_jobs)
{
	trouble_begins(NOT_TO_BE_OPENED);
	home_run_begin();
	ck_assert_int_eq(unlink(home_run_path("jobs.db")), 0);
	memory_look(home_run.memory);
	ck_assert_int_eq(defer("q", "c", "z"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "c due 0 z ");
}

/* Two daemons of one directory: the first that has a job makes the file. To restart the other would be no help. */
TEST(a_file_that_another_process_has_made_meanwhile_is_told_as_that)
{
	char aside[128];
	pid_t child;

	snprintf(aside, sizeof(aside), "%s", home_run_path("aside"));
	ck_assert_int_eq(rename(home_run_path("jobs.db"), aside), 0);
	home_run_begin();
	ck_assert_int_eq(rename(aside, home_run_path("jobs.db")), 0);
	child = other_process_uses_it();
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, -EBUSY);
	refused(defer("q", "c", "z"), -EBUSY);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, -EEXIST);
	refused(defer("q", "c", "z"), -EEXIST);
}

/* What is open is good. That the next process could not open it shows before there is one. */
LOOP_TEST(a_file_that_is_forbidden_meanwhile_is_written_and_told, 4)
{
	static const char *const file[] = {"", "", "jobs.db", "jobs.db-wal"};
	static const mode_t mode[] = {0, 0600, 0, 0400};

	home_run_begin();
	home_run_again();
	nobody_runs(true);
	forbidden(file[_i], mode[_i]);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(home_run_ask("q", "j", "renew", "v", "v", "70000", NULL), 'K');
		ck_assert_int_eq(defer("q", i ? "d" : "c", "z"), 'D');
		home_run_write();
		memory_look(home_run.memory);
		ck_assert_int_eq(job_file_trouble(&home_run.file), JOBS_SHUT);
		ck_assert_int_eq(home_run.file.lost, 0);
	}
	forbidden(file[_i], *file[_i] ? 0600 : 0700);
	memory_look(home_run.memory);
	ck_assert_int_eq(job_file_trouble(&home_run.file), 0);
	ck_assert_int_eq(home_run.file.lost, 0);
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y c due 0 z d due 0 z a leased 0 x ");
	nobody_runs(false);
}

TEST(a_directory_that_is_forbidden_from_the_start_is_told_as_that)
{
	nobody_runs(true);
	forbidden("", 0);
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, -EACCES);
	memory_look(home_run.memory);
	refused(defer("q", "c", "z"), -EACCES);
	forbidden("", 0700);
	memory_look(home_run.memory);
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y a leased 0 x ");
	nobody_runs(false);
}
