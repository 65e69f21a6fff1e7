/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/state.c: what one life leaves to the next. */
#include "tests/unit/life.h"

#include <check.h>
#include <stdio.h>

/* --- what the next life finds -------------------------------------------------------------------------------------------- */

START_TEST(no_file_is_a_first_start)
{
	struct life l;

	life_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_FIRST);
	ck_assert_str_eq(l.why, "");
	ck_assert_int_eq(memory_clock(l.memory, here.now), here.now.us + here.wall_us);
	life_crash(&l);
}
END_TEST

START_TEST(a_wall_clock_before_the_boot_gives_no_negative_clock)
{
	struct life l;

	here.wall_us = -2 * here.now.us;
	life_begin(&l, BOOT);
	ck_assert_int_eq(memory_clock(l.memory, here.now), here.now.us);
	life_crash(&l);
}
END_TEST

START_TEST(a_first_life_may_end_before_it_joined)
{
	struct life l;

	life_open(&l, BOOT);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	life_end(&l);
	ck_assert_int_eq(next_finds(BOOT), STATE_CLEAN);
}
END_TEST

START_TEST(after_a_clean_end_names_are_refused_until_their_deadlines_and_all_others_granted)
{
	struct life l;

	life_begin(&l, BOOT);
	ck_assert_int_eq(life_acquire(&l, SPAN("nul\0 \n"), 10000), 'G');
	ck_assert_int_eq(life_acquire(&l, SPAN("short"), 50), 'G');
	here.now.us += SEC;
	life_end(&l);
	here.now.us += 2 * SEC;
	life_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	ck_assert_int_eq(life_acquire(&l, SPAN("nul\0 \n"), 10000), 'B');
	ck_assert_int_eq(life_acquire(&l, SPAN("nul"), 1), 'G');
	ck_assert_int_eq(life_acquire(&l, SPAN("short"), 1), 'G');
	here.now.us += 6999 * MSEC;
	ck_assert_int_eq(life_acquire(&l, SPAN("nul\0 \n"), 10000), 'B');
	here.now.us += 2 * MSEC;
	ck_assert_int_eq(life_acquire(&l, SPAN("nul\0 \n"), 10000), 'G');
	life_end(&l);
}
END_TEST

START_TEST(a_promise_outlives_two_clean_ends)
{
	struct life l;

	life_begin(&l, BOOT);
	ck_assert_int_eq(life_acquire(&l, SPAN("a"), 10000), 'G');
	life_end(&l);
	life_begin(&l, BOOT);
	life_end(&l);
	life_begin(&l, BOOT);
	ck_assert_int_eq(life_acquire(&l, SPAN("a"), 10000), 'B');
	life_end(&l);
}
END_TEST

START_TEST(who_knows_the_value_of_a_kept_name_may_adopt_it_and_nobody_twice)
{
	struct life first, second, third;
	char value[sizeof(first.value)];

	life_begin(&first, BOOT);
	ck_assert_int_eq(life_acquire(&first, SPAN("a"), 10000), 'G');
	ck_assert_int_eq(life_acquire(&first, SPAN("b"), 10000), 'G');
	life_end(&first);
	life_begin(&second, BOOT);
	ck_assert_int_eq(life_adopt(&second, SPAN("a"), "d0:7:00ff", 10000), 'B');
	ck_assert_int_eq(life_adopt(&second, SPAN("a"), first.value, 10000), 'E');
	strcpy(value, second.value);
	life_end(&second);
	life_begin(&third, BOOT);
	ck_assert_int_eq(life_adopt(&third, SPAN("a"), first.value, 10000), 'B');
	ck_assert_int_eq(life_adopt(&third, SPAN("a"), value, 10000), 'E');
	ck_assert_int_eq(life_adopt(&third, SPAN("b"), first.value, 10000), 'E'); /* over two ends */
	life_end(&third);
}
END_TEST

START_TEST(after_a_crash_there_is_nothing_to_adopt)
{
	struct life first, second;

	life_begin(&first, BOOT);
	ck_assert_int_eq(life_acquire(&first, SPAN("a"), 10000), 'G');
	life_crash(&first);
	life_begin(&second, BOOT);
	ck_assert_int_eq(life_adopt(&second, SPAN("a"), first.value, 10000), 'M'); /* were it joined */
	life_crash(&second);
}
END_TEST

START_TEST(many_names_come_back)
{
	struct life l;
	char name[32];
	int i;

	life_begin(&l, BOOT);
	for (i = 0; i < 20000; i++)
		ck_assert_int_eq(life_acquire(&l, (struct span){name, (size_t)sprintf(name, "name/%d", i)}, 30000), 'G');
	life_end(&l);
	life_begin(&l, BOOT);
	ck_assert_uint_eq(memory_count(l.memory), 20000);
	for (i = 0; i < 20000; i++)
		ck_assert_int_eq(life_acquire(&l, (struct span){name, (size_t)sprintf(name, "name/%d", i)}, 30000), 'B');
	life_end(&l);
}
END_TEST

START_TEST(a_life_that_did_not_end_is_a_crash)
{
	struct life l;

	life_begin(&l, BOOT);
	life_end(&l);
	life_begin(&l, BOOT);
	life_crash(&l);
	ck_assert_int_eq(next_finds(BOOT), STATE_CRASH);
}
END_TEST

START_TEST(a_life_that_ends_in_its_quarantine_leaves_the_crash_to_the_next)
{
	struct life l;

	life_begin(&l, BOOT);
	life_crash(&l);
	life_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_int_eq(state_finish(&l.state, l.memory, here.now), STATE_UNSURE);
	life_crash(&l);
	life_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	life_join(&l); /* the quarantine is over */
	life_end(&l);
	ck_assert_int_eq(next_finds(BOOT), STATE_CLEAN);
}
END_TEST

START_TEST(a_crash_remembers_the_longest_lease_of_all_lives_whose_promises_may_stand)
{
	struct life l;

	here.lease_us = 30 * SEC;
	life_begin(&l, BOOT);
	life_end(&l);
	here.lease_us = SEC;
	life_begin(&l, BOOT); /* refuses what the first has left, and forgets that when it crashes */
	life_crash(&l);
	life_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CRASH);
	ck_assert_int_eq(l.state.past.lease_us, 30 * SEC);
	here.now = instant_add(here.now, 60 * SEC);
	ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	life_crash(&l);
	life_begin(&l, BOOT);
	ck_assert_int_eq(l.state.past.lease_us, SEC);
	life_crash(&l);
}
END_TEST

START_TEST(without_a_boot_id_or_with_a_clock_before_the_file_nothing_is_over)
{
	struct life l;

	life_begin(&l, BOOT);
	ck_assert_int_eq(life_acquire(&l, SPAN("a"), 10000), 'G');
	life_end(&l);
	here.now.us -= 500 * SEC;
	life_begin(&l, BOOT);
	ck_assert_int_eq(l.found, STATE_CLEAN);
	here.now.us += 9 * SEC;
	ck_assert_int_eq(life_acquire(&l, SPAN("a"), 10000), 'B');
	here.now.us += 2 * SEC;
	ck_assert_int_eq(life_acquire(&l, SPAN("a"), 10000), 'G');
	life_end(&l);
	here.now.us += 100 * SEC;
	life_begin(&l, "");
	ck_assert_int_eq(life_acquire(&l, SPAN("a"), 10000), 'B');
	life_crash(&l);
	ck_assert_int_eq(next_finds(REBOOT), STATE_CRASH);
}
END_TEST

/* --- clock and fence ------------------------------------------------------------------------------------------------------ */

START_TEST(the_clock_and_the_tokens_never_fall_back)
{
	static const struct {
		const char *boot;
		bool clean;
	} step[] = {{BOOT, true}, {BOOT, false}, {REBOOT, true}, {BOOT, false}, {REBOOT, false}, {REBOOT, false}, {"", true}};
	int64_t clock = 0, fence = 0;
	struct life l;
	size_t i;

	for (i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		life_open(&l, step[i].boot);
		ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
		ck_assert_int_ge(memory_clock(l.memory, here.now), clock);
		if (i && step[i - 1].clean)
			ck_assert_int_eq(memory_fence(l.memory), fence);
		life_join(&l);
		ck_assert_int_gt(life_grant(&l), fence);
		here.now.us += STATE_RENEW_US - 1;
		clock = memory_clock(l.memory, here.now);
		fence = life_grant(&l);
		ck_assert_int_lt(clock, INT64_C(2) * WALL); /* nor do they run away */
		step[i].clean ? life_end(&l) : life_crash(&l);
		here.wall_us -= 3600 * SEC; /* each time the wall clock is set back */
		here.now.us = 10 * SEC + (strcmp(step[i].boot, step[(i + 1) % 7].boot) ? 0 : here.now.us);
	}
}
END_TEST

START_TEST(a_crash_in_the_same_boot_costs_the_clock_nothing)
{
	struct life l;
	int i;

	for (i = 0; i < 50; i++) {
		life_begin(&l, BOOT);
		ck_assert_int_eq(memory_clock(l.memory, here.now), here.now.us + here.wall_us);
		life_crash(&l);
		here.now.us += SEC;
	}
}
END_TEST

START_TEST(the_mark_is_renewed_long_before_the_clock_passes_it)
{
	struct life l;
	int64_t clock;
	int i;

	life_begin(&l, BOOT);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(state_due(&l.state).us, here.now.us + STATE_RENEW_US);
		here.now = state_due(&l.state);
		ck_assert_int_eq(state_mark(&l.state, l.memory, here.now), 0);
	}
	clock = memory_clock(l.memory, here.now);
	life_crash(&l);
	here.wall_us = 0;
	life_open(&l, REBOOT);
	ck_assert_int_eq(memory_clock(l.memory, here.now), clock + STATE_RESERVE_US);
	life_crash(&l);
}
END_TEST

Suite *state_suite(void)
{
	Suite *s = suite_create("state");
	TCase *c = tcase_create("state");

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, folder_start, folder_stop);
	tcase_add_test(c, no_file_is_a_first_start);
	tcase_add_test(c, a_wall_clock_before_the_boot_gives_no_negative_clock);
	tcase_add_test(c, a_first_life_may_end_before_it_joined);
	tcase_add_test(c, after_a_clean_end_names_are_refused_until_their_deadlines_and_all_others_granted);
	tcase_add_test(c, a_promise_outlives_two_clean_ends);
	tcase_add_test(c, who_knows_the_value_of_a_kept_name_may_adopt_it_and_nobody_twice);
	tcase_add_test(c, after_a_crash_there_is_nothing_to_adopt);
	tcase_add_test(c, many_names_come_back);
	tcase_add_test(c, a_life_that_did_not_end_is_a_crash);
	tcase_add_test(c, a_life_that_ends_in_its_quarantine_leaves_the_crash_to_the_next);
	tcase_add_test(c, a_crash_remembers_the_longest_lease_of_all_lives_whose_promises_may_stand);
	tcase_add_test(c, without_a_boot_id_or_with_a_clock_before_the_file_nothing_is_over);
	tcase_add_test(c, the_clock_and_the_tokens_never_fall_back);
	tcase_add_test(c, a_crash_in_the_same_boot_costs_the_clock_nothing);
	tcase_add_test(c, the_mark_is_renewed_long_before_the_clock_passes_it);
	suite_add_tcase(s, c);
	return s;
}
