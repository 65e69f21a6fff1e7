/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/rate/rate.c, job_requests.c, queue.c, rate.c: what clients of one peer, and all, may store; DROP, and RETRY of a job that is
 * delayed.
 */
#include "tests/fixture/mail_queue.h"

#include <check.h>
#include <string.h>

#define OTHER 4 /* the session of another user than 1 */

static void begins(void)
{
	const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};

	cluster_open(3);
	cluster.conf.limits.stored = 100000;
	cluster.conf.own_uid = 999;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(OTHER, 0, &other);
}

/* Until it is refused. Returns how that was said. */
static const char *fills(unsigned k, const char *before, const char *behind)
{
	const char *told = "OK";

	for (unsigned i = 0; i < 1000 && span_starts(span_of(told), SPAN("OK")); i++) {
		says(k, "%s%u%s", before, i, behind);
		told = next_line(k);
	}
	return told;
}

FIXTURE(.teardown = cluster_close)

TEST(the_clients_of_a_user_fill_half_and_those_of_another_are_still_served)
{
	begins();
	ck_assert(span_starts(span_of(fills(OTHER, "DEFER q", " hello")), SPAN("ERR LIMIT the jobs and rate limits of clients of uid 33@")));
	says(1, "DEFER mail hello");
	hears(1, "OK *");
	says(1, "RATE web/1 limit=5 per=1s");
	hears(1, "OK *");
}

TEST(all_clients_together_fill_the_whole_and_no_more)
{
	static const char whole[] = "ERR LIMIT the jobs and rate limits of all clients may take at most 100000 bytes at their store (limits.stored): ";
	const struct peer root = {.is_unix = true, .is_local = true, .uid = 0, .pid = 7, .address = "unix"};

	begins();
	session_opens_from(5, 0, &root);
	ck_assert(span_starts(span_of(fills(5, "RATE r", " limit=5 per=1h")), span_of(whole)));
	says(1, "DEFER mail hello");
	(void)next_line(1);
	ck_assert(span_starts(span_of(fills(1, "DEFER mail hello id=i", "")), SPAN("ERR LIMIT ")));
	passes(3700 * SEC);
	says(1, "RATE r limit=5 per=1h");
	hears(1, "OK *");
}

TEST(a_window_of_a_rate_limit_is_31_days_at_most)
{
	begins();
	says(1, "RATE r limit=5 per=744h");
	hears(1, "OK *");
	says(1, "RATE r limit=5 per=87600h");
	hears(1, "ERR LIMIT per may be at most 2678400000ms (31 days)");
}

TEST(a_nul_byte_that_no_command_could_be_given_is_refused)
{
	begins();
	says(1, "DEFER mail hello id=\"a\\x00b\"");
	hears(1, "ERR ARG the id has a NUL byte*");
	says(1, "DEFER mail hello lock=\"a\\x00b\"");
	hears(1, "ERR ARG the name of the lock has a NUL byte*");
	says(1, "DEFER \"a\\x00b\" hello");
	hears(1, "ERR ARG the name of the queue has a NUL byte*");
	says(1, "DEFER mail \"a\\x00b\"");
	hears(1, "OK *");
	says(1, "TAKE mail");
	hears(1, "OK * payload=\"a\\\\x00b\"");
}

TEST(a_job_is_dropped_unless_a_session_has_it)
{
	begins();
	defers(1, "a");
	says(1, "DEFER mail x id=b delay=1h");
	hears(1, "OK *");
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a *");
	says(1, "DROP mail a");
	hears(1, "ERR NOTHELD a session has taken the job*");
	says(1, "DROP mail b");
	hears(1, "OK queue=mail job=b");
	says(1, "DROP mail b");
	hears(1, "ERR NOTFOUND that queue has no job of that id");
	says(2, "DONE a");
	hears(2, "OK *");
}

TEST(a_delayed_job_that_is_retried_wakes_who_waits)
{
	begins();
	says(1, "DEFER mail x id=b delay=1h");
	hears(1, "OK queue=mail job=b due_ms=3600000");
	says(2, "TAKE mail wait=1m");
	says(1, "RETRY b queue=mail");
	hears(1, "OK queue=mail job=b");
	passes(100 * MSEC);
	hears(2, "OK queue=mail job=b attempt=1 *");
}

TEST(a_job_that_fails_for_good_is_logged_and_counted)
{
	begins();
	defers(1, "a");
	for (unsigned i = 0; i < cluster.conf.limits.attempts; i++) {
		ck_assert_int_eq(figure(0, METRIC_JOBS_FAILED), 0);
		says(1, "TAKE mail");
		hears(1, "OK *");
		says(1, "RETRY a");
		hears(1, "OK *");
	}
	ck_assert_int_eq(figure(0, METRIC_JOBS_FAILED), 1);
	ck_assert(was_logged("job-failed queue=mail job=a *"));
}
