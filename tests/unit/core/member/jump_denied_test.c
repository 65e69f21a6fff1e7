/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/clock.c, observe.c, member.c: a store has jumped, and before the verdict this host stands still, or the store hangs. */
#include "daemon/core/member/membership.h"
#include "tests/fixture/clock_looks.h"

/* What looks at these stores came to, once those that are open are judged. */
static void settles(struct members *ms)
{
	members_judge_jumps(ms);
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		ms->node[i].asked = ASKED_NOTHING;
}

/*
 * Store 2 does not show the jump: it was looked at since the jump was seen, or is first met then. Store 0 hangs from before that until after a stop of the same
 * length. Both then look like store 1, which has not shown the stop yet.
 */
LOOP_TEST(a_jump_that_was_denied_is_not_like_a_stop_that_comes_later, 4)
{
	static const unsigned order[][2] = {{0, 2}, {2, 0}};
	bool met = _i >= 2;
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	if (met)
		memset(&ms->node[2].clock, 0, sizeof(ms->node[2].clock));
	answers(ms, 1, 1400 * MSEC, 4 * MSEC, 166 * MSEC);
	answers(ms, 2, 1410 * MSEC, 4 * MSEC, 0);
	settles(ms);
	for (unsigned i = 0; i < 2; i++) {
		answers(ms, order[_i % 2][i], (1430 + 2 * i) * MSEC, 4 * MSEC, 169 * MSEC);
		settles(ms);
		ck_assert(ms->node[1].jump.open);
	}
	answers(ms, 1, 1440 * MSEC, 4 * MSEC, 335 * MSEC);
	settles(ms);
	for (unsigned i = 0; i < 3; i += 2)
		answers(ms, i, 1450 * MSEC, 4 * MSEC, 169 * MSEC);
	settles(ms);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(!ms->node[i].jump.open);
		ck_assert_int_eq(ms->node[i].evidence.why != EVIDENCE_NONE, i == 1);
	}
	effects_release(&effects);
}

static void rings(struct members *ms, struct member *m)
{
	ms->core->now = m->timer.at;
	heap_cancel(&ms->core->timers, &m->timer);
	member_fired(ms, m);
}

static void is_judged_by_its_timer(struct members *ms, struct member *m, int64_t by_us)
{
	while (m->jump.open && timer_is_set(&m->timer))
		rings(ms, m);
	ck_assert(m->evidence.why && !m->jump.open);
	ck_assert_int_le(ms->core->now.us, by_us);
	heap_release(&ms->core->timers);
}

/* The store hangs as well, so only its timer can tell. A stop of this host that comes later is not what the store has shown. */
TEST(a_store_that_hangs_after_it_jumped_is_judged_when_the_time_of_the_others_is_over)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);
	struct member *m = &ms->node[1];

	all_answer(ms);
	answers(ms, 1, 1400 * MSEC, 4 * MSEC, 166 * MSEC);
	members_judge_jumps(ms);
	member_probe(ms, m);
	is_judged_by_its_timer(ms, m, 1400 * MSEC + 2 * ms->core->conf.timeout_us);
	effects_release(&effects);
}

/* Its probe has hung since before it jumped, and its timeout is over. Another call shows the jump, so no timer runs that could tell. */
TEST(a_store_that_hangs_before_it_jumps_is_judged_when_the_time_of_the_others_is_over)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);
	struct member *m = &ms->node[1];

	all_answer(ms);
	member_probe(ms, m);
	rings(ms, m);
	ck_assert(m->stalled && !timer_is_set(&m->timer));
	answers(ms, 1, 1400 * MSEC, 4 * MSEC, 166 * MSEC);
	members_judge_jumps(ms);
	is_judged_by_its_timer(ms, m, 1400 * MSEC + 2 * ms->core->conf.timeout_us);
	effects_release(&effects);
}

/* The store runs on this host, so its clock stood still as well. */
TEST(a_stop_that_one_store_denies_is_ours_when_the_others_have_shown_it_again)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 1, 1400 * MSEC, 4 * MSEC, 166 * MSEC);
	answers(ms, 2, 1410 * MSEC, 4 * MSEC, 0);
	answers(ms, 0, 1412 * MSEC, 4 * MSEC, 166 * MSEC);
	settles(ms);
	answers(ms, 1, 1417 * MSEC, 4 * MSEC, 166 * MSEC);
	answers(ms, 2, 1418 * MSEC, 4 * MSEC, 0);
	settles(ms);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!ms->node[i].jump.open && !ms->node[i].evidence.why);
	effects_release(&effects);
}

/* The clock of store 0 was known so roughly before the stop that its jump is like those of both others. Store 1 had jumped by itself. */
TEST(a_jump_that_is_known_only_roughly_does_not_hide_a_longer_one)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	answers(ms, 0, 900 * MSEC, 600 * MSEC, 0);
	answers(ms, 1, 1000 * MSEC, 4 * MSEC, 0);
	answers(ms, 2, 1001 * MSEC, 4 * MSEC, 0);
	answers(ms, 1, 1400 * MSEC, 4 * MSEC, 200 * MSEC);
	settles(ms);
	answers(ms, 2, 1410 * MSEC, 4 * MSEC, 0);
	settles(ms);
	answers(ms, 0, 1411 * MSEC, 400 * MSEC, 0);
	answers(ms, 1, 1430 * MSEC, 4 * MSEC, 800 * MSEC);
	answers(ms, 2, 1430 * MSEC, 4 * MSEC, 600 * MSEC);
	answers(ms, 0, 1435 * MSEC, 4 * MSEC, 600 * MSEC);
	settles(ms);
	answers(ms, 1, 1445 * MSEC, 4 * MSEC, 800 * MSEC);
	settles(ms);
	for (int64_t at = 1446 * MSEC; at < 1470 * MSEC; at += 10 * MSEC) {
		for (unsigned i = 0; i < 3; i++)
			answers(ms, i, at, 4 * MSEC, i == 1 ? 800 * MSEC : 600 * MSEC);
		settles(ms);
	}
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(ms->node[i].evidence.why != EVIDENCE_NONE, i == 1);
	effects_release(&effects);
}

/* The clock of the store was known so roughly that the stop does not show. But it has told its time since: what comes then is no part of the stop. */
TEST(a_store_that_has_told_its_time_since_a_stop_and_then_answers_late_has_jumped_by_itself)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	for (unsigned i = 0; i < 3; i++)
		answers(ms, i, 1000 * MSEC, i < 2 ? 2 * MSEC : 600 * MSEC, 0);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 200 * MSEC);
	settles(ms);
	answers(ms, 2, 1410 * MSEC, 2 * MSEC, 200 * MSEC);
	settles(ms);
	answers(ms, 2, 1430 * MSEC, 100 * MSEC, 200 * MSEC);
	settles(ms);
	answers(ms, 2, 1432 * MSEC, 2 * MSEC, 380 * MSEC);
	ck_assert(ms->node[2].jump.open);
	for (int64_t at = 1434 * MSEC; at < 1460 * MSEC; at += 10 * MSEC)
		for (unsigned i = 1; i < 4; i++) {
			answers(ms, i % 3, at, 2 * MSEC, i == 2 ? 380 * MSEC : 200 * MSEC);
			settles(ms);
		}
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(ms->node[i].evidence.why != EVIDENCE_NONE, i == 2);
	effects_release(&effects);
}

/* The clock of store 2 was known so roughly that a stop of 2 s does not show. It answers what was asked just before store 0 showed the stop, and then steps. */
TEST(a_store_that_steps_behind_an_answer_that_was_asked_for_just_before_a_stop_was_seen_has_jumped_by_itself)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	for (unsigned i = 0; i < 3; i++)
		answers(ms, i, 1000 * MSEC, i < 2 ? 2 * MSEC : 2500 * MSEC, 0);
	answers(ms, 0, 1400 * MSEC, 2 * MSEC, 2000 * MSEC);
	settles(ms);
	answers(ms, 2, 1401 * MSEC, 2 * MSEC, 800 * MSEC);
	ck_assert(!ms->node[2].jump.open);
	settles(ms);
	answers(ms, 2, 1405 * MSEC, 2 * MSEC, 1100 * MSEC);
	ck_assert(ms->node[2].jump.open);
	settles(ms);
	for (int64_t at = 1434 * MSEC; at < 1760 * MSEC; at += 10 * MSEC)
		for (unsigned i = 1; i < 4; i++) {
			answers(ms, i % 3, at, 2 * MSEC, i == 2 ? 1100 * MSEC : 2000 * MSEC);
			settles(ms);
		}
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(ms->node[i].evidence.why != EVIDENCE_NONE, i == 2);
	effects_release(&effects);
}

/* Each step back is too small to be noticed. In the end the store shows no jump, like the others, but keys may have ended early meanwhile. */
TEST(a_jump_that_is_taken_back_step_by_step_is_no_stop)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);
	struct member *m = &ms->node[0];

	all_answer(ms);
	for (int step = 0; step < 3; step++)
		answers(ms, 0, 1400 * MSEC + step * 10 * MSEC, 2 * MSEC, 70 * MSEC - step * 50 * MSEC);
	ck_assert(m->jump.open && !m->jump.undone);
	for (int64_t at = 1430 * MSEC; at < 1600 * MSEC; at += 50 * MSEC) {
		answers(ms, 1, at, 2 * MSEC, 0);
		answers(ms, 2, at, 2 * MSEC, 0);
		settles(ms);
	}
	ck_assert(m->evidence.why && !m->jump.open);
	effects_release(&effects);
}

/* The store had its time while the others were asked, before this process was stopped. It was not asked since. */
TEST(a_store_that_showed_a_part_of_a_stop_is_asked_for_the_rest_though_its_time_is_over)
{
	struct effects effects;
	struct members *ms = clocks_of(3, &effects);

	all_answer(ms);
	answers(ms, 2, 1400 * MSEC, 4 * MSEC, 80 * MSEC);
	settles(ms);
	answers(ms, 0, 1445 * MSEC, 4 * MSEC, 200 * MSEC);
	settles(ms);
	answers(ms, 1, 2000 * MSEC, 4 * MSEC, 200 * MSEC);
	settles(ms);
	answers(ms, 2, 2010 * MSEC, 4 * MSEC, 200 * MSEC);
	settles(ms);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!ms->node[i].evidence.why);
	effects_release(&effects);
}
