/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/state.c: what one run leaves to the next. */
#include "tests/fixture/store_run.h"

#include <check.h>
#include <stdio.h>

/* --- what the next run finds -------------------------------------------------------------------------------------------- */

FIXTURE(.setup = store_runs_start, .teardown = store_runs_stop, .seconds = 60)

TEST(no_file_is_a_first_start)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_FIRST);
	ck_assert_str_eq(l.why, "");
	ck_assert_int_eq(memory_clock(l.memory, here.now), here.now.us + here.wall_us);
	store_run_crash(&l);
}

TEST(a_wall_clock_before_the_boot_gives_no_negative_clock)
{
	struct store_run l;

	here.wall_us = -2 * here.now.us;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(memory_clock(l.memory, here.now), here.now.us);
	store_run_crash(&l);
}

TEST(a_first_run_may_end_before_it_joined)
{
	struct store_run l;

	store_run_open(&l, BOOT);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	store_run_end(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CLEAN);
}

TEST(after_a_clean_end_names_are_refused_until_their_deadlines_and_all_others_granted)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("nul\0 \n"), 10000), 'G');
	ck_assert_int_eq(store_run_acquire(&l, SPAN("short"), 50), 'G');
	here.now.us += SEC;
	store_run_end(&l);
	here.now.us += 2 * SEC;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("nul\0 \n"), 10000), 'B');
	ck_assert_int_eq(store_run_acquire(&l, SPAN("nul"), 1), 'G');
	ck_assert_int_eq(store_run_acquire(&l, SPAN("short"), 1), 'G');
	here.now.us += 6999 * MSEC;
	ck_assert_int_eq(store_run_acquire(&l, SPAN("nul\0 \n"), 10000), 'B');
	here.now.us += 2 * MSEC;
	ck_assert_int_eq(store_run_acquire(&l, SPAN("nul\0 \n"), 10000), 'G');
	store_run_end(&l);
}

TEST(a_promise_outlives_two_clean_ends)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_end(&l);
	store_run_begin(&l, BOOT);
	store_run_end(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'B');
	store_run_end(&l);
}

TEST(a_kept_name_is_adopted_by_its_value_and_only_once)
{
	struct store_run first, second, third;
	char value[sizeof(first.value)];

	store_run_begin(&first, BOOT);
	ck_assert_int_eq(store_run_acquire(&first, SPAN("a"), 10000), 'G');
	ck_assert_int_eq(store_run_acquire(&first, SPAN("b"), 10000), 'G');
	store_run_end(&first);
	store_run_begin(&second, BOOT);
	ck_assert_int_eq(store_run_adopt(&second, SPAN("a"), "d0:7:00ff", 10000), 'B');
	ck_assert_int_eq(store_run_adopt(&second, SPAN("a"), first.value, 10000), 'E');
	strcpy(value, second.value);
	store_run_end(&second);
	store_run_begin(&third, BOOT);
	ck_assert_int_eq(store_run_adopt(&third, SPAN("a"), first.value, 10000), 'B');
	ck_assert_int_eq(store_run_adopt(&third, SPAN("a"), value, 10000), 'E');
	ck_assert_int_eq(store_run_adopt(&third, SPAN("b"), first.value, 10000), 'E'); /* over two ends */
	store_run_end(&third);
}

TEST(after_a_crash_there_is_nothing_to_adopt)
{
	struct store_run first, second;

	store_run_begin(&first, BOOT);
	ck_assert_int_eq(store_run_acquire(&first, SPAN("a"), 10000), 'G');
	store_run_crash(&first);
	store_run_begin(&second, BOOT);
	ck_assert_int_eq(store_run_adopt(&second, SPAN("a"), first.value, 10000), 'M'); /* were it joined */
	store_run_crash(&second);
}

TEST(many_names_come_back)
{
	struct store_run l;
	char name[32];
	int i;

	store_run_begin(&l, BOOT);
	for (i = 0; i < 20000; i++)
		ck_assert_int_eq(store_run_acquire(&l, (struct span){name, (size_t)sprintf(name, "name/%d", i)}, 30000), 'G');
	store_run_end(&l);
	store_run_begin(&l, BOOT);
	ck_assert_uint_eq(memory_count(l.memory), 20000);
	for (i = 0; i < 20000; i++)
		ck_assert_int_eq(store_run_acquire(&l, (struct span){name, (size_t)sprintf(name, "name/%d", i)}, 30000), 'B');
	store_run_end(&l);
}

TEST(a_run_that_did_not_end_is_a_crash)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	store_run_end(&l);
	store_run_begin(&l, BOOT);
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CRASH);
}

TEST(a_run_that_ends_in_its_quarantine_leaves_the_crash_to_the_next)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_int_eq(state_finish(&l.state, l.memory, here.now), STATE_UNSURE);
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	store_run_join(&l); /* the quarantine is over */
	store_run_end(&l);
	ck_assert_int_eq(next_run_finds(BOOT), STATE_CLEAN);
}

TEST(a_crash_remembers_the_longest_lease_of_all_runs_whose_promises_may_stand)
{
	struct store_run l;

	here.lease_us = 30 * SEC;
	store_run_begin(&l, BOOT);
	store_run_end(&l);
	here.lease_us = SEC;
	store_run_begin(&l, BOOT); /* refuses the names that the first run has left, and forgets them when it crashes */
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_int_eq(l.state.past.lease_us, 30 * SEC);
	here.now = instant_add(here.now, 60 * SEC);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	store_run_crash(&l);
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.state.past.lease_us, SEC);
	store_run_crash(&l);
}

TEST(without_a_boot_id_or_with_a_clock_before_the_file_nothing_is_over)
{
	struct store_run l;

	store_run_begin(&l, BOOT);
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_end(&l);
	here.now.us -= 500 * SEC;
	store_run_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	here.now.us += 9 * SEC;
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'B');
	here.now.us += 2 * SEC;
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'G');
	store_run_end(&l);
	here.now.us += 100 * SEC;
	store_run_begin(&l, "");
	ck_assert_int_eq(store_run_acquire(&l, SPAN("a"), 10000), 'B');
	store_run_crash(&l);
	ck_assert_int_eq(next_run_finds(REBOOT), STATE_CRASH);
}

/* --- clock and fence ------------------------------------------------------------------------------------------------------ */

TEST(the_clock_and_the_tokens_never_fall_back)
{
	static const struct {
		const char *boot;
		bool clean;
	} step[] = {{BOOT, true}, {BOOT, false}, {REBOOT, true}, {BOOT, false}, {REBOOT, false}, {REBOOT, false}, {"", true}};
	int64_t clock = 0, fence = 0;
	struct store_run l;
	size_t i;

	for (i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		store_run_open(&l, step[i].boot);
		ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
		ck_assert_int_ge(memory_clock(l.memory, here.now), clock);
		if (i && step[i - 1].clean)
			ck_assert_int_eq(memory_fence(l.memory), fence);
		store_run_join(&l);
		ck_assert_int_gt(store_run_grant(&l), fence);
		here.now.us += STATE_RENEW_US - 1;
		clock = memory_clock(l.memory, here.now);
		fence = store_run_grant(&l);
		ck_assert_int_lt(clock, INT64_C(2) * WALL); /* nor do they run away */
		step[i].clean ? store_run_end(&l) : store_run_crash(&l);
		here.wall_us -= 3600 * SEC; /* each time the wall clock is set back */
		here.now.us = 10 * SEC + (strcmp(step[i].boot, step[(i + 1) % 7].boot) ? 0 : here.now.us);
	}
}

TEST(a_crash_in_the_same_boot_costs_the_clock_nothing)
{
	struct store_run l;
	int i;

	for (i = 0; i < 50; i++) {
		store_run_begin(&l, BOOT);
		ck_assert_int_eq(memory_clock(l.memory, here.now), here.now.us + here.wall_us);
		store_run_crash(&l);
		here.now.us += SEC;
	}
}

/* The shares of a name end by the clock of the store: it must not run ahead with the wall clock while they are kept. */
static void readers_outlast(bool crashes, const char *boot)
{
	struct store_run l, m;
	struct answer a;

	store_run_begin(&l, BOOT);
	store_run_call(&l, (struct call){.kind = CALL_ACQUIRE, .name = SPAN("read"), .value = span_of(l.value), .px_ms = 60000, .form = FORM_SHARED}, &a);
	ck_assert_int_eq(a.code, 'G');
	if (crashes)
		store_run_crash(&l);
	else
		store_run_end(&l);
	here.wall_us += 3600 * SEC;
	here.now.us += SEC;
	store_run_begin(&m, boot);
	ck_assert_int_eq(m.found, crashes ? STATE_KEPT : STATE_CLEAN);
	ck_assert_int_eq(store_run_acquire(&m, SPAN("read"), 1000), 'S');
	here.now.us += 61 * SEC;
	ck_assert_int_eq(store_run_acquire(&m, SPAN("read"), 1000), 'G');
	store_run_end(&m);
	here.now.us += 2 * SEC;
}

TEST(readers_of_before_keep_their_shares_though_the_wall_clock_was_set_forward)
{
	here.remote = true;
	here.keyfiles = true;
	readers_outlast(true, BOOT);
	readers_outlast(false, BOOT);
	readers_outlast(false, REBOOT);
}

TEST(the_mark_is_renewed_long_before_the_clock_passes_it)
{
	struct store_run l;
	int64_t clock;
	int i;

	store_run_begin(&l, BOOT);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(state_due(&l.state, l.memory).us, here.now.us + STATE_RENEW_US);
		here.now = state_due(&l.state, l.memory);
		ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	}
	clock = memory_clock(l.memory, here.now);
	store_run_crash(&l);
	here.wall_us = 0;
	store_run_open(&l, REBOOT);
	ck_assert_int_eq(memory_clock(l.memory, here.now), clock + STATE_RESERVE_US);
	store_run_crash(&l);
}
