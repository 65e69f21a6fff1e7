/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/journal.c: what was written is read again by the next life, nothing else is, and a file that says less than the truth goes. */
#include "daemon/base/log.h"
#include "daemon/journal.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT   "aaaaaaaa-0000"
#define HEADER 96
#define FRAME  16

static char dir[64], path[96], bad[96], temp[96];
static struct instant now;
static struct journal j;

static void folder_start(void)
{
	strcpy(dir, "/tmp/journal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/journal", dir);
	snprintf(bad, sizeof(bad), "%s/journal.bad", dir);
	snprintf(temp, sizeof(temp), "%s/journal.new", dir);
	now = (struct instant){1000 * SEC};
	log_set_level(LOG_ERROR);
}

static void folder_stop(void)
{
	chmod(dir, 0700);
	unlink(path);
	unlink(bad);
	ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left behind */
}

static void life(const char *boot)
{
	ck_assert_int_eq(journal_open(&j, dir, boot, now), 0);
}

static void add(const char *text)
{
	journal_add(&j, span_of(text));
}

/* All records, joined by '|'. */
static const char *read_all(void)
{
	static char text[4096];
	struct span record;
	size_t n = 0;

	while (journal_next(&j, &record)) {
		memcpy(text + n, record.p, record.n);
		n += record.n;
		text[n++] = '|';
	}
	text[n] = '\0';
	journal_forget(&j);
	return text;
}

static const char *next_reads(const char *boot)
{
	const char *text;

	life(boot);
	text = read_all();
	journal_close(&j);
	return text;
}

static off_t file_size(void)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}

/* Three records in two passes: "one" and "three" of theirs, and an empty one. */
static void write_three(void)
{
	life(BOOT);
	add("one");
	add("");
	journal_write(&j, now);
	add("three");
	journal_write(&j, now);
	journal_close(&j);
}

static void snapshot(const char *text)
{
	journal_begin(&j);
	if (text)
		add(text);
	journal_end(&j, now);
}

/* --- what the next life reads ------------------------------------------------------------------------------------------- */

START_TEST(as_long_as_nothing_is_added_there_is_no_file)
{
	life(BOOT);
	ck_assert_str_eq(read_all(), "");
	journal_write(&j, now);
	ck_assert(!journal_wants_snapshot(&j, now));
	ck_assert_int_eq(file_size(), -1);
	journal_close(&j);
}
END_TEST

START_TEST(what_was_written_is_read_again_in_order)
{
	struct stat st;

	write_three();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, HEADER + 3 * FRAME + 8);
	ck_assert_str_eq(next_reads(BOOT), "one||three|");
	ck_assert_str_eq(next_reads(BOOT), "one||three|");
}
END_TEST

START_TEST(records_are_bytes_of_any_number)
{
	static char bytes[300000];
	struct span record;
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * i >> 3);
	life(BOOT);
	journal_add(&j, (struct span){bytes, sizeof(bytes)});
	journal_add(&j, (struct span){bytes + 5, 1000});
	journal_write(&j, now);
	journal_close(&j);
	life(BOOT);
	ck_assert(journal_next(&j, &record) && span_equal(record, (struct span){bytes, sizeof(bytes)}));
	ck_assert(journal_next(&j, &record) && span_equal(record, (struct span){bytes + 5, 1000}));
	ck_assert(!journal_next(&j, &record));
	journal_close(&j);
}
END_TEST

START_TEST(what_was_not_written_is_not_there)
{
	life(BOOT);
	add("one");
	journal_write(&j, now);
	add("two");
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "one|");
}
END_TEST

START_TEST(a_file_torn_at_any_byte_ends_with_its_last_whole_record)
{
	static const struct {
		off_t n;
		const char *text;
	} part[] = {{FRAME + 3, ""}, {2 * FRAME + 3, "one|"}, {3 * FRAME + 8, "one||"}, {3 * FRAME + 9, "one||three|"}};
	off_t n;
	size_t i;

	for (n = 0; n <= 3 * FRAME + 8; n++) {
		write_three();
		ck_assert_int_eq(truncate(path, HEADER + n), 0);
		for (i = 0; n >= part[i].n; i++)
			;
		ck_assert_msg(strcmp(next_reads(BOOT), part[i].text) == 0, "%d bytes of records", (int)n);
		unlink(path);
	}
	for (n = 0; n < HEADER; n++) {
		write_three();
		ck_assert_int_eq(truncate(path, n), 0);
		ck_assert_str_eq(next_reads(BOOT), "");
		ck_assert_int_eq(unlink(bad), 0); /* moved aside */
	}
}
END_TEST

START_TEST(after_a_torn_record_the_next_life_goes_on_with_a_file_of_its_own)
{
	write_three();
	ck_assert_int_eq(truncate(path, file_size() - 1), 0);
	life(BOOT);
	ck_assert_str_eq(read_all(), "one||");
	add("restored");
	ck_assert(journal_wants_snapshot(&j, now));
	snapshot("one and restored");
	ck_assert(!journal_wants_snapshot(&j, now));
	add("four");
	journal_write(&j, now);
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "one and restored|four|");
}
END_TEST

static void file_flip(off_t bit)
{
	int fd = open(path, O_RDWR);
	char byte;

	ck_assert_int_eq(pread(fd, &byte, 1, bit / 8), 1);
	byte = (char)(byte ^ 1 << bit % 8);
	ck_assert_int_eq(pwrite(fd, &byte, 1, bit / 8), 1);
	close(fd);
}

/* A record that cannot be read may have said that a lock is free. */
START_TEST(nothing_is_believed_of_a_file_with_a_flipped_bit)
{
	off_t bit, end;

	write_three();
	end = 8 * file_size();
	for (bit = 0; bit < end; bit++) {
		file_flip(bit);
		ck_assert_msg(strcmp(next_reads(BOOT), "") == 0, "bit %d of byte %d", (int)(bit % 8), (int)(bit / 8));
		if (rename(bad, path) < 0) /* of another boot: removed */
			write_three();
		else
			file_flip(bit);
	}
	ck_assert_str_eq(next_reads(BOOT), "one||three|");
}
END_TEST

START_TEST(a_file_of_another_boot_goes)
{
	static const char *const other[] = {"bbbbbbbb-1111", "", "aaaaaaaa-00000"};

	for (size_t i = 0; i < 3; i++) {
		write_three();
		ck_assert_str_eq(next_reads(other[i]), "");
		ck_assert_int_eq(file_size(), -1);
	}
	write_three();
	now.us -= 1; /* this clock did not make it */
	ck_assert_str_eq(next_reads(BOOT), "");
	ck_assert_int_eq(file_size(), -1);
}
END_TEST

START_TEST(what_is_no_journal_is_moved_aside)
{
	write_three();
	file_flip(8 * 8);
	ck_assert_str_eq(next_reads(BOOT), ""); /* another version */
	ck_assert_int_eq(file_size(), -1);
	ck_assert_int_eq(unlink(bad), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_str_eq(next_reads(BOOT), "");
	ck_assert_int_eq(unlink(bad), 0);
	ck_assert_int_eq(symlink("/dev/zero", path), 0);
	ck_assert_str_eq(next_reads(BOOT), "");
	ck_assert_int_eq(unlink(bad), 0);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	ck_assert_int_eq(truncate(path, (off_t)JOURNAL_FILE_MAX + 1), 0);
	life(BOOT);
	ck_assert_str_eq(read_all(), "");
	add("a");
	journal_write(&j, now); /* the way is free */
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "a|");
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_an_error)
{
	ck_assert_int_eq(journal_open(&j, "/nonexistent", BOOT, now), -ENOENT);
	journal_close(&j);
}
END_TEST

/* --- snapshots ---------------------------------------------------------------------------------------------------------- */

static void grow(size_t bytes)
{
	static char block[4096];

	for (size_t n = 0; n < bytes; n += sizeof(block)) {
		journal_add(&j, (struct span){block, sizeof(block)});
		journal_write(&j, now);
	}
}

START_TEST(a_file_that_has_grown_to_several_times_its_snapshot_is_replaced)
{
	life(BOOT);
	grow(JOURNAL_SNAPSHOT / 2);
	ck_assert(!journal_wants_snapshot(&j, now));
	grow(JOURNAL_SNAPSHOT / 2);
	ck_assert(journal_wants_snapshot(&j, now));
	add("not written, and part of what the snapshot tells");
	snapshot("all");
	ck_assert_int_eq(file_size(), HEADER + FRAME + 3);
	ck_assert(!journal_wants_snapshot(&j, now));
	add("more");
	journal_write(&j, now);
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "all|more|");
}
END_TEST

START_TEST(a_large_snapshot_is_not_taken_again_before_as_much_was_added_several_times)
{
	life(BOOT);
	journal_begin(&j);
	grow(0);
	for (int i = 0; i < 1000; i++)
		journal_add(&j, (struct span){path, sizeof(path)});
	for (int i = 0; i < 10; i++)
		journal_add(&j, (struct span){(char[60000]){0}, 60000});
	journal_end(&j, now);
	grow(3 * 700000 - 20000);
	ck_assert(!journal_wants_snapshot(&j, now));
	grow(100000);
	ck_assert(journal_wants_snapshot(&j, now));
	journal_close(&j);
}
END_TEST

START_TEST(a_snapshot_of_nothing_takes_the_file_away)
{
	life(BOOT);
	add("one");
	journal_write(&j, now);
	snapshot(NULL);
	ck_assert_int_eq(file_size(), -1);
	add("two");
	journal_write(&j, now);
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "two|");
}
END_TEST

START_TEST(a_snapshot_that_cannot_be_written_leaves_the_file_as_good_as_it_was)
{
	bool usable;

	life(BOOT);
	grow(JOURNAL_SNAPSHOT);
	ck_assert_int_eq(mkdir(temp, 0700), 0);
	add("last");
	snapshot("all");
	ck_assert(!journal_has_turned(&j, &usable));
	ck_assert(!journal_wants_snapshot(&j, now));
	journal_write(&j, now);
	ck_assert_int_eq(rmdir(temp), 0);
	ck_assert_int_gt(file_size(), (off_t)JOURNAL_SNAPSHOT);
	grow(JOURNAL_SNAPSHOT);
	ck_assert(journal_wants_snapshot(&j, now));
	snapshot("all");
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "all|");
}
END_TEST

/* --- devices that do not write ------------------------------------------------------------------------------------------ */

static void device_ends_at(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void turned(bool to_usable)
{
	bool usable = !to_usable;

	ck_assert(journal_has_turned(&j, &usable));
	ck_assert(usable == to_usable);
	ck_assert(!journal_has_turned(&j, &usable));
}

START_TEST(a_device_that_ends_in_a_record_leaves_nothing_to_believe)
{
	for (rlim_t room = 0; room < FRAME + 3; room++) {
		life(BOOT);
		add("one");
		journal_write(&j, now);
		device_ends_at(HEADER + FRAME + 3 + room);
		add("two");
		journal_write(&j, now);
		turned(false);
		ck_assert_int_eq(file_size(), -1);
		device_ends_at(RLIM_INFINITY);
		journal_close(&j);
		ck_assert_str_eq(next_reads(BOOT), "");
	}
}
END_TEST

START_TEST(a_device_that_is_full_from_the_start_leaves_no_file)
{
	for (rlim_t room = 0; room < HEADER + FRAME; room += 8) {
		life(BOOT);
		device_ends_at(room);
		add("one");
		journal_write(&j, now);
		turned(false);
		device_ends_at(RLIM_INFINITY);
		ck_assert_int_eq(file_size(), -1);
		journal_close(&j);
	}
}
END_TEST

START_TEST(what_is_unusable_is_tried_again_with_growing_pauses_and_comes_back_with_a_snapshot)
{
	int64_t pause = JOURNAL_PAUSE_US;

	life(BOOT);
	device_ends_at(50);
	add("one");
	journal_write(&j, now);
	turned(false);
	add("dropped");
	journal_write(&j, now);
	for (int i = 0; i < 7; i++) {
		ck_assert(!journal_wants_snapshot(&j, instant_add(now, pause - 1)));
		now = instant_add(now, pause);
		ck_assert(journal_wants_snapshot(&j, now));
		snapshot("one");
		ck_assert_int_eq(file_size(), -1);
		pause = 2 * pause < JOURNAL_PAUSE_MAX_US ? 2 * pause : JOURNAL_PAUSE_MAX_US;
	}
	device_ends_at(RLIM_INFINITY);
	now = instant_add(now, pause);
	snapshot("one");
	turned(true);
	add("two");
	journal_write(&j, now);
	journal_close(&j);
	ck_assert_str_eq(next_reads(BOOT), "one|two|");
}
END_TEST

START_TEST(that_it_works_again_is_found_out_with_nothing_to_write_too)
{
	bool usable;

	life(BOOT);
	device_ends_at(50);
	add("one");
	journal_write(&j, now);
	turned(false);
	snapshot(NULL);
	ck_assert(!journal_has_turned(&j, &usable));
	device_ends_at(RLIM_INFINITY);
	snapshot(NULL);
	turned(true);
	ck_assert_int_eq(file_size(), -1);
	journal_close(&j);
}
END_TEST

/* root may write everywhere */
static void become_nobody(void)
{
	if (geteuid() == 0)
		ck_assert(chown(dir, 65534, 65534) == 0 && (access(path, F_OK) || chown(path, 65534, 65534) == 0) && seteuid(65534) == 0);
}

START_TEST(in_a_folder_where_nothing_can_be_removed_the_file_is_emptied)
{
	become_nobody();
	life(BOOT);
	add("one");
	journal_write(&j, now);
	ck_assert_int_eq(chmod(dir, 0500), 0);
	device_ends_at(HEADER + FRAME + 10);
	add("two");
	journal_write(&j, now);
	turned(false);
	ck_assert_int_eq(file_size(), 0);
	journal_close(&j);
	device_ends_at(RLIM_INFINITY);
	ck_assert_int_eq(chmod(dir, 0700), 0);
	ck_assert_str_eq(next_reads(BOOT), "");
	ck_assert_int_eq(unlink(bad), 0);
	ck_assert_int_eq(seteuid(getuid()), 0);
}
END_TEST

START_TEST(in_a_folder_that_cannot_be_written_records_are_read_and_none_is_added)
{
	write_three();
	become_nobody();
	ck_assert_int_eq(chmod(dir, 0500), 0);
	life(BOOT);
	ck_assert_str_eq(read_all(), "one||three|");
	snapshot("all");
	turned(false);
	journal_close(&j);
	ck_assert_int_eq(chmod(dir, 0700), 0);
	ck_assert_str_eq(next_reads(BOOT), ""); /* it was emptied: nobody would have told it of what comes now */
	ck_assert_int_eq(seteuid(getuid()), 0);
}
END_TEST

static TCase *what_is_read(void)
{
	TCase *c = tcase_create("read");

	tcase_add_test(c, as_long_as_nothing_is_added_there_is_no_file);
	tcase_add_test(c, what_was_written_is_read_again_in_order);
	tcase_add_test(c, records_are_bytes_of_any_number);
	tcase_add_test(c, what_was_not_written_is_not_there);
	tcase_add_test(c, a_file_torn_at_any_byte_ends_with_its_last_whole_record);
	tcase_add_test(c, after_a_torn_record_the_next_life_goes_on_with_a_file_of_its_own);
	tcase_add_test(c, nothing_is_believed_of_a_file_with_a_flipped_bit);
	tcase_add_test(c, a_file_of_another_boot_goes);
	tcase_add_test(c, what_is_no_journal_is_moved_aside);
	tcase_add_test(c, a_folder_that_is_not_there_is_an_error);
	return c;
}

static TCase *what_is_written(void)
{
	TCase *c = tcase_create("written");

	tcase_add_test(c, a_file_that_has_grown_to_several_times_its_snapshot_is_replaced);
	tcase_add_test(c, a_large_snapshot_is_not_taken_again_before_as_much_was_added_several_times);
	tcase_add_test(c, a_snapshot_of_nothing_takes_the_file_away);
	tcase_add_test(c, a_snapshot_that_cannot_be_written_leaves_the_file_as_good_as_it_was);
	tcase_add_test(c, a_device_that_ends_in_a_record_leaves_nothing_to_believe);
	tcase_add_test(c, a_device_that_is_full_from_the_start_leaves_no_file);
	tcase_add_test(c, what_is_unusable_is_tried_again_with_growing_pauses_and_comes_back_with_a_snapshot);
	tcase_add_test(c, that_it_works_again_is_found_out_with_nothing_to_write_too);
	tcase_add_test(c, in_a_folder_where_nothing_can_be_removed_the_file_is_emptied);
	tcase_add_test(c, in_a_folder_that_cannot_be_written_records_are_read_and_none_is_added);
	return c;
}

Suite *journal_file_suite(void)
{
	Suite *s = suite_create("journal_file");
	TCase *c[] = {what_is_read(), what_is_written()};

	for (size_t i = 0; i < 2; i++) {
		tcase_set_timeout(c[i], 60);
		tcase_add_checked_fixture(c[i], folder_start, folder_stop);
		suite_add_tcase(s, c[i]);
	}
	return s;
}
