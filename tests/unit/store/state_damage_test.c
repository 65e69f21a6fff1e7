/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/state.c: damaged files, and disks that do not write. */
#include "tests/fixture/files.h"
#include "tests/fixture/store_run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

FIXTURE(.setup = store_runs_start, .teardown = store_runs_stop, .seconds = 60)

TEST(a_damaged_file_is_a_crash)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("orders/42"), 10000), 'G');
	store_run_end(&l);
	file_flip(here.path, 8 * 150);
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_str_eq(l.why, "damaged");
	ck_assert_uint_eq(memory_count(l.memory), 0);
	store_run_crash(&l);
	file_flip(here.path, 8 * 150);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CLEAN);
	ck_assert_int_eq(truncate(here.path, 150), 0);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
}

TEST(a_file_that_is_no_state_file_is_a_crash_and_says_why)
{
	struct store_run l;

	ck_assert_int_eq(mkfifo(here.path, 0600), 0);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	unlink(here.path);
	ck_assert_int_eq(symlink("/dev/zero", here.path), 0);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	unlink(here.path);
	ck_assert_int_eq(mkdir(here.path, 0700), 0);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	rmdir(here.path);
	close(open(here.path, O_WRONLY | O_CREAT, 0600));
	ck_assert_int_eq(truncate(here.path, (off_t)STATE_FILE_MAX + 1), 0);
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_str_eq(l.why, strerror(EFBIG));
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0); /* takes its place */
	store_run_crash(&l);
	store_run_open(&l, BOOT);
	ck_assert_str_eq(l.why, "");
	store_run_crash(&l);
}

/* --- when writing fails ---------------------------------------------------------------------------------------------------- */

TEST(the_old_file_is_marked_in_place_where_nothing_can_be_created)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_end(&l);
	becomes_nobody(here.dir, here.path);
	ck_assert_int_eq(chmod(here.dir, 0500), 0);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert_int_eq(state_finish(&l.state, l.memory, here.now), -EACCES);
	store_run_crash(&l);
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_str_eq(l.why, ""); /* whole, with its clock */
	store_run_crash(&l);
	becomes_itself();
}

TEST(a_folder_that_cannot_be_written_is_told_and_tried_again)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	store_run_end(&l);
	becomes_nobody(here.dir, here.path);
	ck_assert_int_eq(chmod(here.path, 0400), 0);
	ck_assert_int_eq(chmod(here.dir, 0500), 0);
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), -EACCES);
	ck_assert_int_eq(state_due(&l.state, l.memory).us, here.now.us + STATE_RETRY_US);
	ck_assert_int_eq(chmod(here.dir, 0700), 0);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	becomes_itself();
}

TEST(a_disk_that_ends_in_the_middle_leaves_nothing_to_trust)
{
	struct rlimit limit;
	struct store_run l;

	store_run_begin(&l, BOOT);
	store_run_end(&l);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, SIG_IGN);
	limit.rlim_cur = 50;
	setrlimit(RLIMIT_FSIZE, &limit);
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), -EFBIG);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(a_folder_that_is_not_there_is_an_error)
{
	const struct state_conf conf = {.dir = "/nonexistent", .boot_id = BOOT, .now = here.now, .wall_us = WALL};
	enum state_found found;
	struct state s;
	const char *why;

	ck_assert_int_eq(state_open(&s, &conf, &found, &why), -ENOENT);
	state_close(&s);
}
