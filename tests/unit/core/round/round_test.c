/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/round/round.c: what the answers of a round come to, as a table. */
#include "daemon/core/round/round.h"

#include <check.h>
#include <stdlib.h>

#define TTL_US (10 * SEC)
#define NOW    ((struct instant){100 * SEC})

/*
 * A word for each store: G5 granted with the base 5, Ba held by a, Wa kept for an older ticket, K another type, F the range refused, N refused, . not answered,
 * ! nobody knows what became of it, - not asked, > to be asked behind the leading store, + left out for now.
 */
static void answer_note(struct round *r, unsigned node, const char *word)
{
	static const char refused[] = "BWKFN";
	struct nodeset *also[] = {&r->taken, &r->queued_behind, &r->wrong_type, &r->range_refused};
	const char *at = strchr(refused, word[0]);

	if (word[0] == 'G') {
		nodeset_add(&r->granted, node);
		r->base[node] = atoi(word + 1);
		r->votes.until[node] = instant_add(NOW, TTL_US);
	} else if (word[0] == '.') {
		nodeset_add(&r->calls.open, node);
	} else if (word[0] == '>') {
		nodeset_add(&r->not_asked, node);
	} else if (word[0] == '+') {
		nodeset_add(&r->left_out, node);
	} else if (at) {
		nodeset_add(&r->refused, node);
		if (word[0] != 'N')
			nodeset_add(also[at - refused], node);
		if (word[0] == 'K')
			nodeset_add(&r->taken, node); /* somebody's, whoever that is */
		r->taken_by[node] = (unsigned char)word[1];
	}
}

static enum round_outcome outcome_of(const struct round *r, unsigned nodes)
{
	int64_t token;

	return round_outcome(r, nodes, NOW, &token);
}

/* Returns the number of stores. */
static unsigned answers_note(struct round *r, const char *answers)
{
	char text[64], *rest = text, *word;
	unsigned n = 0;

	memset(r, 0, sizeof(*r));
	votes_clear(r->votes.until, NODES_MAX);
	r->ttl_us = TTL_US;
	strcpy(text, answers);
	while ((word = strsep(&rest, " ")))
		answer_note(r, n++, word);
	return n;
}

static const struct row {
	const char *answers;
	enum round_outcome outcome;
} rows[] = {
	{"G5", ROUND_WON},
	{".", ROUND_PENDING},
	{"Ba", ROUND_HELD_ELSEWHERE},
	{"Wa", ROUND_HELD_ELSEWHERE},
	{"K", ROUND_WRONG_TYPE},
	{"N", ROUND_NO_ANSWER},
	{"!", ROUND_NO_ANSWER},
	{"G5 G5", ROUND_WON},
	{"G5 .", ROUND_PENDING},
	{"G5 G6", ROUND_RAISE},
	{"G5 Ba", ROUND_SPLIT},
	{"G5 !", ROUND_NO_ANSWER},
	{"G5 G5 .", ROUND_WON},
	{"G5 G6 .", ROUND_UNEVEN},
	{"G5 G6 +", ROUND_RAISE},
	{"G5 G6 !", ROUND_RAISE},
	{"G5 G6 G6", ROUND_WON},
	{"G5 G6 G7", ROUND_RAISE},
	{"G5 . .", ROUND_PENDING},
	{"Ba . .", ROUND_PENDING},
	{"Ba Ba .", ROUND_HELD_ELSEWHERE},
	{"Ba Bb .", ROUND_UNDECIDED}, /* the third decides whether somebody has it */
	{"Ba Bb Bc", ROUND_SPLIT},
	{"Ba Bb Ba", ROUND_HELD_ELSEWHERE},
	{"Ba Wb .", ROUND_HELD_ELSEWHERE},
	{"Wa Wb .", ROUND_HELD_ELSEWHERE},
	{"Wa G5 .", ROUND_UNDECIDED},
	{"Ba G5 .", ROUND_UNDECIDED},
	{"Ba G5 +", ROUND_UNDECIDED},
	{"Ba G5 !", ROUND_SPLIT},
	{"Ba G5 -", ROUND_SPLIT},
	{"Ba N .", ROUND_UNDECIDED},
	{"Ba N N", ROUND_NO_ANSWER},
	{"Ba ! !", ROUND_NO_ANSWER},
	{"K K .", ROUND_WRONG_TYPE},
	{"K Ba .", ROUND_UNDECIDED},
	{"F F .", ROUND_RANGE_REFUSED},
	{"F G5 .", ROUND_PENDING},
	{"F G5 !", ROUND_RANGE_REFUSED},
	{"F Ba Ba", ROUND_HELD_ELSEWHERE},
	{"G5 G5 G5 . .", ROUND_WON},
	{"G5 G5 G6 . .", ROUND_UNEVEN},
	{"G5 G5 Ba Ba .", ROUND_UNDECIDED},
	{"G5 G5 Ba Ba Ba", ROUND_HELD_ELSEWHERE},
	{"G5 G5 Ba Ba Bb", ROUND_SPLIT},
	{"G5 ! ! ! .", ROUND_NO_ANSWER},
	{"G5 G5 ! ! .", ROUND_PENDING},
	{"G5 G5 G5 G5 . . .", ROUND_WON},
	{"Ba Ba Ba Ba . . .", ROUND_HELD_ELSEWHERE},
	{"Ba Bb Bc Ba Bb Bc Ba Bb Bc", ROUND_SPLIT},
	{"G1 G2 G3 G4 G5 . . . .", ROUND_UNEVEN},
	{"G1 G2 G3 G4 G5 G6 G7 G8 G9", ROUND_RAISE},
	{"G1 G1 G1 G1 G5 G5 G5 G5 G5", ROUND_WON},
};

LOOP_TEST(answers_come_to_an_outcome, sizeof(rows) / sizeof(rows[0]))
{
	struct round r;
	unsigned nodes = answers_note(&r, rows[_i].answers);

	r.range = 1;
	ck_assert_msg(outcome_of(&r, nodes) == rows[_i].outcome, "%s: %d, not %d", rows[_i].answers, (int)outcome_of(&r, nodes), (int)rows[_i].outcome);
}

/* An answer that is still open when the time is over counts for nothing. */
LOOP_TEST(a_round_whose_time_is_over_is_decided, sizeof(rows) / sizeof(rows[0]))
{
	struct round r;
	unsigned nodes = answers_note(&r, rows[_i].answers);

	r.expired = true;
	ck_assert_int_ge(outcome_of(&r, nodes), ROUND_RAISE);
}

/* A store that refuses the range, or that shows a holder, is not the reason that the round was not won. */
LOOP_TEST(a_grant_with_too_little_validity_came_too_late, 4)
{
	static const char *const answers[] = {"G5 G5 .", "G5 G5 F", "G5 G5 Ba", "G5 G5 N"};
	struct instant late = instant_add(NOW, TTL_US - loss_lead_us(TTL_US) - TTL_US / 10);
	struct round r;
	unsigned nodes = answers_note(&r, answers[_i]);
	int64_t token;

	r.range = 1;
	ck_assert_int_eq(round_outcome(&r, nodes, instant_add(late, -1), &token), ROUND_WON);
	ck_assert_int_eq(token, 5);
	ck_assert_int_eq(round_outcome(&r, nodes, late, &token), ROUND_TOO_LATE);
}

TEST(a_second_round_wins_with_the_token_that_it_asked_for)
{
	struct round r;
	unsigned nodes = answers_note(&r, "G5 G6 .");
	int64_t token = 0;

	r.question = QUESTION_RAISE;
	r.token = 7;
	ck_assert_int_eq(round_outcome(&r, nodes, NOW, &token), ROUND_WON);
	ck_assert_int_eq(token, 7);
}

TEST(a_second_round_of_which_a_store_hangs_is_a_split)
{
	struct round r;
	unsigned nodes = answers_note(&r, "G5 . -");

	r.question = QUESTION_RAISE;
	r.expired = true;
	ck_assert_int_eq(outcome_of(&r, nodes), ROUND_SPLIT);
}

TEST(the_leading_store_decides_whether_the_others_are_asked)
{
	static const struct row led[] = {
		{"G5 > >", ROUND_PENDING}, {"! > >", ROUND_PENDING},          {"F > >", ROUND_PENDING},
		{"K > >", ROUND_PENDING},  {"Ba > >", ROUND_LEADER_TAKEN},    {"Wa > >", ROUND_LEADER_TAKEN},
	};
	static const struct row next[] = {
		{"Ba G5 >", ROUND_PENDING}, {"Ba ! >", ROUND_PENDING},      {"Ba K >", ROUND_PENDING},
		{"Ba Bb >", ROUND_LEADER_TAKEN}, {"Ba Ba >", ROUND_HELD_ELSEWHERE},
	};
	struct round r;

	for (size_t i = 0; i < sizeof(led) / sizeof(led[0]); i++) {
		answers_note(&r, led[i].answers);
		ck_assert_msg(round_led(&r, 3, 0) == led[i].outcome, "%s", led[i].answers);
	}
	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		answers_note(&r, next[i].answers);
		ck_assert_msg(round_led(&r, 3, 1) == next[i].outcome, "%s", next[i].answers);
	}
	answers_note(&r, "Ba > >");
	ck_assert_int_eq(round_failure(&r, 3), ROUND_LEADER_TAKEN);
}

TEST(bases_and_times_are_those_of_a_quorum)
{
	struct round r;
	unsigned nodes = answers_note(&r, "G7 G5 G9 . .");

	ck_assert_int_eq(round_largest(&r, nodes), 9);
	ck_assert_int_eq(round_least(&r, nodes), 9);
	nodes = answers_note(&r, "G7 G5 G9 G6 .");
	ck_assert_int_eq(round_least(&r, nodes), 7);
	nodes = answers_note(&r, "Ba Ba .");
	r.pttl_ms[0] = 300;
	r.pttl_ms[1] = 200;
	ck_assert_int_eq(round_pttl_ms(&r, nodes), 200); /* with the one that is open, which may be free */
	r.pttl_ms[1] = -1;
	ck_assert_int_eq(round_pttl_ms(&r, nodes), 300);
	r.pttl_ms[0] = -1;
	ck_assert_int_eq(round_pttl_ms(&r, nodes), -1);
	ck_assert_uint_eq(round_same_value_at(&r, nodes, 0), 2);
	ck_assert_uint_eq(round_same_value_at(&r, nodes, 2), 0);
}
