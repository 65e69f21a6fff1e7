/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/admin/admin.c: what waits when the rules that are read again no longer allow it, and what becomes of what is held. */
#include "tests/fixture/resumable.h"
#include "tests/fixture/ruled.h"

#include <check.h>

#define WITHDRAWN "ERR DENIED the waiting request was withdrawn: *"

/* WEB may lock all. */
static const struct rule before[] = {
	{10, 33, -1, NULL, NULL, NULL, RIGHT_LOCK},
	{11, -1, OPS, NULL, NULL, NULL, RIGHT_LOCK | RIGHT_LOOK | RIGHT_ADMIN},
};

/* WEB may lock web/free and the jobs, and nothing else. */
static const struct rule later[] = {
	{20, 33, -1, NULL, NULL, "web/free", RIGHT_LOCK},
	{21, 33, -1, NULL, NULL, "jobs/*", RIGHT_LOCK},
	{22, -1, OPS, NULL, NULL, NULL, RIGHT_LOCK | RIGHT_LOOK | RIGHT_ADMIN},
};

static void begins(unsigned nodes)
{
	cluster_begin(nodes);
	peers_open(before, 2);
}

static void rules_are_read_again(void)
{
	rules_are(later, 3);
	passes(SEC / 10);
}

static void holds(unsigned k, const char *request)
{
	says(k, "%s", request);
	passes(SEC / 10);
	hears(k, "OK *");
}

/* Nothing of it is left in the stores, and nothing comes of it. */
static void is_over(const char *name)
{
	passes(10 * SEC);
	hears_nothing(WEB);
	ck_assert(!key_is_there(0, name));
	holds(OPERATOR, "LOCK web/secret");
}

FIXTURE(.teardown = ruled_ends)

TEST(a_reader_behind_a_writer_is_denied_with_it)
{
	begins(3);
	holds(OPERATOR, "LOCK web/secret mode=shared");
	says(WEB, "@w LOCK web/secret owner=1 wait=1m");
	says(WEB, "@r LOCK web/secret owner=2 mode=shared wait=1m");
	passes(SEC);
	hears_nothing(WEB);
	rules_are_read_again();
	hears(WEB, "@w " WITHDRAWN);
	hears(WEB, "@r " WITHDRAWN);
	says(OPERATOR, "UNLOCK web/secret");
	hears(OPERATOR, "OK *");
	is_over("web/secret");
}

LOOP_TEST(a_request_that_waits_is_denied, 10)
{
	static const char *const held[] = {
		"LOCK web/secret", "LOCK web/secret mode=shared", "LOCK web/secret", "LOCK web/secret", "ACQUIRE web/secret limit=1"};
	static const char *const wait[] = {
		"LOCK web/secret", "LOCK web/secret", "LOCKALL web/free web/secret", "LOCKANY web/free web/secret", "ACQUIRE web/secret limit=1"};

	begins(_i & 1 ? 3 : 1);
	if (_i / 2 == 3)
		holds(OPERATOR, "LOCK web/free");
	holds(OPERATOR, held[_i / 2]);
	says(WEB, "@w %s wait=1m", wait[_i / 2]);
	passes(SEC);
	hears_nothing(WEB);
	rules_are_read_again();
	hears(WEB, "@w " WITHDRAWN);
	ck_assert_int_eq(figure(0, METRIC_DENIED), 1);
	says(OPERATOR, _i / 2 == 4 ? "RELEASE web/secret" : "UNLOCK web/secret");
	hears(OPERATOR, "OK *");
	is_over("web/secret");
}

RANGE_TEST(readers_behind_a_writer_that_is_denied_read_at_once, 1, 2)
{
	begins(_i);
	holds(OPERATOR, "LOCK web/secret mode=shared");
	says(WEB, "@w LOCK web/secret wait=1m");
	passes(SEC);
	opens(20, 1001, OPS, false);
	says(20, "@r LOCK web/secret mode=shared wait=1m");
	passes(SEC / 10);
	hears_nothing(20);
	rules_are_read_again();
	hears(WEB, "@w " WITHDRAWN);
	hears(20, "@r OK name=web/secret *");
}

TEST(a_waiter_that_may_still_have_the_name_goes_on_waiting)
{
	begins(3);
	holds(OPERATOR, "LOCK web/free");
	holds(OPERATOR, "LOCK web/secret");
	says(WEB, "@f LOCK web/free wait=1m");
	says(WEB, "@s LOCK web/secret wait=1m");
	says(ROOT, "LOCK web/free");
	hears(ROOT, "ERR DENIED *");
	rules_are_read_again();
	hears(WEB, "@s " WITHDRAWN);
	holds(OPERATOR, "UNLOCK web/free");
	hears(WEB, "@f OK name=web/free *");
}

TEST(what_is_held_stays_and_can_be_given_back)
{
	begins(3);
	holds(WEB, "LOCK web/secret");
	holds(WEB, "ACQUIRE web/licence limit=1");
	rules_are_read_again();
	passes(60 * SEC);
	hears_nothing(WEB);
	says(OPERATOR, "LOCK web/secret");
	hears(OPERATOR, "BUSY *");
	says(WEB, "LOCK web/secret");
	hears(WEB, "ERR DENIED LOCK needs *");
	says(WEB, "EXTEND web/secret");
	hears(WEB, "ERR DENIED EXTEND needs *");
	says(WEB, "UNLOCK web/other");
	hears(WEB, "ERR DENIED UNLOCK needs *");
	holds(WEB, "UNLOCK web/secret");
	holds(WEB, "RELEASE web/licence");
	says(WEB, "UNLOCK web/secret");
	hears(WEB, "ERR DENIED UNLOCK needs *");
	says(WEB, "RELEASE web/licence");
	hears(WEB, "ERR DENIED RELEASE needs *");
	holds(OPERATOR, "LOCK web/secret");
	holds(OPERATOR, "ACQUIRE web/licence limit=1");
}

LOOP_TEST(a_job_that_was_taken_can_be_ended, 4)
{
	static const char *const end[] = {"DONE a queue=web/queue", "RETRY a queue=web/queue", "DONE a", "RETRY a"};

	begins(3);
	holds(OPERATOR, "DEFER web/queue x id=a");
	holds(OPERATOR, "DEFER web/queue x id=b");
	holds(WEB, "TAKE web/queue");
	rules_are(later + (_i < 2 ? 0 : 2), _i < 2 ? 3 : 1);
	says(WEB, "TAKE web/queue");
	hears(WEB, "ERR DENIED TAKE needs *");
	says(WEB, "RETRY b queue=web/queue");
	hears(WEB, "ERR DENIED RETRY needs *");
	holds(WEB, end[_i]);
	says(WEB, "%s", end[_i]);
	hears(WEB, "ERR *");
	holds(OPERATOR, "TAKE web/queue");
	holds(OPERATOR, "DONE b");
	says(OPERATOR, "TAKE web/queue");
	hears(OPERATOR, _i & 1 ? "OK queue=web/queue job=a attempt=2 *" : "BUSY *");
}

TEST(a_TAKE_of_a_queue_is_denied)
{
	begins(1);
	says(WEB, "@t TAKE web/queue wait=1m");
	rules_are_read_again();
	hears(WEB, "@t " WITHDRAWN);
	says(OPERATOR, "DEFER web/queue x id=a");
	hears(OPERATOR, "OK *");
	passes(10 * SEC);
	hears_nothing(WEB);
	says(OPERATOR, "TAKE web/queue");
	hears(OPERATOR, "OK queue=web/queue job=a attempt=1 *");
}

/* It waits for the stores to grant the lock of the job. */
TEST(a_TAKE_is_denied_that_is_about_to_have_the_lock_of_a_job)
{
	begins(3);
	says(OPERATOR, "DEFER jobs/q x id=a lock=web/secret");
	passes(SEC / 10);
	hears(OPERATOR, "OK *");
	all_feel(MOOD_SILENT);
	says(WEB, "@t TAKE jobs/q wait=1m");
	for (int64_t rounds = figure(0, METRIC_ROUNDS); figure(0, METRIC_ROUNDS) == rounds;)
		for (unsigned i = 0; i < 3; i++)
			if (waiting_at(i) > 0)
				serves(i, 1);
	rules_are_read_again();
	all_feel(MOOD_WELL);
	hears(WEB, "@t ERR DENIED what is due in this queue *");
	passes(10 * SEC);
	hears_nothing(WEB);
	says(OPERATOR, "TAKE jobs/q wait=10s");
	passes(10 * SEC);
	hears(OPERATOR, "OK queue=jobs/q job=a * name=web/secret *");
}

TEST(a_place_that_is_kept_for_RESUME_is_given_up)
{
	struct secret s;

	begins(3);
	holds(OPERATOR, "LOCK web/secret");
	s = says_hello(WEB, "grace=1m");
	says(WEB, "LOCK web/secret wait=1m");
	passes(SEC);
	goes(WEB, GONE_HANGUP);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 1);
	rules_are_read_again();
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 0);
	opens(20, 33, 33, false);
	is_resumed_with_nothing(20, &s);
}

/* --- in portions --- */

#define CROWD 10

static void waits_in_portions(void)
{
	cluster_open(3);
	cluster.conf.work = 1;
	daemon_starts(0);
	passes(2 * SEC);
	peers_open(before, 2);
	holds(OPERATOR, "LOCK web/secret");
	holds(OPERATOR, "LOCK web/free");
	for (unsigned i = 0; i < CROWD; i++) {
		says(WEB, "@s%u LOCK web/secret owner=%u wait=1m", i, i);
		says(WEB, "@f%u LOCK web/free owner=%u wait=1m", i, i);
	}
	passes(SEC / 10);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), 2 * CROWD);
}

TEST(a_crowd_is_denied_in_portions_and_what_is_allowed_waits_on)
{
	waits_in_portions();
	rules_are(later, 3);
	ck_assert_int_gt(figure(0, METRIC_WAITERS), CROWD);
	passes(SEC / 10);
	for (unsigned i = 0; i < CROWD; i++)
		hears(WEB, "@s* " WITHDRAWN);
	hears_nothing(WEB);
	ck_assert_int_eq(figure(0, METRIC_WAITERS), CROWD);
}
