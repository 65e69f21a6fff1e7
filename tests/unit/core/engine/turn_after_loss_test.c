/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/grant.c, send.c and restore.c: a session without a connection loses a lock, and then has a turn of the same name. It was told of neither,
 * and hears of the loss, whatever becomes of the turn.
 */
#include "tests/fixture/adopting.h"

#include <check.h>

static struct secret s1;
static int64_t lost;
static const char *also; /* a further request of session 2 */

#define LOST "! LOST name=a fence=* reason=quorum"

/* Session 1 held a before the crash. It came back as 2, whose LOCK waits for the adoption, and went again. No store comes until the adoption is over. */
static void waits_as_it_loses(void)
{
	lost = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(2010 * MSEC);
	hears(2, "@r OK session=* n=0 open=1");
	says(2, "@a LOCK a wait=1m");
	if (also)
		says(2, "@b %s", also);
	goes(2, GONE_HANGUP);
	passes(10 * SEC);
	ck_assert(was_logged("lost * name=a *"));
}

/* Then its turn comes. */
static void has_its_turn(void)
{
	waits_as_it_loses();
	all_come();
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_GRANTS), also ? 2 : 1);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
}

static void is_told_the_loss(unsigned k)
{
	ck_assert_int_eq(number_in(hears(k, LOST), "fence"), lost);
	hears_nothing(k);
}

static void unlocks_what_it_lost(unsigned k, const char *answer)
{
	says(k, "UNLOCK a fence=%lld", (long long)lost);
	hears(k, answer);
}

FIXTURE(.teardown = cluster_close)

TEST(the_turn_is_a_row_and_the_loss_follows_the_OK)
{
	has_its_turn();
	resumes(3, &s1);
	ck_assert_int_gt(number_in(hears(3, ROW_A), "fence"), lost);
	hears(3, "OK session=* n=1");
	is_told_the_loss(3);
	unlocks_what_it_lost(3, "ERR NOTHELD *");
	says(3, "UNLOCK a");
	hears(3, "OK name=a count=0");
	says(3, "CHECK a");
	hears(3, "ERR NOTHELD *");
}

TEST(the_loss_is_told_when_the_turn_was_lost_as_well)
{
	has_its_turn();
	for (unsigned i = 0; i < 3; i++)
		is_flushed(i);
	passes(12 * SEC);
	is_resumed_with_nothing(3, &s1);
	is_told_the_loss(3);
	says(3, "CHECK a");
	hears(3, "ERR LOST *");
	unlocks_what_it_lost(3, "ERR LOST *");
	unlocks_what_it_lost(3, "ERR NOTHELD *");
}

LOOP_TEST(the_loss_is_told_when_the_turn_is_lost_in_a_further_restart, 2)
{
	has_its_turn();
	if (_i)
		journal_is_compacted(0);
	daemon_is_back();
	resumes(3, &s1);
	passes(2010 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	is_told_the_loss(3);
	passes(10 * SEC);
	hears_nothing(3);
	unlocks_what_it_lost(3, "ERR LOST *");
	daemon_returns(0);
	is_resumed_with_nothing(4, &s1);
	hears_nothing(4);
}

LOOP_TEST(the_loss_is_told_when_the_turn_was_given_up_before_a_further_restart, 2)
{
	has_its_turn();
	for (unsigned i = 0; i < 3; i++)
		is_flushed(i);
	passes(12 * SEC);
	if (_i)
		journal_is_compacted(0);
	daemon_returns(0);
	is_resumed_with_nothing(3, &s1);
	is_told_the_loss(3);
	unlocks_what_it_lost(3, "ERR LOST *");
}

LOOP_TEST(what_the_answer_to_RESUME_told_the_next_run_does_not_tell_again, 2)
{
	has_its_turn();
	resumes(3, &s1);
	hears(3, ROW_A);
	hears(3, "OK session=* n=1");
	is_told_the_loss(3);
	if (_i)
		journal_is_compacted(0);
	daemon_returns(0);
	resumes(4, &s1);
	ck_assert_int_gt(number_in(hears(4, ROW_A), "fence"), lost);
	hears(4, "OK session=* n=1");
	hears_nothing(4);
}

/* The session is resumed before its turn, and told LOST. */
static void is_resumed_before_its_turn(void)
{
	waits_as_it_loses();
	is_resumed_with_nothing(3, &s1);
	is_told_the_loss(3);
	all_come();
	passes(SEC);
	hears_nothing(3);
	ck_assert_int_eq(figure(0, METRIC_GRANTS), 1);
}

TEST(an_UNLOCK_of_what_was_lost_leaves_the_turn_alone)
{
	is_resumed_before_its_turn();
	unlocks_what_it_lost(3, "ERR LOST *");
	unlocks_what_it_lost(3, "ERR NOTHELD *");
	says(3, "CHECK a");
	ck_assert_int_gt(number_in(hears(3, "OK name=a * count=1"), "fence"), lost);
}

TEST(a_loss_that_was_acknowledged_beside_a_turn_is_not_told_by_the_next_run)
{
	is_resumed_before_its_turn();
	unlocks_what_it_lost(3, "ERR LOST *");
	daemon_returns(0);
	resumes(4, &s1);
	ck_assert_int_gt(number_in(hears(4, ROW_A), "fence"), lost);
	hears(4, "OK session=* n=1");
	hears_nothing(4);
}

/* The session asks about the turn, releases it or takes it up. From then on the loss is not remembered, here or by the next run. */
LOOP_TEST(who_hears_of_the_turn_hears_no_more_of_the_loss, 4)
{
	static const char *const asks[] = {"CHECK a", "UNLOCK a", "LOCK a wait=1m", "EXTEND a"};

	is_resumed_before_its_turn();
	says(3, "%s", asks[_i]);
	hears(3, "OK name=a *");
	if (_i != 1)
		says(3, "UNLOCK a");
	ignores(3);
	says(3, "CHECK a");
	hears(3, "ERR NOTHELD *");
	daemon_returns(0);
	is_resumed_with_nothing(4, &s1);
	hears_nothing(4);
}

TEST(the_loss_outlives_a_turn_that_nobody_asked_for)
{
	is_resumed_before_its_turn();
	passes(31 * SEC);
	says(3, "CHECK a");
	hears(3, "ERR LOST *");
	unlocks_what_it_lost(3, "ERR LOST *");
	says(3, "CHECK a");
	hears(3, "ERR NOTHELD *");
}

/* The next run adopts only the turn of a, of two turns. */
static void adopts_a_alone(void)
{
	daemon_is_back();
	all_feel(MOOD_SILENT);
	all_come();
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1); /* the probe */
	passes(0);
	for (unsigned i = 0; i < 3; i++) {
		bool first = span_equal(TAILQ_FIRST(&cluster.daemon[0].queue[i])->call.name, SPAN("a"));

		loses(i, !first);
		serves(i, 1);
		loses(i, first);
	}
}

TEST(a_request_that_overtakes_RESUME_hears_of_the_loss_before_it_hears_of_the_turn)
{
	also = "LOCK b wait=1m";
	has_its_turn();
	adopts_a_alone();
	says(3, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	hears_nothing(3);
	says(3, "@c CHECK a");
	ck_assert_int_eq(number_in(hears(3, LOST), "fence"), lost);
	ck_assert_int_gt(number_in(hears(3, "@c OK name=a * count=1"), "fence"), lost);
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(3, "@r \\* name=[ab] *");
	hears(3, "@r \\* name=[ab] *");
	hears(3, "@r OK session=* n=2");
	hears_nothing(3);
}
