/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/state.c: what the state of another boot still means, with its file and without. */
#include "tests/fixture/store_run.h"

#include <check.h>
#include <unistd.h>

FIXTURE(.setup = store_runs_start, .teardown = store_runs_stop)

TEST(a_reboot_ends_promises_to_local_clients)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_end(&l);
	here.now.us = 5 * SEC;
	store_run_begin(&l, REBOOT);
	ck_assert_int_eq(l.found, STATE_FIRST);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_FIRST);
}

TEST(a_reboot_ends_no_promise_to_another_host)
{
	struct store_run l;

	here.remote = true;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	here.now.us += 4 * SEC;
	store_run_end(&l);
	here.remote = false;
	here.now.us = 5 * SEC;
	store_run_begin(&l, REBOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	here.now.us += 5999 * MSEC;
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'B');
	here.now.us += 2 * MSEC;
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_crash(&l);
	here.remote = true;
	store_run_begin(&l, REBOOT);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
}

/* Jobs have the ends of their leases by the clock of the store. */
TEST(what_is_left_of_a_lease_is_left_by_the_clock_of_the_next_run)
{
	struct store_run l;
	int64_t clock;

	here.remote = true;
	store_run_begin(&l, BOOT);
	store_run_end(&l);
	here.now.us += SEC;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(state_later_us(&l.state), 0);
	store_run_end(&l);
	here.wall_us += 10 * SEC;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(state_later_us(&l.state), 10 * SEC);
	clock = memory_clock(l.memory, here.now);
	store_run_end(&l);
	here.now.us = 5 * SEC;
	here.wall_us += 3000 * SEC;
	store_run_begin(&l, REBOOT);
	ck_assert_int_eq(state_later_us(&l.state), memory_clock(l.memory, here.now) - clock);
	ck_assert_int_gt(state_later_us(&l.state), 1000 * SEC);
	store_run_end(&l);
	here.remote = false;
	unlink(here.path);
	store_run_begin(&l, REBOOT);
	ck_assert_int_eq(state_later_us(&l.state), 0);
	store_run_end(&l);
}

TEST(a_reboot_that_took_the_file_with_it_ends_no_promise_to_another_host)
{
	here.guard_us = 30603 * MSEC;
	here.now.us = 5 * SEC;
	ck_assert_int_eq(next_run_finds(BOOT), STATE_FIRST); /* only local clients had promises */
	here.remote = true;
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	ck_assert_int_eq(next_run_finds(""), STATE_CRASH);
	here.now.us = here.guard_us - 1;
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
	here.now.us = here.guard_us;
	ck_assert_int_eq(next_run_finds(BOOT), STATE_FIRST);
}

/* The folder may have gone with the previous run, but the clients on other hosts did not. */
TEST(a_missing_file_in_a_container_that_has_just_begun_is_a_crash)
{
	struct store_run l;

	here.guard_us = 30603 * MSEC;
	here.now.us = 1000 * SEC;
	here.began.us = here.now.us - here.guard_us + 1;
	ck_assert_int_eq(next_run_finds(BOOT), STATE_FIRST);
	here.remote = true;
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert(!l.state.rebooted);
	store_run_crash(&l);
	here.began.us--;
	ck_assert_int_eq(next_run_finds(BOOT), STATE_FIRST);
}

TEST(unknown_promises_of_another_boot_were_made_before_this_one)
{
	struct store_run l;

	here.remote = true;
	here.guard_us = 30603 * MSEC;
	here.now.us = 5 * SEC;
	store_run_begin(&l, BOOT);
	ck_assert(l.state.rebooted);
	store_run_crash(&l);
	/* In the same boot, the moment of the crash is unknown. */
	here.now.us = 100 * SEC;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert(!l.state.rebooted);
	store_run_crash(&l);
	here.now.us = 7 * SEC;
	store_run_begin(&l, REBOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert(l.state.rebooted);
	store_run_join(&l);
	store_run_end(&l);
	/* A clean end records all promises, so nothing is unknown. */
	store_run_open(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert(!l.state.rebooted);
	store_run_crash(&l);
}

TEST(promises_of_the_run_before_the_last_to_other_hosts_count)
{
	struct store_run l;

	here.remote = true;
	here.lease_us = 30 * SEC;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 30000), 'G');
	store_run_end(&l);
	here.remote = false; /* it listens on loopback only from now on */
	store_run_begin(&l, BOOT);
	store_run_end(&l);
	here.now.us = 5 * SEC;
	store_run_begin(&l, REBOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 1000), 'B');
	here.now.us += 61 * SEC;
	store_run_end(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_FIRST);
}
