/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/files/journal.c: another process goes on with the file, and a run after both reads all that they wrote. */
#include "tests/fixture/files.h"
#include "tests/fixture/journal_run.h"

#include <check.h>
#include <stdio.h>
#include <unistd.h>

/* The journal of the run goes on as the next process has it. */
static void goes_on(void)
{
	struct journal_mark mark;
	int fd;

	journal_pack(&journal_run.j, &mark, &fd);
	journal_close(&journal_run.j);
	ck_assert_int_eq(journal_unpack(&journal_run.j, journal_run.dir, JOURNAL_RUN_BOOT, &mark, fd), 0);
}

FIXTURE(.setup = journal_runs_start, .teardown = journal_runs_stop)

TEST(the_next_process_appends_to_the_file)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("one");
	goes_on();
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_write("two");
	goes_on();
	journal_run_write("three");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one|two|three|");
}

TEST(a_journal_without_a_file_begins_one)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	goes_on();
	ck_assert_int_eq(journal_run_size(), -1);
	journal_run_write("one");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one|");
}

TEST(the_next_snapshot_is_due_when_it_was_due)
{
	static char record[JOURNAL_SNAPSHOT / 4];

	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_snapshot("live");
	for (int i = 0; i < 3; i++) {
		journal_add(&journal_run.j, (struct span){record, sizeof(record)});
		journal_write(&journal_run.j, journal_run.now);
		goes_on();
		ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	}
	journal_add(&journal_run.j, (struct span){record, sizeof(record)});
	journal_write(&journal_run.j, journal_run.now);
	goes_on();
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_snapshot("live");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "live|");
}

/* A file that lacks a record may not stay: a snapshot takes its place before anything is appended. */
TEST(a_file_that_got_lost_on_the_way_is_made_anew)
{
	struct journal_mark mark;
	bool usable;
	int fd;

	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("one");
	journal_pack(&journal_run.j, &mark, &fd);
	close(fd);
	journal_close(&journal_run.j);
	ck_assert_int_eq(journal_unpack(&journal_run.j, journal_run.dir, JOURNAL_RUN_BOOT, &mark, -1), 0);
	journal_run_write("two");
	ck_assert(journal_has_turned(&journal_run.j, &usable));
	ck_assert(!usable);
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_snapshot("one and two");
	ck_assert(journal_has_turned(&journal_run.j, &usable));
	ck_assert(usable);
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one and two|");
}
