/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/journal.c: a file that grows is replaced by a snapshot, and one that says less than the truth goes. */
#include "tests/unit/past.h"

#include <check.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- snapshots ---------------------------------------------------------------------------------------------------------- */

static void grow(size_t bytes)
{
	static char block[4096];

	for (size_t n = 0; n < bytes; n += sizeof(block)) {
		journal_add(&past.j, (struct span){block, sizeof(block)});
		journal_write(&past.j, past.now);
	}
}

START_TEST(a_file_that_has_grown_to_several_times_its_snapshot_is_replaced)
{
	past_life(PAST_BOOT);
	grow(JOURNAL_SNAPSHOT / 2);
	ck_assert(!journal_wants_snapshot(&past.j, past.now));
	grow(JOURNAL_SNAPSHOT / 2);
	ck_assert(journal_wants_snapshot(&past.j, past.now));
	past_add("not written, and part of what the snapshot tells");
	past_snapshot("all");
	ck_assert_int_eq(past_size(), PAST_HEADER + PAST_FRAME + 3);
	ck_assert(!journal_wants_snapshot(&past.j, past.now));
	past_write("more");
	journal_close(&past.j);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), "all|more|");
}
END_TEST

START_TEST(a_large_snapshot_is_not_taken_again_before_as_much_was_added_several_times)
{
	past_life(PAST_BOOT);
	journal_begin(&past.j);
	grow(0);
	for (int i = 0; i < 1000; i++)
		journal_add(&past.j, (struct span){past.path, sizeof(past.path)});
	for (int i = 0; i < 10; i++)
		journal_add(&past.j, (struct span){(char[60000]){0}, 60000});
	journal_end(&past.j, past.now);
	grow(3 * 700000 - 20000);
	ck_assert(!journal_wants_snapshot(&past.j, past.now));
	grow(100000);
	ck_assert(journal_wants_snapshot(&past.j, past.now));
	journal_close(&past.j);
}
END_TEST

/* A larger file than the next life reads is worth nothing: it is made shorter in time, or given up. */
START_TEST(a_file_never_grows_beyond_what_the_next_life_reads)
{
	size_t most = 4 * JOURNAL_SNAPSHOT;

	past_life(PAST_BOOT);
	past.j.most = most;
	journal_begin(&past.j);
	grow(3 * JOURNAL_SNAPSHOT); /* what is live is more than a quarter of it */
	journal_end(&past.j, past.now);
	while (!journal_wants_snapshot(&past.j, past.now)) {
		grow(4096);
		ck_assert_uint_lt(past.j.size, most);
	}
	ck_assert(!past.j.unusable);
	past_snapshot("all");
	ck_assert(!journal_wants_snapshot(&past.j, past.now));
	journal_close(&past.j);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), "all|");
}
END_TEST

START_TEST(a_file_that_would_be_too_large_for_the_next_life_is_given_up)
{
	bool usable;

	past_life(PAST_BOOT);
	past.j.most = PAST_HEADER + PAST_FRAME + 8;
	past_write("one");
	past_write("two");
	ck_assert(journal_has_turned(&past.j, &usable));
	ck_assert(!usable);
	ck_assert_int_eq(past_size(), -1);
	journal_close(&past.j);
}
END_TEST

START_TEST(a_snapshot_of_nothing_takes_the_file_away)
{
	past_life(PAST_BOOT);
	past_write("one");
	past_snapshot(NULL);
	ck_assert_int_eq(past_size(), -1);
	past_write("two");
	journal_close(&past.j);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), "two|");
}
END_TEST

START_TEST(a_snapshot_that_cannot_be_written_leaves_the_file_as_good_as_it_was)
{
	bool usable;

	past_life(PAST_BOOT);
	grow(JOURNAL_SNAPSHOT);
	ck_assert_int_eq(mkdir(past.temp, 0700), 0);
	past_add("last");
	past_snapshot("all");
	ck_assert(!journal_has_turned(&past.j, &usable));
	ck_assert(!journal_wants_snapshot(&past.j, past.now));
	journal_write(&past.j, past.now);
	ck_assert_int_eq(rmdir(past.temp), 0);
	ck_assert_int_gt(past_size(), (off_t)JOURNAL_SNAPSHOT);
	grow(JOURNAL_SNAPSHOT);
	ck_assert(journal_wants_snapshot(&past.j, past.now));
	past_snapshot("all");
	journal_close(&past.j);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), "all|");
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

	ck_assert(journal_has_turned(&past.j, &usable));
	ck_assert(usable == to_usable);
	ck_assert(!journal_has_turned(&past.j, &usable));
}

START_TEST(a_device_that_ends_in_a_record_leaves_nothing_to_believe)
{
	for (rlim_t room = 0; room < PAST_FRAME + 3; room++) {
		past_life(PAST_BOOT);
		past_write("one");
		device_ends_at(PAST_HEADER + PAST_FRAME + 3 + room);
		past_write("two");
		turned(false);
		ck_assert_int_eq(past_size(), -1);
		device_ends_at(RLIM_INFINITY);
		journal_close(&past.j);
		ck_assert_str_eq(next_life_reads(PAST_BOOT), "");
	}
}
END_TEST

START_TEST(a_device_that_is_full_from_the_start_leaves_no_file)
{
	for (rlim_t room = 0; room < PAST_HEADER + PAST_FRAME; room += 8) {
		past_life(PAST_BOOT);
		device_ends_at(room);
		past_write("one");
		turned(false);
		device_ends_at(RLIM_INFINITY);
		ck_assert_int_eq(past_size(), -1);
		journal_close(&past.j);
	}
}
END_TEST

START_TEST(what_is_unusable_is_tried_again_with_growing_pauses_and_comes_back_with_a_snapshot)
{
	int64_t pause = JOURNAL_PAUSE_US;

	past_life(PAST_BOOT);
	device_ends_at(50);
	past_write("one");
	turned(false);
	past_write("dropped");
	for (int i = 0; i < 7; i++) {
		ck_assert(!journal_wants_snapshot(&past.j, instant_add(past.now, pause - 1)));
		past.now = instant_add(past.now, pause);
		ck_assert(journal_wants_snapshot(&past.j, past.now));
		past_snapshot("one");
		ck_assert_int_eq(past_size(), -1);
		pause = 2 * pause < JOURNAL_PAUSE_MAX_US ? 2 * pause : JOURNAL_PAUSE_MAX_US;
	}
	device_ends_at(RLIM_INFINITY);
	past.now = instant_add(past.now, pause);
	past_snapshot("one");
	turned(true);
	past_write("two");
	journal_close(&past.j);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), "one|two|");
}
END_TEST

START_TEST(that_it_works_again_is_found_out_with_nothing_to_write_too)
{
	bool usable;

	past_life(PAST_BOOT);
	device_ends_at(50);
	past_write("one");
	turned(false);
	past_snapshot(NULL);
	ck_assert(!journal_has_turned(&past.j, &usable));
	device_ends_at(RLIM_INFINITY);
	past_snapshot(NULL);
	turned(true);
	ck_assert_int_eq(past_size(), -1);
	journal_close(&past.j);
}
END_TEST

/* root may write everywhere */
static void become_nobody(void)
{
	if (geteuid() == 0)
		ck_assert(chown(past.dir, 65534, 65534) == 0 && (access(past.path, F_OK) || chown(past.path, 65534, 65534) == 0) && seteuid(65534) == 0);
}

START_TEST(in_a_folder_where_nothing_can_be_removed_the_file_is_emptied)
{
	become_nobody();
	past_life(PAST_BOOT);
	past_write("one");
	ck_assert_int_eq(chmod(past.dir, 0500), 0);
	device_ends_at(PAST_HEADER + PAST_FRAME + 10);
	past_write("two");
	turned(false);
	ck_assert_int_eq(past_size(), 0);
	journal_close(&past.j);
	device_ends_at(RLIM_INFINITY);
	ck_assert_int_eq(chmod(past.dir, 0700), 0);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), "");
	ck_assert_int_eq(unlink(past.bad), 0);
	ck_assert_int_eq(seteuid(getuid()), 0);
}
END_TEST

START_TEST(in_a_folder_that_cannot_be_written_records_are_read_and_none_is_added)
{
	past_write_three();
	become_nobody();
	ck_assert_int_eq(chmod(past.dir, 0500), 0);
	past_life(PAST_BOOT);
	ck_assert_str_eq(past_read(), "one||three|");
	past_snapshot("all");
	turned(false);
	journal_close(&past.j);
	ck_assert_int_eq(chmod(past.dir, 0700), 0);
	ck_assert_str_eq(next_life_reads(PAST_BOOT), ""); /* it was emptied: nobody would have told it of what comes past.now */
	ck_assert_int_eq(seteuid(getuid()), 0);
}
END_TEST

Suite *journal_disk_suite(void)
{
	Suite *s = suite_create("journal_disk");
	TCase *c = tcase_create("disk");

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, past_start, past_stop);
	tcase_add_test(c, a_file_that_has_grown_to_several_times_its_snapshot_is_replaced);
	tcase_add_test(c, a_large_snapshot_is_not_taken_again_before_as_much_was_added_several_times);
	tcase_add_test(c, a_file_never_grows_beyond_what_the_next_life_reads);
	tcase_add_test(c, a_file_that_would_be_too_large_for_the_next_life_is_given_up);
	tcase_add_test(c, a_snapshot_of_nothing_takes_the_file_away);
	tcase_add_test(c, a_snapshot_that_cannot_be_written_leaves_the_file_as_good_as_it_was);
	tcase_add_test(c, a_device_that_ends_in_a_record_leaves_nothing_to_believe);
	tcase_add_test(c, a_device_that_is_full_from_the_start_leaves_no_file);
	tcase_add_test(c, what_is_unusable_is_tried_again_with_growing_pauses_and_comes_back_with_a_snapshot);
	tcase_add_test(c, that_it_works_again_is_found_out_with_nothing_to_write_too);
	tcase_add_test(c, in_a_folder_where_nothing_can_be_removed_the_file_is_emptied);
	tcase_add_test(c, in_a_folder_that_cannot_be_written_records_are_read_and_none_is_added);
	suite_add_tcase(s, c);
	return s;
}
