/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/files/journal.c: the next run reads what was written, and nothing else. */
#include "tests/fixture/files.h"
#include "tests/fixture/journal_run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

FIXTURE(.setup = journal_runs_start, .teardown = journal_runs_stop, .seconds = 60)

TEST(as_long_as_nothing_is_added_there_is_no_file)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	ck_assert_str_eq(journal_run_read(), "");
	journal_write(&journal_run.j, journal_run.now);
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	ck_assert_int_eq(journal_run_size(), -1);
	journal_close(&journal_run.j);
}

TEST(written_records_are_read_back_in_order)
{
	struct stat st;

	journal_run_write_three();
	ck_assert_int_eq(stat(journal_run.path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, JOURNAL_RUN_HEADER + 3 * JOURNAL_RUN_FRAME + 8);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one||three|");
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one||three|");
}

TEST(records_are_bytes_of_any_number)
{
	static char bytes[300000];
	struct span record;
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * i >> 3);
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_add(&journal_run.j, (struct span){bytes, sizeof(bytes)});
	journal_add(&journal_run.j, (struct span){bytes + 5, 1000});
	journal_write(&journal_run.j, journal_run.now);
	journal_close(&journal_run.j);
	journal_run_begin(JOURNAL_RUN_BOOT);
	ck_assert(journal_next(&journal_run.j, &record) && span_equal(record, (struct span){bytes, sizeof(bytes)}));
	ck_assert(journal_next(&journal_run.j, &record) && span_equal(record, (struct span){bytes + 5, 1000}));
	ck_assert(!journal_next(&journal_run.j, &record));
	journal_close(&journal_run.j);
}

TEST(records_that_were_not_written_are_not_there)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("one");
	journal_run_add("two");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one|");
}

TEST(a_file_torn_at_any_byte_ends_with_its_last_whole_record)
{
	static const struct {
		off_t n;
		const char *text;
	} part[] = {{JOURNAL_RUN_FRAME + 3, ""}, {2 * JOURNAL_RUN_FRAME + 3, "one|"}, {3 * JOURNAL_RUN_FRAME + 8, "one||"},
		    {3 * JOURNAL_RUN_FRAME + 9, "one||three|"}};
	off_t n;
	size_t i;

	for (n = 0; n <= 3 * JOURNAL_RUN_FRAME + 8; n++) {
		journal_run_write_three();
		ck_assert_int_eq(truncate(journal_run.path, JOURNAL_RUN_HEADER + n), 0);
		for (i = 0; n >= part[i].n; i++)
			;
		ck_assert_msg(strcmp(next_run_reads(JOURNAL_RUN_BOOT), part[i].text) == 0, "%d bytes of records", (int)n);
		unlink(journal_run.path);
	}
	for (n = 0; n < JOURNAL_RUN_HEADER; n++) {
		journal_run_write_three();
		ck_assert_int_eq(truncate(journal_run.path, n), 0);
		ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
		ck_assert_int_eq(unlink(journal_run.bad), 0); /* moved aside */
	}
}

TEST(after_a_torn_record_the_next_run_goes_on_with_a_file_of_its_own)
{
	journal_run_write_three();
	ck_assert_int_eq(truncate(journal_run.path, journal_run_size() - 1), 0);
	journal_run_begin(JOURNAL_RUN_BOOT);
	ck_assert_str_eq(journal_run_read(), "one||");
	journal_run_add("restored");
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_snapshot("one and restored");
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_write("four");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one and restored|four|");
}

/* An unreadable record may have released a lock. */
TEST(nothing_is_believed_of_a_file_with_a_flipped_bit)
{
	off_t bit, end;

	journal_run_write_three();
	end = 8 * journal_run_size();
	for (bit = 0; bit < end; bit++) {
		file_flip(journal_run.path, bit);
		ck_assert_msg(strcmp(next_run_reads(JOURNAL_RUN_BOOT), "") == 0, "bit %d of byte %d", (int)(bit % 8), (int)(bit / 8));
		if (rename(journal_run.bad, journal_run.path) < 0) /* of another boot: removed */
			journal_run_write_three();
		else
			file_flip(journal_run.path, bit);
	}
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one||three|");
}

TEST(a_file_of_another_boot_goes)
{
	static const char *const other[] = {"bbbbbbbb-1111", "", "aaaaaaaa-00000"};

	for (size_t i = 0; i < 3; i++) {
		journal_run_write_three();
		ck_assert_str_eq(next_run_reads(other[i]), "");
		ck_assert_int_eq(journal_run_size(), -1);
	}
	journal_run_write_three();
	journal_run.now.us -= 1; /* the file is newer than this clock */
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
	ck_assert_int_eq(journal_run_size(), -1);
}

TEST(a_file_that_is_no_journal_is_moved_aside)
{
	journal_run_write_three();
	file_flip(journal_run.path, 8 * 8);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), ""); /* another version */
	ck_assert_int_eq(journal_run_size(), -1);
	ck_assert_int_eq(unlink(journal_run.bad), 0);
	ck_assert_int_eq(mkfifo(journal_run.path, 0600), 0);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
	ck_assert_int_eq(unlink(journal_run.bad), 0);
	ck_assert_int_eq(symlink("/dev/zero", journal_run.path), 0);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
	ck_assert_int_eq(unlink(journal_run.bad), 0);
	close(open(journal_run.path, O_WRONLY | O_CREAT, 0600));
	ck_assert_int_eq(truncate(journal_run.path, (off_t)JOURNAL_FILE_MAX + 1), 0);
	journal_run_begin(JOURNAL_RUN_BOOT);
	ck_assert_str_eq(journal_run_read(), "");
	journal_run_write("a"); /* the way is free */
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "a|");
}

TEST(a_folder_that_is_not_there_is_an_error)
{
	ck_assert_int_eq(journal_open(&journal_run.j, "/nonexistent", JOURNAL_RUN_BOOT, journal_run.now), -ENOENT);
	journal_close(&journal_run.j);
}
