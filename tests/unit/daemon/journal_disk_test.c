/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/files/journal.c: a file that grows is replaced by a snapshot, and a file that may be wrong is removed. */
#include "tests/fixture/files.h"
#include "tests/fixture/journal_run.h"

#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- snapshots ---------------------------------------------------------------------------------------------------------- */

static char block[4096];

static void grow(size_t bytes)
{
	for (size_t n = 0; n < bytes; n += sizeof(block)) {
		journal_add(&journal_run.j, (struct span){block, sizeof(block)});
		journal_write(&journal_run.j, journal_run.now);
	}
}

static void snapshot_grows(size_t bytes)
{
	for (size_t n = 0; n < bytes; n += sizeof(block)) {
		journal_keep(&journal_run.j, (struct span){block, sizeof(block)});
		journal_write(&journal_run.j, journal_run.now);
	}
}

FIXTURE(.setup = journal_runs_start, .teardown = journal_runs_stop, .seconds = 60)

TEST(a_file_that_has_grown_to_several_times_its_snapshot_is_replaced)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	grow(JOURNAL_SNAPSHOT / 2);
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	grow(JOURNAL_SNAPSHOT / 2);
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_add("not written, and part of what the snapshot tells");
	journal_run_snapshot("all");
	ck_assert_int_eq(journal_run_size(), JOURNAL_RUN_HEADER + JOURNAL_RUN_FRAME + 3);
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_write("more");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "all|more|");
}

TEST(a_large_snapshot_is_not_taken_again_before_as_much_was_added_several_times)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_begin(&journal_run.j);
	for (int i = 0; i < 1000; i++)
		journal_keep(&journal_run.j, (struct span){journal_run.path, sizeof(journal_run.path)});
	for (int i = 0; i < 10; i++)
		journal_keep(&journal_run.j, (struct span){(char[60000]){0}, 60000});
	journal_end(&journal_run.j, journal_run.now);
	grow(3 * 700000 - 20000);
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	grow(100000);
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_close(&journal_run.j);
}

/* A file that is larger than the next run reads is worth nothing. It is compacted in time, or given up. */
TEST(a_file_never_grows_beyond_what_the_next_run_reads)
{
	size_t most = 4 * JOURNAL_SNAPSHOT;

	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run.j.most = most;
	journal_begin(&journal_run.j);
	snapshot_grows(3 * JOURNAL_SNAPSHOT / 2); /* its live records are more than a quarter of it */
	journal_end(&journal_run.j, journal_run.now);
	while (!journal_wants_snapshot(&journal_run.j, journal_run.now)) {
		grow(4096);
		ck_assert_uint_lt(journal_run.j.size, most);
	}
	ck_assert(!journal_run.j.unusable);
	journal_run_snapshot("all");
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "all|");
}

/* A snapshot of so many bytes, for so many names. */
static void snapshot_of(size_t bytes, size_t names)
{
	journal_count(&journal_run.j, names);
	journal_begin(&journal_run.j);
	snapshot_grows(bytes);
	journal_end(&journal_run.j, journal_run.now);
}

/* Each snapshot stops the loop for as long as it takes to write it. */
TEST(of_a_file_that_is_all_live_few_snapshots_are_taken)
{
	const size_t most = 16 * JOURNAL_SNAPSHOT, step = 65536;
	size_t live = 0, written = 0;

	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run.j.most = most;
	while (!journal_run.j.unusable) {
		grow(step);
		live += step;
		journal_count(&journal_run.j, live / 1024);
		if (!journal_run.j.unusable && journal_wants_snapshot(&journal_run.j, journal_run.now)) {
			snapshot_of(live, live / 1024);
			written += live;
		}
	}
	ck_assert_uint_gt(live, most - most / 16);
	ck_assert_uint_gt(written, 0);
	ck_assert_uint_lt(written, 2 * most);
	journal_close(&journal_run.j);
}

/* Runs until the file is full, with so many names. True: a snapshot was due before. */
static bool due_before_it_is_full(size_t names)
{
	journal_count(&journal_run.j, names);
	while (!journal_run.j.unusable) {
		if (journal_wants_snapshot(&journal_run.j, journal_run.now))
			return true;
		grow(65536);
	}
	return false;
}

TEST(a_file_that_was_mostly_live_is_replaced_when_there_are_fewer_names)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run.j.most = 4 * JOURNAL_SNAPSHOT;
	snapshot_of(3 * JOURNAL_SNAPSHOT, 1000);
	ck_assert(due_before_it_is_full(500));
	snapshot_of(3 * JOURNAL_SNAPSHOT, 1000);
	ck_assert(!due_before_it_is_full(1000));
	journal_close(&journal_run.j);
}

static bool wanted_after(int64_t us, size_t names)
{
	journal_count(&journal_run.j, names);
	return journal_wants_snapshot(&journal_run.j, instant_add(journal_run.now, us));
}

TEST(a_full_file_is_not_tried_again_while_its_records_cannot_fit)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run.j.most = 4 * JOURNAL_SNAPSHOT;
	snapshot_of(3 * JOURNAL_SNAPSHOT, 1000);
	ck_assert(!due_before_it_is_full(1000));
	ck_assert(!wanted_after(3600 * SEC, 2000));
	journal_run.j.stale = true; /* the old file could not be removed: that is tried whatever it takes */
	ck_assert(wanted_after(3600 * SEC, 2000));
	journal_run.j.stale = false;
	ck_assert(!wanted_after(600 * MSEC, 1000)); /* a quarter of a second for each MiB */
	ck_assert(wanted_after(SEC, 1000));
	snapshot_of(5 * JOURNAL_SNAPSHOT, 1000);
	ck_assert(journal_run.j.unusable);
	ck_assert(!wanted_after(3600 * SEC, 1000));
	ck_assert(wanted_after(5 * SEC, 500));
	snapshot_of(JOURNAL_SNAPSHOT, 500);
	ck_assert(!journal_run.j.unusable);
	journal_close(&journal_run.j);
}

TEST(a_file_that_would_be_too_large_for_the_next_run_is_given_up)
{
	bool usable;

	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run.j.most = JOURNAL_RUN_HEADER + JOURNAL_RUN_FRAME + 8;
	journal_run_write("one");
	journal_run_write("two");
	ck_assert(journal_has_turned(&journal_run.j, &usable));
	ck_assert(!usable);
	ck_assert_int_eq(journal_run_size(), -1);
	journal_close(&journal_run.j);
}

static void snapshot_is_half_written(void)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("old");
	journal_begin(&journal_run.j);
	journal_keep(&journal_run.j, SPAN("first"));
	journal_run_write("change");
	journal_keep(&journal_run.j, SPAN("second"));
	ck_assert_int_eq(journal_run_size(), JOURNAL_RUN_HEADER + 2 * JOURNAL_RUN_FRAME + 3 + 6);
}

TEST(what_is_recorded_while_a_snapshot_is_written_is_in_the_old_file_and_in_the_new_one)
{
	snapshot_is_half_written();
	journal_end(&journal_run.j, journal_run.now);
	journal_run_write("more");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "first|change|second|more|");
}

TEST(a_snapshot_that_is_not_whole_leaves_the_file_as_it_was)
{
	struct stat st;

	snapshot_is_half_written();
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "old|change|");
	ck_assert_int_ne(stat(journal_run.temp, &st), 0);
}

TEST(a_record_that_cannot_be_written_ends_the_snapshot)
{
	bool usable;

	snapshot_is_half_written();
	journal_run.j.most = JOURNAL_RUN_HEADER;
	journal_run_write("lost");
	ck_assert(journal_has_turned(&journal_run.j, &usable));
	ck_assert(!journal_run.j.in_image);
	journal_run.j.most = JOURNAL_FILE_MAX;
	journal_run_snapshot("all");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "all|");
}

TEST(what_a_start_records_is_in_the_snapshot_that_replaces_the_file_of_the_run_before)
{
	struct span record;

	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("old");
	journal_close(&journal_run.j);
	ck_assert_int_eq(journal_open(&journal_run.j, journal_run.dir, JOURNAL_RUN_BOOT, journal_run.now), 0);
	ck_assert(journal_next(&journal_run.j, &record));
	journal_run_add("daemon");
	journal_forget(&journal_run.j);
	journal_begin(&journal_run.j);
	journal_keep(&journal_run.j, SPAN("all"));
	journal_write(&journal_run.j, journal_run.now);
	journal_run_add("more");
	journal_write(&journal_run.j, journal_run.now);
	journal_end(&journal_run.j, journal_run.now);
	journal_run_write("later");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "all|more|later|");
}

TEST(of_a_file_that_was_cut_nothing_is_left_to_believe)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("one");
	journal_run_write("two");
	ck_assert_int_eq(truncate(journal_run.path, journal_run_size() - 1), 0);
	journal_run_write("three");
	journal_begin(&journal_run.j);
	journal_keep(&journal_run.j, SPAN("half of it"));
	journal_write(&journal_run.j, journal_run.now);
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
}

TEST(a_snapshot_of_nothing_takes_the_file_away)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("one");
	journal_run_snapshot(NULL);
	ck_assert_int_eq(journal_run_size(), -1);
	journal_run_write("two");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "two|");
}

TEST(a_snapshot_that_cannot_be_written_leaves_the_file_as_good_as_it_was)
{
	bool usable;

	journal_run_begin(JOURNAL_RUN_BOOT);
	grow(JOURNAL_SNAPSHOT);
	ck_assert_int_eq(mkdir(journal_run.temp, 0700), 0);
	journal_run_add("last");
	journal_run_snapshot("all");
	ck_assert(!journal_has_turned(&journal_run.j, &usable));
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_write(&journal_run.j, journal_run.now);
	ck_assert_int_eq(rmdir(journal_run.temp), 0);
	ck_assert_int_gt(journal_run_size(), (off_t)JOURNAL_SNAPSHOT);
	grow(JOURNAL_SNAPSHOT);
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	journal_run_snapshot("all");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "all|");
}

TEST(after_a_snapshot_that_cannot_be_written_a_large_file_grows_by_half)
{
	journal_run_begin(JOURNAL_RUN_BOOT);
	grow(6 * JOURNAL_SNAPSHOT);
	ck_assert_int_eq(mkdir(journal_run.temp, 0700), 0);
	journal_run_snapshot("all");
	grow(5 * JOURNAL_SNAPSHOT / 2);
	ck_assert(!journal_wants_snapshot(&journal_run.j, journal_run.now));
	grow(JOURNAL_SNAPSHOT);
	ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
	ck_assert_int_eq(rmdir(journal_run.temp), 0);
	journal_close(&journal_run.j);
}

/* --- old files ---------------------------------------------------------------------------------------------------------- */

/* The file of the journal becomes a connection, whose close(2) takes longer than a test may, unless its peer reads. Returns the peer. */
static int file_closes_slowly(void)
{
	const struct linger long_time = {.l_onoff = 1, .l_linger = 1000};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), file = socket(AF_INET, SOCK_STREAM, 0), peer;

	ck_assert(!bind(listener, (struct sockaddr *)&at, n) && !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&at, &n));
	ck_assert_int_eq(connect(file, (struct sockaddr *)&at, n), 0);
	peer = accept(listener, NULL, NULL);
	ck_assert_int_ge(peer, 0);
	ck_assert_int_eq(setsockopt(file, SOL_SOCKET, SO_LINGER, &long_time, sizeof(long_time)), 0);
	while (send(file, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(dup2(file, journal_run.j.fd), journal_run.j.fd);
	close(file);
	close(listener);
	return peer;
}

static void is_closed(int peer)
{
	ssize_t n;

	do
		n = read(peer, block, sizeof(block));
	while (n > 0);
	ck_assert_int_eq(n, 0);
	close(peer);
}

static void is_given_up(const char *text)
{
	(void)text;
	journal_begin_anew(&journal_run.j, NULL, journal_run.now);
}

TEST(to_close_an_old_file_keeps_nobody_waiting)
{
	void (*const way[])(const char *text) = {journal_run_snapshot, journal_run_snapshot, is_given_up};
	const char *const text[] = {"all", NULL, NULL};
	int peer;

	for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++) {
		journal_run_begin(JOURNAL_RUN_BOOT);
		journal_run_write("one");
		peer = file_closes_slowly();
		way[i](text[i]);
		is_closed(peer);
		ck_assert_int_eq(journal_run_size(), text[i] ? JOURNAL_RUN_HEADER + JOURNAL_RUN_FRAME + 3 : -1);
		journal_close(&journal_run.j);
		unlink(journal_run.path);
	}
}

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

	ck_assert(journal_has_turned(&journal_run.j, &usable));
	ck_assert(usable == to_usable);
	ck_assert(!journal_has_turned(&journal_run.j, &usable));
}

TEST(a_device_that_ends_in_a_record_leaves_nothing_to_believe)
{
	for (rlim_t room = 0; room < JOURNAL_RUN_FRAME + 3; room++) {
		journal_run_begin(JOURNAL_RUN_BOOT);
		journal_run_write("one");
		device_ends_at(JOURNAL_RUN_HEADER + JOURNAL_RUN_FRAME + 3 + room);
		journal_run_write("two");
		turned(false);
		ck_assert_int_eq(journal_run_size(), -1);
		device_ends_at(RLIM_INFINITY);
		journal_close(&journal_run.j);
		ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
	}
}

TEST(a_device_that_is_full_from_the_start_leaves_no_file)
{
	for (rlim_t room = 0; room < JOURNAL_RUN_HEADER + JOURNAL_RUN_FRAME; room += 8) {
		journal_run_begin(JOURNAL_RUN_BOOT);
		device_ends_at(room);
		journal_run_write("one");
		turned(false);
		device_ends_at(RLIM_INFINITY);
		ck_assert_int_eq(journal_run_size(), -1);
		journal_close(&journal_run.j);
	}
}

TEST(an_unusable_journal_is_tried_again_with_growing_pauses_and_comes_back_with_a_snapshot)
{
	int64_t pause = JOURNAL_PAUSE_US;

	journal_run_begin(JOURNAL_RUN_BOOT);
	device_ends_at(50);
	journal_run_write("one");
	turned(false);
	journal_run_write("dropped");
	for (int i = 0; i < 7; i++) {
		ck_assert(!journal_wants_snapshot(&journal_run.j, instant_add(journal_run.now, pause - 1)));
		journal_run.now = instant_add(journal_run.now, pause);
		ck_assert(journal_wants_snapshot(&journal_run.j, journal_run.now));
		journal_run_snapshot("one");
		ck_assert_int_eq(journal_run_size(), -1);
		pause = 2 * pause < JOURNAL_PAUSE_MAX_US ? 2 * pause : JOURNAL_PAUSE_MAX_US;
	}
	device_ends_at(RLIM_INFINITY);
	journal_run.now = instant_add(journal_run.now, pause);
	journal_run_snapshot("one");
	turned(true);
	journal_run_write("two");
	journal_close(&journal_run.j);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "one|two|");
}

TEST(a_journal_that_works_again_is_noticed_with_nothing_to_write_too)
{
	bool usable;

	journal_run_begin(JOURNAL_RUN_BOOT);
	device_ends_at(50);
	journal_run_write("one");
	turned(false);
	journal_run_snapshot(NULL);
	ck_assert(!journal_has_turned(&journal_run.j, &usable));
	device_ends_at(RLIM_INFINITY);
	journal_run_snapshot(NULL);
	turned(true);
	ck_assert_int_eq(journal_run_size(), -1);
	journal_close(&journal_run.j);
}

TEST(in_a_folder_where_nothing_can_be_removed_the_file_is_emptied)
{
	becomes_nobody(journal_run.dir, journal_run.path);
	journal_run_begin(JOURNAL_RUN_BOOT);
	journal_run_write("one");
	ck_assert_int_eq(chmod(journal_run.dir, 0500), 0);
	device_ends_at(JOURNAL_RUN_HEADER + JOURNAL_RUN_FRAME + 10);
	journal_run_write("two");
	turned(false);
	while (journal_run_size() > 0)
		;
	ck_assert_int_eq(journal_run_size(), 0);
	journal_close(&journal_run.j);
	device_ends_at(RLIM_INFINITY);
	ck_assert_int_eq(chmod(journal_run.dir, 0700), 0);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), "");
	ck_assert_int_eq(unlink(journal_run.bad), 0);
	becomes_itself();
}

TEST(in_a_folder_that_cannot_be_written_records_are_read_and_none_is_added)
{
	journal_run_write_three();
	becomes_nobody(journal_run.dir, journal_run.path);
	ck_assert_int_eq(chmod(journal_run.dir, 0500), 0);
	journal_run_begin(JOURNAL_RUN_BOOT);
	ck_assert_str_eq(journal_run_read(), "one||three|");
	journal_run_snapshot("all");
	turned(false);
	journal_close(&journal_run.j);
	ck_assert_int_eq(chmod(journal_run.dir, 0700), 0);
	ck_assert_str_eq(next_run_reads(JOURNAL_RUN_BOOT), ""); /* it was emptied, because later records could not have been written */
	becomes_itself();
}
