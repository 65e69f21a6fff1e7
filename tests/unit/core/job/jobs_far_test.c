/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/job/queue.c, queue.c: the home of a queue is far away, or its answer to a RETRY is lost; and daemons that wake one another. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

/* --- RETRY of a dead job --- */

/* Of three attempts that fail. */
static void a_job_is_dead(void)
{
	cluster_begin(3);
	defers(1, "a");
	for (unsigned i = 0; i < cluster.conf.limits.attempts; i++) {
		says(1, "TAKE mail");
		hears(1, "OK *");
		says(1, "RETRY a");
		hears(1, "OK *");
	}
	feels(home(), MOOD_LOSSY);
	says(1, "RETRY a queue=mail");
}

FIXTURE(.teardown = cluster_close)

/* When it is repeated somebody has the job: whether it had failed for good before is not known. */
TEST(a_retry_whose_answer_is_lost_is_not_said_to_have_found_nothing)
{
	a_job_is_dead();
	feels(home(), MOOD_WELL);
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a attempt=1 *");
	passes(200 * MSEC);
	hears(1, "ERR UNAVAILABLE the home of the queue did not answer a try of this request: the job may be due again, LIST jobs shows it");
}

TEST(a_retry_that_is_never_answered_is_no_defer)
{
	a_job_is_dead();
	passes(3 * SEC);
	hears(1, "ERR UNAVAILABLE * the job may be due again, LIST jobs shows it");
	feels(home(), MOOD_WELL);
}

/* --- a home that is far away --- */

/* It is 95 ms there and back. */
static void time_goes_on(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		passes(95 * MSEC);
		if (waiting_at(home()) > 0)
			serves(home(), 1);
	}
}

TEST(a_lease_that_is_shorter_than_the_way_to_the_home_is_not_asked_for_without_end)
{
	unsigned before;

	cluster_open(3);
	cluster.conf.timeout_us = SEC;
	daemon_starts(0);
	passes(3 * SEC);
	defers(1, "a");
	feels(home(), MOOD_SILENT);
	before = asked(CALL_HOME);
	says(2, "TAKE mail ttl=100ms");
	time_goes_on(2);
	hears(2, "ERR UNAVAILABLE the home of the queue cannot be used: its answer came when the lease of the job was nearly over");
	says(2, "TAKE mail ttl=100ms wait=1m");
	time_goes_on(100);
	ck_assert_uint_lt(asked(CALL_HOME) - before, 70);
	says(3, "TAKE mail ttl=10s");
	time_goes_on(10);
	hears(3, "OK queue=mail job=a *");
	feels(home(), MOOD_WELL);
	ignores(2);
}

/* --- messages --- */

/* Two jobs are due whose locks are held. Each TAKE that leaves one of them wakes another daemon, and so on. */
TEST(messages_about_jobs_whose_locks_are_held_begin_no_pass_after_the_other)
{
	unsigned before;

	cluster_begin(3);
	for (unsigned i = 0; i < 2; i++) {
		says(1, "LOCK l%u", i);
		hears(1, "OK *");
		says(1, "DEFER mail x id=j%u lock=l%u", i, i);
		hears(1, "OK *");
	}
	says(2, "TAKE mail wait=1m");
	before = asked(CALL_HOME);
	for (unsigned i = 0; i < 100; i++) {
		is_due(0, home(), "mail");
		passes(MSEC);
	}
	ck_assert_uint_eq(asked(CALL_HOME), before);
	passes(200 * MSEC);
	ck_assert_uint_ge(asked(CALL_HOME), before + 3);
	says(1, "UNLOCK l1");
	hears(1, "OK *");
	is_due(0, home(), "mail");
	passes(300 * MSEC);
	hears(2, "OK queue=mail job=j1 *");
}

TEST(a_message_is_heeded_at_once_where_no_lock_was_refused)
{
	two_daemons(3);
	says(1, "TAKE mail wait=1m");
	passes(10 * MSEC);
	defers(2, "a");
	hears_nothing(1);
	is_due(0, home(), "mail");
	hears(1, "OK queue=mail job=a *");
}

/* While the first TAKE asks for the lock of its job, the home leases the next job for the second one. That is refused as well. */
TEST(takes_for_different_leases_ask_for_jobs_whose_lock_is_held_no_more_than_others)
{
	unsigned before;

	cluster_begin(3);
	says(1, "LOCK l");
	hears(1, "OK *");
	for (unsigned i = 0; i < 2; i++) {
		says(1, "DEFER mail x id=j%u lock=l", i);
		hears(1, "OK *");
	}
	before = asked(CALL_HOME);
	says(2, "TAKE mail wait=1m");
	says(3, "TAKE mail wait=1m ttl=2s");
	ck_assert_uint_lt(asked(CALL_HOME), before + 20);
	hears_nothing(2);
	hears_nothing(3);
	says(1, "UNLOCK l");
	hears(1, "OK *");
	passes(3 * SEC);
	hears(2, "OK queue=mail job=j0 * ttl_ms=10000 *");
	says(2, "DONE j0");
	hears(2, "OK *");
	passes(3 * SEC);
	hears(3, "OK queue=mail job=j1 * ttl_ms=2000 *");
}
