/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/clock.c by itself: a stop of this host is known as one, in whatever order its stores are looked at, and however late they answer. */
#include "tests/fixture/clock_looks.h"

LOOP_TEST(stores_that_showed_two_stops_or_their_sum_agree_on_a_stop, 2)
{
	struct effects effects;
	struct members *ms = clocks_of(5, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 200 * MSEC);
	answers(ms, 1, 1401 * MSEC, 2 * MSEC, 200 * MSEC);
	answers(ms, 0, 1410 * MSEC, 2 * MSEC, 500 * MSEC);
	answers(ms, 2, 1411 * MSEC, 2 * MSEC, 500 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(whose(ms, i), JUMP_OPEN);
	ck_assert(nodeset_has(jump_asks(ms, &ms->node[1]), 1)); /* the others have gone on since it was looked at */
	if (_i)
		answers(ms, 1, 1415 * MSEC, 2 * MSEC, 500 * MSEC);
	else
		answers(ms, 3, 1415 * MSEC, 2 * MSEC, 500 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OURS);
	jump_is_ours(ms, &ms->node[0]);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_ge(ms->votes_fall_us[i], !_i && i == 1 ? 200 * MSEC : 500 * MSEC);
	effects_release(&effects);
}

/* The last 45 ms of a stop are too little to be noticed by themselves. Store 3 was asked before, and answers after the stop was found. */
TEST(an_answer_from_before_the_last_part_of_a_stop_is_no_sign_of_a_clock_that_was_set_back)
{
	struct effects effects;
	struct members *ms = clocks_of(5, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, MSEC, 100 * MSEC);
	answers(ms, 0, 1402 * MSEC, MSEC, 145 * MSEC);
	answers(ms, 0, 1403 * MSEC, MSEC, 190 * MSEC);
	answers(ms, 1, 1404 * MSEC, MSEC, 190 * MSEC);
	answers(ms, 2, 1404 * MSEC, MSEC, 190 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OURS);
	jump_is_ours(ms, &ms->node[0]);
	answers(ms, 3, 1405 * MSEC, 4 * MSEC, 100 * MSEC);
	answers(ms, 3, 1410 * MSEC, MSEC, 190 * MSEC);
	ck_assert(!ms->node[3].jump.open);
	effects_release(&effects);
}

TEST(answers_that_come_late_while_a_stop_is_looked_into_do_not_undo_it)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 60 * MSEC);
	for (int64_t at = 1402 * MSEC; at < 1410 * MSEC; at += MSEC) {
		ms->core->now = (struct instant){at + 70 * MSEC};
		jump_note(ms, &ms->node[0], at + 60 * MSEC, (struct instant){at}); /* carried out at once */
	}
	ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
	answers(ms, 1, 1482 * MSEC, 2 * MSEC, 60 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OURS);
	effects_release(&effects);
}

/* Returns whose jumps these were, if that is known then. */
static enum jump_whose looks(struct members *ms, unsigned node, int64_t at_us, int64_t took_us, int64_t ahead_us)
{
	enum jump_whose last = JUMP_OPEN;

	answers(ms, node, at_us, took_us, ahead_us);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		if (!ms->node[i].jump.open)
			continue;
		last = jump_judge(ms, &ms->node[i]);
		if (last == JUMP_OURS)
			jump_is_ours(ms, &ms->node[i]);
		ck_assert_int_ne(last, JUMP_THEIRS);
	}
	return last;
}

/* Busy stores answer late, and what is known of their clocks from a second before is vague. */
LOOP_TEST(a_jump_of_all_stores_is_one_stop_in_whatever_order_they_are_looked_at, 3)
{
	static const unsigned order[][3] = {{2, 0, 1}, {0, 2, 1}, {1, 0, 2}};
	const unsigned *node = order[_i];
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	for (unsigned i = 0; i < 3; i++)
		looks(ms, i, 400 * MSEC, i == 1 ? 55 * MSEC : 80 * MSEC, 0);
	for (unsigned i = 0; i < 3; i++)
		looks(ms, node[i], 1200 * MSEC + 100 * i, 8 * MSEC, 0);
	looks(ms, 2, 1232 * MSEC, 2200, 70 * MSEC);
	looks(ms, 1, 1235 * MSEC, 5200, 70 * MSEC);
	looks(ms, 0, 1236 * MSEC, 6200, 70 * MSEC);
	looks(ms, 0, 1240 * MSEC, 3 * MSEC, 70 * MSEC);
	looks(ms, 1, 1241 * MSEC, 3 * MSEC, 70 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!ms->node[i].jump.open);
	effects_release(&effects);
}

/*
 * Only the third store notices a short stop. What the other two have shown of it must not count as slack for the next stop, or that would not be
 * noticed there either.
 */
TEST(a_second_stop_soon_after_a_short_one_is_ours_as_well)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	for (int64_t second = 0; second < 4; second++) {
		int64_t ahead_us = second < 2 ? 0 : second < 3 ? 70 * MSEC : 208 * MSEC;

		answers(ms, 0, second * SEC + 20 * MSEC, 14 * MSEC, ahead_us);
		answers(ms, 1, second * SEC + 30 * MSEC, 14 * MSEC, ahead_us);
		answers(ms, 2, second * SEC + 40 * MSEC, 2 * MSEC, ahead_us);
		if (second == 2) {
			ck_assert(!ms->node[0].jump.open && !ms->node[1].jump.open);
			ck_assert_int_eq(whose(ms, 2), JUMP_OURS);
			jump_is_ours(ms, &ms->node[2]);
		}
	}
	ck_assert_int_eq(whose(ms, 2), JUMP_OURS);
	effects_release(&effects);
}

/* A second before the stop the stores were busy and answered late. They were looked at since. */
TEST(stores_that_answered_late_once_are_known_well_again_when_a_stop_comes)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	for (int64_t at = 0; at < 19; at++)
		for (unsigned i = 0; i < 3; i++)
			answers(ms, i, (100 * at + 20 + i) * MSEC, i && at == 9 ? 60 * MSEC : 8 * MSEC, 0);
	answers(ms, 1, 1850 * MSEC, 20 * MSEC, 61 * MSEC);
	answers(ms, 2, 1851 * MSEC, 20 * MSEC, 61 * MSEC);
	answers(ms, 0, 1852 * MSEC, 2 * MSEC, 61 * MSEC);
	answers(ms, 1, 1870 * MSEC, 8 * MSEC, 61 * MSEC);
	answers(ms, 2, 1871 * MSEC, 8 * MSEC, 61 * MSEC);
	ck_assert_int_eq(whose(ms, 0), JUMP_OURS);
	effects_release(&effects);
}

/* The stores were asked after the jump was seen, but answered before a pause of this process: their answers fit both before the stop and after it. */
LOOP_TEST(an_answer_that_came_late_does_not_deny_a_stop, 2)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 61 * MSEC);
	for (unsigned i = 1; i < 3; i++) {
		answers(ms, i, 1600 * MSEC, 199 * MSEC, 61 * MSEC);
		ck_assert_int_eq(whose(ms, 0), JUMP_OPEN);
		ck_assert(nodeset_has(jump_asks(ms, &ms->node[0]), i));
	}
	answers(ms, 1, 1610 * MSEC, 2 * MSEC, _i * 61 * MSEC);
	answers(ms, 2, 1611 * MSEC, 2 * MSEC, _i * 61 * MSEC);
	ck_assert_int_eq(whose(ms, 0), _i ? JUMP_OURS : JUMP_THEIRS);
	effects_release(&effects);
}

/* This host stood still twice, and one store was looked at in between. It shows the same as the others, and has yet to show the rest. */
TEST(a_store_that_was_looked_at_in_the_midst_of_a_stop_is_expected_to_show_the_rest)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 2, 1400 * MSEC, 2 * MSEC, 80 * MSEC);
	answers(ms, 1, 1410 * MSEC, 2 * MSEC, 140 * MSEC);
	memset(ms->votes_fall_us, 0, sizeof(ms->votes_fall_us));
	ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
	jump_is_ours(ms, &ms->node[1]);
	ck_assert_int_ge(ms->votes_fall_us[2], 60 * MSEC);
	ck_assert(!ms->node[2].jump.open);
	answers(ms, 2, 1420 * MSEC, 2 * MSEC, 140 * MSEC);
	ck_assert(!ms->node[2].jump.open);
	effects_release(&effects);
}

/* The store that had shown a part is judged first: the stop is as long as the other shows. */
TEST(a_stop_is_as_long_as_the_store_shows_that_was_looked_at_last)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 1, 1400 * MSEC, 2 * MSEC, 80 * MSEC);
	answers(ms, 2, 1410 * MSEC, 2 * MSEC, 140 * MSEC);
	memset(ms->votes_fall_us, 0, sizeof(ms->votes_fall_us));
	ck_assert_int_eq(whose(ms, 1), JUMP_OURS);
	jump_is_ours(ms, &ms->node[1]);
	ck_assert_int_ge(ms->votes_fall_us[0], 140 * MSEC);
	ck_assert_int_ge(ms->votes_fall_us[1], 60 * MSEC);
	for (unsigned i = 0; i < 3; i++) {
		answers(ms, i, 1420 * MSEC, 2 * MSEC, 140 * MSEC);
		ck_assert(!ms->node[i].jump.open);
	}
	effects_release(&effects);
}

/* What stores show that answer late is vague, and so is what is known of their clocks after the stop. A second stop soon after would be judged by that. */
TEST(after_a_stop_of_this_host_all_stores_are_looked_at_again)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 61 * MSEC);
	for (unsigned i = 1; i < 3; i++)
		answers(ms, i, 1420 * MSEC, 24 * MSEC, 61 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(ms->node[i].jump.open, i == 0);
	members_judge_jumps(ms);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(!ms->node[i].jump.open);
		ck_assert_int_ne(ms->node[i].asked, ASKED_NOTHING);
	}
	effects_release(&effects);
}

/* What is known of the clock is still from before the stop, and the clock has gone on since by as much as those of the others. */
TEST(a_clock_that_was_looked_at_too_late_to_tell_is_expected_to_show_the_stop)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 2, 1400 * MSEC, 2 * MSEC, SEC);
	for (unsigned i = 0; i < 2; i++) /* carried out a millisecond after they were sent, and read 1890 milliseconds after it */
		answers(ms, i, 3300 * MSEC, 1890 * MSEC, SEC + MSEC - 945 * MSEC);
	ck_assert_int_eq(whose(ms, 2), JUMP_OPEN);
	answers(ms, 0, 3310 * MSEC, 2 * MSEC, SEC);
	ck_assert_int_eq(whose(ms, 2), JUMP_OURS);
	jump_is_ours(ms, &ms->node[2]);
	answers(ms, 1, 3320 * MSEC, 2 * MSEC, SEC);
	ck_assert(!ms->node[1].jump.open);
	effects_release(&effects);
}
