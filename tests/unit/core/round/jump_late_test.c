/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/round/round.c: an answer that shows that the clock of its store was set forward is no vote, because keys of others may have ended there. */
#include "daemon/core/member/clock.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

/* A late command is refused, and so is one after a jump that is as long as the timeout. Tokens are moments of now, so there is no second round. */
static void patient_daemons_start(void)
{
	cluster_open(3);
	cluster.conf.timeout_us = 500 * MSEC;
	daemon_starts(0);
	daemon_starts(1);
	passes(60500 * MSEC);
}

/* Session 1 of daemon 0 has the votes of stores 0 and 1 for some time yet. */
static void a_bare_quorum_holds(void)
{
	patient_daemons_start();
	session_opens(2, 1);
	falls(2);
	says(1, "LOCK a renew=no ttl=2s");
	hears(1, "OK name=a *");
	comes(2);
}

FIXTURE(.teardown = cluster_close)

TEST(a_grant_that_shows_a_jump_is_no_vote)
{
	a_bare_quorum_holds();
	passes(1600 * MSEC);
	cluster.node[0].clock_us = 450 * MSEC;
	says(2, "LOCK a ttl=10s");
	passes(10 * MSEC);
	hears(2, "BUSY *");
	ignores(1);
}

TEST(a_grant_behind_the_answer_that_shows_a_jump_is_no_vote)
{
	a_bare_quorum_holds();
	passes(1600 * MSEC);
	feels(0, MOOD_SILENT);
	cluster.node[0].clock_us = 450 * MSEC;
	session_opens(3, 1);
	says(3, "LOCK b ttl=10s");
	says(2, "LOCK a ttl=10s");
	feels(0, MOOD_WELL);
	passes(10 * MSEC);
	hears(2, "BUSY *");
	ignores(1);
	ignores(3);
}

TEST(a_key_that_is_put_back_by_the_answer_that_shows_a_jump_is_no_vote)
{
	patient_daemons_start();
	says(1, "LOCK a ttl=600ms");
	hears(1, "OK *");
	refuses(0, "BUSY"); /* its key ends sooner than that of the others */
	passes(200 * MSEC);
	feels(0, MOOD_WELL);
	passes(199 * MSEC);
	feels(1, MOOD_SILENT);
	cluster.node[0].clock_us = 250 * MSEC;
	passes(MSEC);
	ck_assert(key_is_there(0, "a"));
	says(1, "CHECK a");
	ck_assert_int_le(number_in(hears(1, "OK name=a *"), "valid_ms"), 400); /* of what store 1 has vouched for */
	ignores(1);
}

/* The answer that ends the wait of an untagged request, and of those behind it, shows that the clock was set forward by which a vote for a was counted. */
LOOP_TEST(a_hold_that_a_jump_ends_is_LOST_before_the_next_request_is_served, 6)
{
	static const struct {
		const char *request, *answer;
	} behind[] = {{"CHECK a", "ERR LOST *"},         {"UNLOCK a", "ERR LOST *"},        {"EXTEND a", "ERR LOST *"},
		      {"LOCK a ttl=1s", "BUSY name=a *"}, {"SHOW a", "\\* role=kept pos=0 *"}, {"LIST", "\\* name=a waiters=0"}};

	cluster_begin(3);
	falls(2);
	says(1, "LOCK a ttl=1s renew=no");
	hears(1, "OK name=a *");
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	all_feel(MOOD_SILENT);
	says(1, "EXTEND b");
	says(1, "%s", behind[_i].request);
	serves(1, 1);
	hears_nothing(1);
	cluster.node[0].clock_us += 4 * SEC;
	serves(0, 1);
	hears(1, "OK name=b *");
	hears(1, "! LOST name=a fence=* reason=expired");
	hears(1, behind[_i].answer);
	ignores(1);
	all_feel(MOOD_WELL);
}

/* A step has time to lose one of them: the other is lost as it is asked for. */
TEST(of_many_holds_that_a_jump_ends_each_is_LOST_before_a_request_about_it_is_served)
{
	cluster_begin(3);
	falls(2);
	cluster.conf.work = 1;
	service_reload(cluster.daemon[0].service, &cluster.conf);
	says(1, "@0 LOCK a ttl=1s renew=no");
	hears(1, "@0 OK name=a *");
	says(1, "@0 LOCK c ttl=1s renew=no");
	hears(1, "@0 OK name=c *");
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	all_feel(MOOD_SILENT);
	says(1, "EXTEND b");
	says(1, "CHECK a");
	says(1, "CHECK c");
	serves(1, 1);
	cluster.node[0].clock_us += 4 * SEC;
	serves(0, 1);
	hears(1, "OK name=b *");
	for (unsigned i = 0; i < 2; i++) {
		hears(1, "! LOST name=* fence=* reason=expired");
		hears(1, "ERR LOST *");
	}
	ignores(1);
	all_feel(MOOD_WELL);
}

/*
 * Stores 0 and 1 show a stop of this host, but store 0 so roughly that it is asked once more, and then it is gone. So no answer shows that both agree: the
 * timer of store 1 finds it. Only then the votes of store 2, which is silent, fall, and those of store 1 by what store 0 has shown beyond.
 */
TEST(a_hold_that_a_stop_ends_is_LOST_when_it_is_found_without_an_answer)
{
	patient_daemons_start();
	falls(0);
	says(1, "LOCK a renew=no ttl=2s");
	hears(1, "OK name=a *");
	comes(0);
	passes(1200 * MSEC);
	feels(0, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(2, "LOCK b");
	passes(100 * MSEC);
	clocks_go_on_without_us(200 * MSEC);
	says(3, "LOCK c");
	clocks_go_on_without_us(40 * MSEC);
	passes(220 * MSEC);
	serves(0, 1);
	feels(1, MOOD_SILENT);
	falls(0);
	passes(29 * MSEC);
	ck_assert(!was_logged("stood-still *"));
	hears_nothing(1);
	passes(MSEC);
	ck_assert(was_logged("stood-still *"));
	hears(1, "! LOST name=a fence=* reason=expired");
	all_feel(MOOD_WELL);
	ignores(2);
	ignores(3);
}

/* Votes fall as the round is won, which other votes have delayed. On the longer terms the loss is told sooner than on those before. */
LOOP_TEST(an_EXTEND_that_is_over_as_it_is_won_is_answered_LOST, 2)
{
	cluster_open(3);
	cluster.conf.timeout_us = SEC;
	cluster.conf.max_delay_us = 10 * SEC;
	daemon_starts(0);
	passes(90500 * MSEC);
	says(1, "LOCK a ttl=1s delay=10s");
	hears(1, "OK name=a *");
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a ttl=1500ms");
	if (_i)
		says(1, "CHECK a");
	passes(100 * MSEC);
	cluster.node[0].clock_us += 600 * MSEC;
	says(2, "LOCK b");
	passes(825 * MSEC);
	hears_nothing(1);
	cluster.node[1].clock_us += 3 * SEC;
	serves(1, 1);
	hears(1, "! LOST name=a fence=* reason=quorum");
	hears(1, "ERR LOST *");
	if (_i)
		hears(1, "ERR LOST *");
	hears_nothing(1);
	all_feel(MOOD_WELL);
	ignores(2);
}

/* This host stood still. The first request afterwards is served all the same. */
LOOP_TEST(the_first_request_after_a_stop_is_granted, 2)
{
	patient_daemons_start();
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = _i ? 20 * SEC : 300 * MSEC;
	says(1, "LOCK a");
	passes(10 * MSEC);
	hears(1, "OK name=a *");
	for (unsigned i = 0; i < 3; i++)
		ck_assert_str_eq(store_state(0, i), "joined");
}

/* --- answers from before a jump that arrive after it is known --- */

LOOP_TEST(a_store_that_is_slow_when_others_show_a_stop_is_not_marked, 3)
{
	cluster_begin(3);
	passes(1500 * MSEC);
	feels(_i, MOOD_TARDY);
	says(1, "LOCK a");
	passes(MSEC);
	clocks_go_on_without_us(2 * SEC);
	says(2, "LOCK b"); /* all are asked: the others show the stop */
	passes(20 * MSEC);
	feels(_i, MOOD_WELL);
	passes(3 * SEC);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_str_eq(store_state(0, i), "joined");
		ck_assert_int_eq(marker_of(i)[0], 'j');
	}
	ck_assert_uint_eq(asked(CALL_MARK), 3);
	ignores(1);
	ignores(2);
}

/* The store carried out its earlier calls while this host stood still. */
LOOP_TEST(a_store_that_shows_a_part_of_a_stop_and_then_the_rest_is_not_marked, 2)
{
	int64_t own = _i ? 300 * MSEC : 0;

	cluster_begin(3);
	passes(1500 * MSEC);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	passes(MSEC);
	clocks_go_on_without_us(SEC);
	cluster.node[0].clock_us += own;
	feels(0, MOOD_TARDY); /* carried out now */
	clocks_go_on_without_us(SEC);
	feels(0, MOOD_SILENT);
	serves(0, 1);
	ck_assert_str_eq(store_state(0, 0), "probing: its clock jumped ahead, or ours stood still: the others are asked");
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	ck_assert(was_logged("stood-still *"));
	feels(0, MOOD_WELL);
	passes(3 * SEC);
	ck_assert(!was_logged("stood-still *")); /* the stop has lowered the votes by its length, once */
	ck_assert_int_eq(marker_of(0)[0], own ? 'q' : 'j');
	for (unsigned i = own ? 1 : 0; i < 3; i++)
		ck_assert_str_eq(store_state(0, i), "joined");
	ignores(1);
}

/* Each of two connections keeps its order, but the answers of one come after those of the other. */
TEST(an_older_answer_on_another_connection_does_not_undo_a_stop)
{
	struct core core = {.conf = {.nodes = 3, .timeout_us = 50 * MSEC}};
	static struct members ms;
	struct member *m = &ms.node[0];

	memset(&ms, 0, sizeof(ms));
	ms.core = &core;
	for (unsigned i = 0; i < 3; i++) {
		ms.node[i].index = i;
		ms.node[i].connected = true;
		for (core.now.us = 0; core.now.us < SEC; core.now.us += SEC / 2)
			jump_note(&ms, &ms.node[i], SEC + core.now.us, core.now);
	}
	core.now.us = SEC;
	ck_assert(jump_note(&ms, m, 4 * SEC, (struct instant){SEC - 2 * MSEC})); /* 2 s too many */
	core.now.us = SEC + MSEC;
	jump_note(&ms, m, 2 * SEC - 2 * MSEC, (struct instant){SEC - 3 * MSEC}); /* when all was well */
	ck_assert_int_eq(m->clock.low, 3 * SEC);
	jump_note(&ms, m, 4 * SEC - 43 * MSEC, (struct instant){SEC - 3 * MSEC}); /* nor what the slack would take for true of both */
	ck_assert_int_gt(m->clock.high, 3 * SEC);
	ck_assert(!m->jump.undone);
	ck_assert_int_eq(jump_judge(&ms, m), JUMP_OPEN);
	for (unsigned i = 1; i < 3; i++)
		jump_note(&ms, &ms.node[i], 4 * SEC + MSEC, core.now);
	ck_assert_int_eq(jump_judge(&ms, m), JUMP_OURS);
	/* What is asked for later tells the truth, also that a clock was set back. */
	core.now.us = SEC + 3 * MSEC;
	jump_note(&ms, m, 2 * SEC, (struct instant){SEC + 2 * MSEC});
	ck_assert_int_lt(m->clock.high, SEC);
}

/* A call from before a stop of this daemon may have been carried out at any moment of the stop. Its answer does not replace a look that shows more. */
TEST(a_clock_that_was_set_back_during_a_stop_is_seen_to_be_set_right)
{
	struct core core = {.conf = {.nodes = 3, .timeout_us = 50 * MSEC}};
	static struct members ms;
	struct member *m = &ms.node[0];

	memset(&ms, 0, sizeof(ms));
	ms.core = &core;
	m->connected = true;
	jump_note(&ms, m, 0, core.now);
	core.now.us = 7 * SEC;
	ck_assert(!jump_note(&ms, m, core.now.us - 320 * MSEC, (struct instant){2 * SEC}));
	core.now.us += MSEC;
	ck_assert(!jump_note(&ms, m, core.now.us - 320 * MSEC, (struct instant){7 * SEC - MSEC}));
	core.now.us += SEC;
	ck_assert(jump_note(&ms, m, core.now.us, core.now));
}
