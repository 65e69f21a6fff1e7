/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/job_keep.c: a file of jobs that cannot be read or written, and what comes of it. */
#include "daemon/store/ledger.h"
#include "tests/fixture/home_run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
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
	home_runs_stop();
}

static bool is_there(const char *file)
{
	return access(home_run_path(file), F_OK) == 0;
}

static void put_file(const char *file, const char *text)
{
	FILE *f = fopen(home_run_path(file), "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

static size_t read_file(const char *file, char *out, size_t most)
{
	FILE *f = fopen(home_run_path(file), "r");
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(out, 1, most, f);
	fclose(f);
	return n;
}

static void refused(char code, const char *why)
{
	char text[200];

	ck_assert_int_eq(code, 0);
	ck_assert_int_eq(home_run.answer.class, ANSWER_REFUSED);
	snprintf(text, sizeof(text), "its jobs cannot be written: %s", why);
	ck_assert(span_equal(home_run.answer.text, span_of(text)));
}

FIXTURE(.setup = home_runs_start, .teardown = stop, .seconds = 60)

TEST(without_jobs_there_is_no_file)
{
	ck_assert_int_eq(take("q", "v", "3000"), 'W');
	home_run_again();
	ck_assert(!is_there("jobs.db") && !is_there("jobs.spare"));
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	home_run_write();
	ck_assert(is_there("jobs.db") && is_there("jobs.spare"));
}

TEST(nobody_else_reads_the_file)
{
	struct stat st;

	umask(0);
	defer("q", "a", "x");
	home_run_write();
	ck_assert_int_eq(stat(home_run_path("jobs.db"), &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(stat(home_run_path("jobs.db-wal"), &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
}

/* --- no space ------------------------------------------------------------------------------------------------------------ */

TEST(without_space_for_a_file_nothing_is_stored)
{
	files_may_have(1000);
	refused(defer("q", "a", "x"), "File too large");
	ck_assert_str_eq(jobs_shown("q"), "");
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	ck_assert_int_eq(home_run.file.error, 0);
}

static void folder_is_away(bool away)
{
	char aside[80];

	snprintf(aside, sizeof(aside), "%s.away", home_run.dir);
	ck_assert_int_eq(away ? rename(home_run.dir, aside) : rename(aside, home_run.dir), 0);
}

/* Nor does a restart hide it. */
LOOP_TEST(that_no_file_can_be_made_shows_before_a_job_comes, 2)
{
	home_run_kill();
	folder_is_away(true);
	home_run_begin();
	if (_i)
		home_run_again();
	ck_assert_int_eq(home_run.file.error, -ENOENT);
	refused(defer("q", "a", "x"), "No such file or directory");
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, -ENOENT);
	folder_is_away(false);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, 0);
	folder_is_away(true);
	memory_look(home_run.memory);
	ck_assert_int_ne(home_run.file.error, 0);
	folder_is_away(false);
	memory_look(home_run.memory);
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
}

TEST(a_restart_does_not_hide_that_there_is_no_room_for_the_spare)
{
	defer("q", "a", "x");
	home_run_write();
	ck_assert_int_eq(unlink(home_run_path("jobs.spare")), 0);
	files_may_have(JOBS_SPARE - 1);
	home_run_again();
	ck_assert_int_eq(home_run.file.error, -EFBIG);
}

TEST(room_is_noticed_though_nobody_asks)
{
	defer("q", "a", "x");
	home_run_write();
	ck_assert_int_eq(unlink(home_run_path("jobs.spare")), 0);
	files_may_have(JOBS_SPARE - 1);
	home_run_again();
	refused(defer("q", "b", "y"), "File too large");
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, -EFBIG);
	files_may_have(RLIM_INFINITY);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, 0);
	ck_assert(is_there("jobs.spare"));
}

TEST(a_log_that_can_grow_no_more_begins_anew)
{
	struct stat st;

	for (unsigned i = 0; i < 4; i++) { /* the log is larger than the database */
		defer("q", i ? "b" : "a", "x");
		home_run_write();
		if (i)
			ck_assert_int_eq(home_run_ask("q", "j", "drop", "b", NULL), 'R');
	}
	ck_assert_int_eq(stat(home_run_path("jobs.db-wal"), &st), 0);
	files_may_have((rlim_t)st.st_size);
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(take("q", "v", "3000"), 'J');
		home_run_write();
		ck_assert_int_eq(home_run_ask("q", "j", "back", "v", "0", NULL), 'R');
		home_run_write();
	}
	ck_assert(is_there("jobs.spare"));
	ck_assert(!is_there("jobs.db.bad"));
}

/* The log begins anew when SQLite has moved what is in it into the database: nobody has cut it then. */
TEST(a_log_that_begins_anew_is_not_taken_for_cut)
{
	static char payload[30001];
	char id[16];

	memset(payload, 'p', sizeof(payload) - 1);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(id, sizeof(id), "id%u", i);
		ck_assert_int_eq(defer("q", id, payload), 'D');
		home_run_write();
	}
	memory_look(home_run.memory);
	ck_assert(!is_there("jobs.db.bad") && !home_run.file.lost);
	home_run_kill();
	home_run_begin();
	ck_assert_uint_eq(home_run.found.jobs, 300);
}

LOOP_TEST(a_spare_that_somebody_removes_or_cuts_is_made_again, 2)
{
	struct stat st;

	defer("q", "a", "x");
	home_run_write();
	if (_i)
		ck_assert_int_eq(unlink(home_run_path("jobs.spare")), 0);
	else
		ck_assert_int_eq(truncate(home_run_path("jobs.spare"), 1), 0);
	memory_look(home_run.memory);
	ck_assert_int_eq(stat(home_run_path("jobs.spare"), &st), 0);
	ck_assert_int_eq(st.st_size, JOBS_SPARE);
	ck_assert_str_eq(jobs_trouble(home_run.file.lost), "somebody has removed or cut jobs.spare");
}

TEST(what_a_pass_leaves_unwritten_is_bounded_in_bytes)
{
	static char payload[32768];
	unsigned n = 0;

	memset(payload, 'x', sizeof(payload) - 1);
	while (!memory_unwritten_is_much(home_run.memory) && ++n < 20) {
		char id[16];

		snprintf(id, sizeof(id), "%u", n);
		ck_assert_int_eq(defer("q", id, payload), 'D');
	}
	ck_assert(n > 1 && n < 10); /* some hundred KiB */
	home_run_write();
	ck_assert(!memory_unwritten_is_much(home_run.memory));
}

TEST(what_could_not_be_written_is_written_first)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "3000"), 'J');
	home_run_write();
	files_may_have(100);
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	ck_assert_int_eq(memory_write_jobs(home_run.memory), -EFBIG);
	ck_assert(!is_there("jobs.spare"));
	refused(defer("q", "c", "z"), "File too large");
	refused(take("q", "w", "3000"), "File too large");
	refused(done("q", "v"), "File too large");
	ck_assert_int_eq(defer("q", "b", "y"), 'D'); /* that is stored already */
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y a leased 0 x ");
	files_may_have(RLIM_INFINITY);
	refused(done("q", "v"), "File too large"); /* nobody has looked yet */
	memory_look(home_run.memory);
	ck_assert_int_eq(done("q", "v"), 'R');
	home_run_kill(); /* b was written before a was done */
	home_run_begin();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y a leased 0 x ");
}

TEST(without_a_spare_what_runs_goes_on_and_ends)
{
	defer("q", "a", "x");
	defer("q", "b", "y");
	ck_assert_int_eq(take("q", "v", "3000"), 'J');
	home_run_write();
	ck_assert_int_eq(unlink(home_run_path("jobs.spare")), 0);
	files_may_have(JOBS_SPARE - 1);
	home_run_again();
	refused(defer("q", "c", "z"), "File too large");
	refused(take("q", "w", "3000"), "File too large");
	ck_assert_int_eq(home_run_ask("q", "j", "renew", "v", "v", "5000", NULL), 'K');
	home_run_write();
	ck_assert_int_eq(home_run.file.error, -EFBIG); /* that a job goes on is no sign of space */
	ck_assert_int_eq(done("q", "v"), 'R');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
	files_may_have(RLIM_INFINITY);
	ck_assert_int_eq(take("q", "w", "3000"), 'J');
	ck_assert_int_eq(home_run.file.error, 0);
}

/* A transaction is no longer than the spare. */
TEST(a_long_pass_is_written_in_parts)
{
	static char payload[30001];
	char id[16];

	memset(payload, 'p', sizeof(payload) - 1);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "id%u", i);
		ck_assert_int_eq(defer("q", id, payload), 'D');
	}
	home_run_kill();
	home_run_begin();
	ck_assert_uint_ge(home_run.found.jobs, 80);
	ck_assert_uint_lt(home_run.found.jobs, 100);
}

static void next_run_by_a_clock_that_is_ahead(void)
{
	home_run_kill();
	home_run.epoch_us += 10 * SEC;
	home_run.later_ms = 10000;
	home_run_begin();
	home_run.later_ms = 0;
}

TEST(a_lease_that_ends_later_by_this_clock_is_in_the_file_or_it_is_told)
{
	defer("q", "a", "x");
	ck_assert_int_eq(take("q", "v", "100000"), 'J');
	home_run_write();
	next_run_by_a_clock_that_is_ahead();
	ck_assert_int_eq(home_run.found.unwritten, 0);
	home_run_again();
	home_run.now.us += 99 * SEC;
	ck_assert_int_eq(take("q", "w", "1000"), 'W');
	files_may_have(100);
	next_run_by_a_clock_that_is_ahead();
	ck_assert_int_ne(home_run.found.unwritten | home_run.found.error, 0);
}

/* --- another file, or none ----------------------------------------------------------------------------------------------- */

enum { CUT, REMOVED, LOG_CUT, LOG_CUT_A_LITTLE, LOG_REMOVED, LOG_ANOTHER, WAYS };

static void lose_file(int how)
{
	char file[128], log[128];
	struct stat st;

	home_run_write();
	snprintf(file, sizeof(file), "%s", home_run_path("jobs.db"));
	snprintf(log, sizeof(log), "%s", home_run_path("jobs.db-wal"));
	ck_assert_int_eq(stat(log, &st), 0);
	if (how == CUT)
		ck_assert_int_eq(truncate(file, 0), 0);
	if (how == REMOVED)
		ck_assert_int_eq(unlink(file), 0);
	if (how == LOG_CUT || how == LOG_CUT_A_LITTLE)
		ck_assert_int_eq(truncate(log, how == LOG_CUT || st.st_size == 0 ? 0 : st.st_size - 1), 0);
	if (how == REMOVED || how == LOG_REMOVED || how == LOG_ANOTHER)
		ck_assert_int_eq(unlink(log), 0);
	if (how == LOG_ANOTHER) {
		put_file("jobs.db-wal", "");
		ck_assert_int_eq(truncate(log, st.st_size), 0);
	}
}

/* Before anything else is acknowledged, at the end of a pass, or when the daemon looks after its files. */
LOOP_TEST(a_file_that_somebody_removes_or_cuts_is_made_again, WAYS)
{
	struct stat st;

	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	ck_assert_int_eq(take("q", "v", "60000"), 'J');
	lose_file(_i);
	files_may_have(100);
	refused(defer("q", "b", "y"), "File too large");
	files_may_have(RLIM_INFINITY);
	memory_look(home_run.memory);
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	lose_file(_i);
	ck_assert_int_eq(home_run_ask("q", "j", "renew", "v", "v", "70000", NULL), 'K');
	lose_file(_i);
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.error, 0);
	ck_assert_int_eq(stat(home_run_path("jobs.db"), &st), 0);
	ck_assert_int_gt(st.st_size, 0);
	home_run_kill();
	home_run_begin();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y a leased 0 x ");
}

static void file_goes_back(const char *file, const char *bytes, size_t n)
{
	FILE *f = fopen(home_run_path(file), "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

/* A run that is killed before it has seen that its log is lost leaves what was there at its last look. */
TEST(what_is_in_the_log_alone_is_no_older_than_a_look)
{
	static char db[1 << 17];
	size_t n;

	defer("q", "a", "x");
	home_run_write();
	defer("q", "b", "y");
	home_run_write();
	memory_look(home_run.memory);
	n = read_file("jobs.db", db, sizeof(db));
	home_run_kill();
	file_goes_back("jobs.db", db, n);
	ck_assert(!is_there("jobs.db-wal") || unlink(home_run_path("jobs.db-wal")) == 0);
	home_run_begin();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x b due 0 y ");
}

/* A copy from before, put back in place: the same file, of the same size. What has been acknowledged since is in memory. */
LOOP_TEST(a_file_that_somebody_writes_to_is_made_again, 3)
{
	const struct timespec then[2] = {{1000000000, 0}, {1000000000, 0}};
	static char db[1 << 17];
	struct stat st;
	size_t n;

	defer("q", "a", "x");
	home_run_again();
	memory_look(home_run.memory);
	n = read_file("jobs.db", db, sizeof(db));
	defer("q", "b", "y");
	ck_assert_int_eq(home_run_ask("q", "j", "drop", "a", NULL), 'R');
	home_run_write();
	memory_look(home_run.memory);
	ck_assert_int_eq(home_run.file.lost, 0);
	ck_assert_int_eq(stat(home_run_path("jobs.db"), &st), 0);
	ck_assert_uint_eq((size_t)st.st_size, n);
	file_goes_back("jobs.db", db, n);
	ck_assert_int_eq(utimensat(AT_FDCWD, home_run_path("jobs.db"), then, 0), 0);
	if (_i == 0)
		memory_look(home_run.memory);
	else
		ck_assert_int_eq(_i == 1 ? defer("q", "c", "z") : take("q", "v", "60000"), _i == 1 ? 'D' : 'J');
	home_run_write();
	memory_look(home_run.memory);
	ck_assert_str_eq(jobs_trouble(home_run.file.lost), "somebody has written to jobs.db");
	ck_assert(home_run.file.aside && !home_run.file.error);
	home_run_kill();
	home_run_begin();
	ck_assert_str_eq(jobs_shown("q"), _i == 0 ? "b due 0 y " : _i == 1 ? "b due 0 y c due 0 z " : "b leased 0 y ");
}

static void defer_long(const char *id)
{
	static char payload[30001];

	memset(payload, 'p', sizeof(payload) - 1);
	ck_assert_int_eq(defer("q", id, payload), 'D');
}

/* A new file has its name once all is in it. The log had the last job alone. */
LOOP_TEST(on_a_full_device_a_lost_file_leaves_the_one_that_is_there_to_the_next_run, 2 * WAYS)
{
	unsigned how = (unsigned)_i / 2;
	char id[16];

	for (unsigned i = 0; i < 5; i++) {
		snprintf(id, sizeof(id), "id%u", i);
		defer_long(id);
	}
	home_run_again();
	defer_long("last");
	lose_file((int)how);
	files_may_have(_i % 2 ? 100 : 100000); /* a table without rows has room */
	for (unsigned i = 0; i < 3; i++) {
		memory_look(home_run.memory);
		ck_assert_int_eq(home_run.file.error, -EFBIG);
	}
	ck_assert_int_eq(home_run.file.lost, how == REMOVED ? -EIDRM : how == CUT ? -ENODATA : -ENOLINK);
	ck_assert(!is_there("jobs.db.bad"));
	home_run_kill();
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, how == CUT ? -EBADMSG : 0);
	ck_assert_uint_eq(home_run.found.jobs, how == CUT || how == REMOVED ? 0 : 5);
}

TEST(what_is_set_aside_replaces_nothing_before_there_is_a_new_file)
{
	defer_long("a");
	home_run_again();
	lose_file(CUT);
	files_may_have(100);
	memory_look(home_run.memory);
	ck_assert(!home_run.file.aside && home_run.file.failed);
	files_may_have(RLIM_INFINITY);
	memory_look(home_run.memory);
	ck_assert(home_run.file.aside && !home_run.file.failed);
	ck_assert(is_there("jobs.db.bad") && !is_there("jobs.db.new"));
}

/* It was never in the file that is there: that one is whole. */
LOOP_TEST(what_a_killed_run_had_begun_is_removed, 2)
{
	if (_i)
		defer("q", "a", "x");
	home_run_write();
	home_run_kill();
	put_file("jobs.db.new", "x");
	home_run_begin();
	ck_assert(!is_there("jobs.db.new"));
	ck_assert_uint_eq(home_run.found.jobs, (size_t)_i);
}

/* SQLite would take it for the log of the new one. */
TEST(a_log_that_an_earlier_file_left_is_none_of_a_new_one)
{
	static char log[1 << 17];
	size_t n;

	defer("q", "a", "x");
	home_run_write();
	n = read_file("jobs.db-wal", log, sizeof(log));
	home_run_kill();
	ck_assert_int_eq(unlink(home_run_path("jobs.db")), 0);
	file_goes_back("jobs.db-wal", log, n);
	home_run_begin();
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
}

TEST(a_file_that_is_damaged_is_set_aside)
{
	defer("q", "a", "x");
	home_run_again();
	home_run_kill();
	put_file("jobs.db", "this is no database, and never was one: it has no header of SQLite at its beginning, which has 100 bytes");
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, -EBADMSG);
	ck_assert(!home_run.found.stays);
	ck_assert(is_there("jobs.db.bad") && !is_there("jobs.db"));
	ck_assert_int_eq(defer("q", "b", "y"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "b due 0 y ");
}

static void execute(const char *text)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(home_run_path("jobs.db"), &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

LOOP_TEST(rows_that_no_job_can_have_are_damage, 4)
{
	static const char *const text[] = {"UPDATE job SET kind = 3", "UPDATE job SET number = -1 WHERE id = 'a'", "UPDATE job SET id = 'a'",
	                                   "UPDATE job SET payload = zeroblob(40000)"};

	defer("q", "a", "x");
	defer("q", "b", "y");
	home_run_write();
	home_run_kill();
	execute(text[_i]);
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, -EBADMSG);
	ck_assert_str_eq(jobs_shown("q"), "");
	ck_assert_int_eq(home_run_ask("q", "j", "queues", "0", NULL), 'T');
	ck_assert(span_equal(home_run.answer.found, SPAN("2:-1")));
	ck_assert(is_there("jobs.db.bad"));
}

TEST(a_file_of_a_later_version_stays)
{
	defer("q", "a", "x");
	home_run_write();
	home_run_kill();
	execute("PRAGMA user_version = 2");
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, -EPROTO);
	ck_assert(home_run.found.stays && is_there("jobs.db"));
}

/* No table of ours is added to it, and it is not made one with a log. */
LOOP_TEST(a_database_of_another_program_stays_as_it_is, 3)
{
	static char before[1 << 16], after[1 << 16];
	char text[80];
	size_t n;

	snprintf(text, sizeof(text), "CREATE TABLE theirs (x); PRAGMA user_version = %d", _i);
	home_run_kill();
	execute(text);
	n = read_file("jobs.db", before, sizeof(before));
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, _i == 2 ? -EPROTO : -EMEDIUMTYPE);
	ck_assert(home_run.found.stays && !is_there("jobs.db.bad"));
	home_run_kill();
	ck_assert_uint_eq(read_file("jobs.db", after, sizeof(after)), n);
	ck_assert_int_eq(memcmp(before, after, n), 0);
	home_run_begin();
}

/* No run leaves such a file: somebody has cut it, or has put it there. Its log may have the jobs. */
LOOP_TEST(a_file_without_a_table_is_damaged, 2)
{
	home_run_kill();
	if (_i) {
		execute("VACUUM");
	} else {
		put_file("jobs.db", "");
		put_file("jobs.db-wal", "log");
	}
	home_run_begin();
	ck_assert_int_eq(home_run.found.error, -EBADMSG);
	ck_assert(!home_run.found.stays && is_there("jobs.db.bad") && (_i || is_there("jobs.db.bad-wal")));
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x ");
}

TEST(two_daemons_do_not_share_a_file)
{
	struct job_file other;
	struct job_store store;
	struct ledger ledger;
	struct jobs_found found;
	const uint64_t seed[2] = {1, 2};

	defer("q", "a", "x");
	home_run_write();
	ledger_init(&ledger, seed);
	job_store_init(&store, seed, &ledger);
	job_file_init(&other, home_run.dir, home_run.dir);
	jobs_restore(&store, &other, 0, &found);
	ck_assert_int_eq(found.error, -EBUSY);
	ck_assert(found.stays);
	job_store_release(&store);
	ledger_release(&ledger);
	job_file_close(&other);
}

/* Its jobs would be overwritten. */
TEST(a_file_that_appears_meanwhile_is_not_touched)
{
	char there[128];

	defer("q", "a", "x");
	home_run_again();
	snprintf(there, sizeof(there), "%s", home_run_path("aside"));
	home_run_kill();
	ck_assert_int_eq(rename(home_run_path("jobs.db"), there), 0);
	home_run_begin();
	ck_assert_int_eq(rename(there, home_run_path("jobs.db")), 0);
	refused(defer("q", "b", "y"), "somebody has put a jobs.db there: restart redlockd, which reads it then");
	home_run_again();
	ck_assert_str_eq(jobs_shown("q"), "a due 0 x ");
}

/* Its jobs would be lost, or come back. */
TEST(while_the_file_of_an_earlier_build_is_there_jobs_are_refused)
{
	static const char why[] = "an earlier redlockd has left the file jobs in runtime_dir: let that one end its jobs, then remove the file";

	put_file("jobs", "redlockQ");
	home_run_again();
	ck_assert_int_eq(home_run.file.error, JOBS_FORMER);
	refused(defer("q", "a", "x"), why);
	ck_assert_int_eq(home_run.file.error, JOBS_FORMER);
	ck_assert_int_eq(unlink(home_run_path("jobs")), 0);
	ck_assert_int_eq(defer("q", "a", "x"), 'D');
	ck_assert_int_eq(home_run.file.error, 0);
}
