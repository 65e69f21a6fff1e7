/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/home.c: questions and rounds share the windows of the stores. */
#include "daemon/core/home.h"
#include "tests/fixture/cluster.h"

#include <check.h>

/* The daemon knows the names of its stores, and each of these answers only when it is told to. */
static void begins_with_window(unsigned window)
{
	cluster_open(3);
	cluster.conf.window = window;
	cluster.conf.limits.waiting = 1024;
	daemon_starts(0);
	passes(QUARANTINE_US);
	says(1, "RATE n limit=100 per=60s");
	hears(1, "OK left=99 *");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
}

static void stores_answer_a_call_each(unsigned turns)
{
	for (unsigned i = 0; i < 3 * turns; i++) {
		passes(MSEC);
		serves(i % 3, waiting_at(i % 3) ? 1 : 0);
	}
}

static void ends(void)
{
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	cluster_close();
}

/* A question needs one store, and a round two at a time: the round would always come too late. */
START_TEST(questions_that_wait_let_a_round_pass)
{
	static const unsigned windows[] = {1, 4};

	begins_with_window(windows[_i]);
	for (unsigned i = 0; i < 100; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	says(2, "LOCK a wait=0");
	stores_answer_a_call_each(3 * windows[_i]);
	hears(2, "OK name=a *");
	ck_assert_uint_eq(waiting_at(0), windows[_i]); /* and the questions go on */
	ends();
}
END_TEST

START_TEST(rounds_that_wait_let_a_question_pass)
{
	begins_with_window(1);
	for (unsigned i = 0; i < 40; i++)
		says(1, "@t%u LOCK m%u wait=0", i, i);
	says(2, "RATE n limit=100 per=60s");
	stores_answer_a_call_each(4);
	hears(2, "OK left=98 *");
	ends();
}
END_TEST

Suite *home_room_suite(void)
{
	Suite *s = suite_create("home_room");
	TCase *c = tcase_create("windows");

	tcase_add_loop_test(c, questions_that_wait_let_a_round_pass, 0, 2);
	tcase_add_test(c, rounds_that_wait_let_a_question_pass);
	suite_add_tcase(s, c);
	return s;
}
