/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/clock.c by itself: a store that jumped by itself is found, although this host stands still as well, or answers come late. */
#include "tests/fixture/clock_looks.h"

/*
 * An open jump keeps its reference when the store jumps again: what is judged is the sum. Were the later jump judged alone, the earlier one would be
 * forgotten, and with it the keys that it has ended. A sum of two stops of ours is not taken for the store's: the other stores show it too, once they are
 * looked at after it.
 */
TEST(a_jump_of_a_store_is_not_forgotten_when_a_stop_follows_before_it_is_judged)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 300 * MSEC); /* of its own */
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	answers(ms, 0, 1410 * MSEC, 2 * MSEC, 500 * MSEC); /* and our stop */
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	answers(ms, 1, 1420 * MSEC, 2 * MSEC, 200 * MSEC);
	answers(ms, 2, 1420 * MSEC, 2 * MSEC, 200 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_THEIRS);
	ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
	ck_assert_int_eq(whose(ms, 2), JUMP_OURS);
	/* Each vote is lowered by all that its store has shown. */
	ck_assert_int_ge(ms->votes_fall_us[0], 500 * MSEC);
	ck_assert_int_ge(ms->votes_fall_us[1], 200 * MSEC);
	effects_release(&effects);
}

/*
 * The clock of store 0 was set back while this host stood still. Its second answer was asked for after store 4 had shown the stop, so it is not of before the
 * stop, whether it comes before the stop is found or later. What the store shows once its clock was set right is a jump of its own: keys have ended early.
 */
LOOP_TEST(a_clock_that_was_back_while_a_stop_was_found_jumps_when_it_is_set_right, 2)
{
	struct effects effects;
	struct members *ms = clocks_of(5, &effects);

	all_answer(ms);
	answers(ms, 4, 1400 * MSEC, 3 * MSEC, 156 * MSEC);
	answers(ms, 0, 1401 * MSEC, 4 * MSEC, 38 * MSEC);
	if (_i)
		answers(ms, 0, 1403 * MSEC, 2 * MSEC, 38 * MSEC);
	answers(ms, 1, 1404 * MSEC, 6 * MSEC, 156 * MSEC);
	answers(ms, 3, 1404 * MSEC, 6 * MSEC, 156 * MSEC);
	ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
	jump_is_ours(ms, &ms->node[1]);
	if (!_i)
		answers(ms, 0, 1405 * MSEC, 4 * MSEC, 38 * MSEC);
	ck_assert(!ms->node[0].jump.open);
	answers(ms, 0, 1900 * MSEC, 2 * MSEC, 156 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	for (unsigned i = 1; i < 5; i++)
		answers(ms, i, 1905 * MSEC, 2 * MSEC, 156 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_THEIRS);
	effects_release(&effects);
}

/* In the end the store shows no more than the others do. But keys have ended early there meanwhile. */
LOOP_TEST(a_clock_that_was_set_forward_and_back_before_it_was_judged_jumped_by_itself, 2)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 10 * MSEC, 200 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	answers(ms, 0, 1465 * MSEC, 60 * MSEC, _i * 70 * MSEC);
	answers(ms, 1, 1470 * MSEC, MSEC, _i * 70 * MSEC);
	answers(ms, 2, 1470 * MSEC, MSEC, _i * 70 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_THEIRS);
	if (_i) { /* our stop meanwhile hides nothing */
		ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
		jump_is_ours(ms, &ms->node[1]);
		ck_assert_int_eq(whose(ms, 0), JUMP_THEIRS);
	}
	effects_release(&effects);
}

/* Each late answer also fits the clock as it was before the jump, and differences too small to be noticed do not add up, not even with our stop. */
LOOP_TEST(answers_that_come_late_do_not_hide_that_a_store_has_jumped, 2)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);
	int64_t stop_us = _i * 500 * MSEC, own_us = _i ? 700 * MSEC : 140 * MSEC;

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, own_us);
	answers(ms, 1, 1410 * MSEC, 2 * MSEC, 0);
	for (int64_t i = 0; i < 9; i++) {
		ms->core->now = (struct instant){1800 * MSEC + i};
		jump_note(ms, &ms->node[0], 1640 * MSEC + i, (struct instant){800 * MSEC + i});
	}
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	if (_i) {
		answers(ms, 1, 1810 * MSEC, 2 * MSEC, stop_us);
		answers(ms, 2, 1810 * MSEC, 2 * MSEC, stop_us);
		ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
		jump_is_ours(ms, &ms->node[1]);
		answers(ms, 1, 1830 * MSEC, 2 * MSEC, stop_us);
	}
	answers(ms, 2, 1830 * MSEC, 2 * MSEC, stop_us);
	ck_assert_int_eq(whose(ms, 0), JUMP_THEIRS);
	effects_release(&effects);
}

/* Since they were looked at last both show the stop alone. */
TEST(a_jump_before_a_stop_does_not_count_as_showing_the_stop)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 180 * MSEC);
	answers(ms, 1, 1410 * MSEC, 2 * MSEC, 0);
	answers(ms, 0, 1500 * MSEC, 2 * MSEC, 620 * MSEC);
	answers(ms, 1, 1510 * MSEC, 2 * MSEC, 440 * MSEC);
	ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
	jump_is_ours(ms, &ms->node[1]);
	ck_assert(!ms->node[1].jump.open);
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	answers(ms, 1, 1520 * MSEC, 2 * MSEC, 440 * MSEC);
	answers(ms, 2, 1520 * MSEC, 2 * MSEC, 440 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_THEIRS);
	effects_release(&effects);
}

/* Such a jump may be as long as any. */
TEST(a_jump_that_is_known_only_roughly_is_looked_at_again_before_it_is_taken_for_another_one)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 1, 1400 * MSEC, 2 * MSEC, 200 * MSEC); /* of its own */
	answers(ms, 0, 1900 * MSEC, 800 * MSEC, 600 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	ck_assert(nodeset_has(jump_asks(ms, &ms->node[0]), 0));
	answers(ms, 0, 1910 * MSEC, 2 * MSEC, 600 * MSEC);
	answers(ms, 2, 1911 * MSEC, 2 * MSEC, 600 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OURS);
	jump_is_ours(ms, &ms->node[0]);
	ck_assert(ms->node[1].jump.open);
	effects_release(&effects);
}
