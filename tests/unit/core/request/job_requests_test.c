/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/request/job_requests.c: a DEFER whose outcome is not known is given again, and stores its job once. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

static void begins(void)
{
	cluster_begin(3);
	says(2, "TAKE mail"); /* the daemon learns what the stores are called */
	hears(2, "BUSY queue=mail*");
}

/* Session 1 defers the job a, and the answer of the home is lost. */
static void defers_unheard(void)
{
	feels(home(), MOOD_LOSSY);
	says(1, "DEFER mail hello id=a");
	feels(home(), MOOD_WELL);
	hears_nothing(1);
}

static void takes_and_is_done(void)
{
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a attempt=1 *");
	says(2, "DONE a");
	hears(2, "OK queue=mail job=a");
}

static void finds_nothing(void)
{
	says(2, "TAKE mail");
	hears(2, "BUSY queue=mail*");
}

FIXTURE(.teardown = cluster_close)

TEST(a_job_that_is_done_before_its_defer_is_given_again_is_not_stored_again)
{
	begins();
	defers_unheard();
	takes_and_is_done();
	passes(200 * MSEC);
	hears(1, "OK queue=mail job=a due_ms=0");
	finds_nothing();
}

TEST(another_defer_of_that_id_is_a_new_job_once_the_first_is_done)
{
	begins();
	defers_unheard();
	takes_and_is_done();
	says(3, "DEFER mail hello id=a");
	hears(3, "OK queue=mail job=a due_ms=0");
	passes(200 * MSEC);
	hears(1, "OK queue=mail job=a due_ms=0");
	takes_and_is_done();
	finds_nothing();
}

TEST(a_defer_that_found_the_job_there_does_not_store_it_later)
{
	begins();
	says(3, "DEFER mail hello id=a");
	hears(3, "OK queue=mail job=a due_ms=0");
	defers_unheard();
	takes_and_is_done();
	passes(200 * MSEC);
	hears(1, "OK queue=mail job=a due_ms=0");
	finds_nothing();
}

TEST(a_defer_that_was_told_to_be_unknown_is_carried_out_no_more)
{
	begins();
	feels(home(), MOOD_SILENT);
	says(1, "DEFER mail hello id=a");
	passes(1200 * MSEC);
	hears(1, "ERR UNAVAILABLE id=a may be stored: *");
	feels(home(), MOOD_WELL);
	passes(SEC);
	finds_nothing();
}

TEST(a_clock_that_is_set_forward_beyond_the_time_of_a_defer_refuses_it)
{
	begins();
	feels(home(), MOOD_SILENT);
	says(1, "DEFER mail hello id=a");
	cluster.node[home()].clock_us += 5 * SEC;
	feels(home(), MOOD_WELL);
	hears(1, "ERR UNAVAILABLE the home of the queue cannot be used: it was reached too late");
	says(2, "LIST queues");
	hears(2, "OK n=0*");
}
