/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/round/home.c: questions and rounds share the windows of the stores; a store whose answers make no sense is not asked without end. */
#include "daemon/core/round/home.h"
#include "tests/fixture/cluster.h"

#include <check.h>

/* The daemon knows the names of its stores, and each of these answers only when it is told to. */
static void begins(unsigned window, enum home_lost lost)
{
	cluster_open(3);
	cluster.conf.home_lost = lost;
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
LOOP_TEST(questions_that_wait_let_a_round_pass, 2)
{
	static const unsigned windows[] = {1, 4};

	begins(windows[_i], LOST_CLOSED);
	for (unsigned i = 0; i < 100; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	says(2, "LOCK a wait=0");
	stores_answer_a_call_each(3 * windows[_i]);
	hears(2, "OK name=a *");
	ck_assert_uint_eq(waiting_at(0), windows[_i]); /* and the questions go on */
	ends();
}

TEST(rounds_that_wait_let_a_question_pass)
{
	begins(1, LOST_CLOSED);
	for (unsigned i = 0; i < 40; i++)
		says(1, "@t%u LOCK m%u wait=0", i, i);
	says(2, "RATE n limit=100 per=60s");
	stores_answer_a_call_each(4);
	hears(2, "OK left=98 *");
	ends();
}

static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};

TEST(a_peer_that_floods_delays_another_by_no_more_than_a_question_for_each_of_its_own)
{
	begins(1, LOST_CLOSED);
	session_opens_from(30, 0, &other);
	for (unsigned i = 0; i < 90; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	says(30, "@1 RATE n limit=100 per=60s");
	says(30, "@2 RATE n limit=100 per=60s");
	stores_answer_a_call_each(5);
	hears(30, "@1 OK left=98 *");
	hears(30, "@2 OK left=97 *");
	ends();
}

TEST(questions_of_a_peer_that_has_gone_have_their_turn)
{
	begins(1, LOST_CLOSED);
	session_opens_from(30, 0, &other);
	for (unsigned i = 0; i < 90; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	says(30, "@1 RATE n limit=100 per=60s");
	says(30, "@2 RATE n limit=100 per=60s wait=9s");
	goes(30, GONE_RESET);
	stores_answer_a_call_each(5);
	(void)ignores(1);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	says(2, "RATE n limit=100 per=60s");
	hears(2, "OK left=96 *");
	ends();
}

/* A TAKE waits for a store that has joined, a RATE does not: they stand in different lines. */
TEST(a_flood_of_RATEs_delays_a_job_of_another_peer_by_no_more)
{
	begins(1, LOST_CLOSED);
	session_opens_from(30, 0, &other);
	for (unsigned i = 0; i < 90; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	says(30, "DEFER q x");
	stores_answer_a_call_each(3);
	hears(30, "OK *");
	says(30, "TAKE q");
	stores_answer_a_call_each(6);
	hears(30, "OK queue=q job=* *");
	ends();
}

/* Each home has its crowd. If a request might wait as long at each of them, all would hear so much later that there was no room. */
TEST(a_request_that_goes_to_the_next_home_waits_no_longer_for_that)
{
	int64_t most;

	begins(1, LOST_NEXT);
	most = cluster.conf.soon_us + 2 * cluster.conf.timeout_us;
	for (unsigned i = 0; i < 900; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	for (int64_t us = 0, i = 0; us < most + 20 * MSEC; us += 10 * MSEC, i++) {
		passes(10 * MSEC);
		serves((unsigned)(i % 3), waiting_at((unsigned)(i % 3)) ? 1 : 0);
	}
	(void)ignores(1);
	ck_assert_uint_eq(unanswered(1), 0);
	ends();
}

/* Three times as many RATEs come as the stores can answer. */
TEST(a_flood_of_questions_does_not_keep_a_job_from_being_renewed)
{
	unsigned n = 0;

	begins(1, LOST_CLOSED);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	says(2, "DEFER q x");
	hears(2, "OK *");
	says(2, "TAKE q ttl=3s");
	hears(2, "OK queue=q job=* ttl_ms=3000 *");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned k = 0; k < 10; k++, n++) {
			says(1, "@t%u RATE m%u limit=100 per=60s", n, n % 100);
			passes(MSEC);
		}
		for (unsigned node = 0; node < 3; node++)
			serves(node, waiting_at(node) ? 1 : 0);
		(void)ignores(1);
	}
	hears_nothing(2);
	ends();
}

/* A job of the queue q is renewed every 4 ms, and its home answers two calls meanwhile. */
TEST(jobs_that_are_renewed_leave_the_turns_of_the_others_as_they_are)
{
	begins(1, LOST_CLOSED);
	session_opens_from(30, 0, &other);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	for (unsigned i = 0; i < 250; i++) {
		says(2, "DEFER q x");
		hears(2, "OK *");
		says(2, "TAKE q ttl=3s");
		hears(2, "OK queue=q job=* ttl_ms=3000 *");
		passes(4 * MSEC);
	}
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	for (unsigned i = 0; i < 300; i++)
		says(30, "@k%u TAKE z%u wait=100s", i, i);
	for (unsigned i = 0; i < 30; i++)
		says(1, "@t%u RATE m%u limit=100 per=60s", i, i);
	for (unsigned i = 0; i < 60; i++) {
		passes(2 * MSEC);
		for (unsigned node = 0; node < 3; node++)
			serves(node, waiting_at(node) ? 1 : 0);
	}
	for (unsigned i = 0; i < 30; i++)
		hears(1, "@* OK left=99 *");
	hears_nothing(2);
	ends();
}

/* Of the first question that waits there. */
static struct parcel *question_at(unsigned node)
{
	struct parcel *p;

	TAILQ_FOREACH(p, &cluster.daemon[0].queue[node], link)
		if (p->call.kind == CALL_HOME)
			return p;
	return NULL;
}

TEST(a_store_that_is_called_otherwise_and_does_not_say_how_is_not_asked_without_end)
{
	struct parcel *p;
	unsigned calls;

	begins(1, LOST_CLOSED);
	calls = asked(CALL_HOME);
	all_feel(MOOD_TARDY);
	says(1, "RATE n limit=100 per=60s");
	for (unsigned k = 0; k < 10; k++)
		for (unsigned i = 0; i < 3; i++)
			if ((p = question_at(i))) {
				p->answer.code = 'N';
				p->answer.found = SPAN("");
				serves(i, waiting_at(i));
			}
	hears(1, "ERR UNAVAILABLE *");
	ck_assert_uint_eq(asked(CALL_HOME), calls + 1);
	ends();
}
