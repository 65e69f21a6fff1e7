/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/job/take.c, job.c, job_requests.c: jobs are put into a queue, taken, done, and given back. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

#define TAKEN(id) "OK queue=mail job=" id " attempt=1 valid_ms=9897 ttl_ms=10000 payload=hello"

FIXTURE(.teardown = cluster_close)

TEST(the_lock_of_a_job_of_the_longest_queue_is_unlocked_early)
{
	char queue[NAME_MAX_BYTES + 1], id[65];

	memset(queue, 'q', sizeof(queue) - 1);
	memset(id, 'i', sizeof(id) - 1);
	queue[NAME_MAX_BYTES] = id[64] = '\0';
	cluster_begin(1);
	says(1, "DEFER %s hello id=%s lock=l", queue, id);
	hears(1, "OK queue=* job=* due_ms=0");
	says(1, "TAKE %s", queue);
	hears(1, "OK queue=* job=* name=l fence=*");
	says(1, "UNLOCK l owner=job:%s/%s", queue, id);
	hears(1, "OK name=l count=0");
}

TEST(a_job_is_taken_once_and_done)
{
	cluster_begin(3);
	says(1, "DEFER mail hello");
	hears(1, "OK queue=mail job=*-0000000001 due_ms=0");
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=*-0000000001 attempt=1 valid_ms=* ttl_ms=10000 payload=hello");
	says(3, "TAKE mail");
	hears(3, "BUSY queue=mail retry_ms=*");
	says(2, "DONE nothing");
	hears(2, "ERR NOTHELD *");
	defers(1, "b");
	says(2, "TAKE mail ttl=1s");
	hears(2, "OK queue=mail job=b attempt=1 valid_ms=987 ttl_ms=1000 payload=hello");
	says(2, "DONE b");
	hears(2, "OK queue=mail job=b");
	says(2, "DONE b");
	hears(2, "ERR NOTHELD *");
	says(3, "TAKE mail");
	hears(3, "BUSY queue=mail retry_ms=*");
}

TEST(a_take_that_waits_gets_the_job_as_soon_as_it_is_due)
{
	cluster_begin(1);
	says(2, "TAKE mail wait=forever");
	passes(5 * SEC);
	hears_nothing(2);
	defers(1, "a");
	hears(2, TAKEN("a"));
	says(3, "TAKE mail wait=10s");
	says(1, "DEFER mail later id=b delay=300ms");
	hears(1, "OK queue=mail job=b due_ms=300");
	passes(299 * MSEC);
	hears_nothing(3);
	passes(3 * MSEC);
	hears(3, "OK queue=mail job=b attempt=1 *payload=later");
	says(3, "TAKE mail wait=500ms");
	passes(501 * MSEC);
	hears(3, "TIMEOUT queue=mail waited_ms=500");
}

TEST(takes_that_wait_are_served_in_order_over_daemons)
{
	two_daemons(3);
	says(1, "TAKE mail wait=forever");
	says(2, "TAKE mail wait=forever");
	says(3, "DEFER mail hello id=a");
	hears(3, "OK *");
	hears(1, TAKEN("a"));
	says(3, "DEFER mail hello id=b");
	hears(3, "OK *");
	passes(SEC + MSEC); /* these stores publish nothing: a timer stands behind the message */
	hears(2, "OK queue=mail job=b *");
}

TEST(the_watchdog_keeps_a_job_and_a_session_that_ends_gives_it_back)
{
	cluster_begin(3);
	defers(1, "a");
	says(2, "TAKE mail ttl=1s");
	hears(2, "OK *");
	passes(20 * SEC);
	says(3, "TAKE mail");
	hears(3, "BUSY *");
	says(2, "CHECK mail job=a");
	hears(2, "OK queue=mail job=a attempt=1 valid_ms=*");
	goes(2, GONE_HANGUP);
	says(3, "TAKE mail");
	hears(3, "OK queue=mail job=a attempt=2 *");
}

TEST(a_session_that_may_live_keeps_its_job_until_the_lease_is_over)
{
	cluster_begin(3);
	defers(1, "a");
	session_opens_from_afar(2, 0);
	says(2, "TAKE mail ttl=2s");
	hears(2, "OK *");
	goes(2, GONE_RESET);
	says(3, "TAKE mail wait=forever");
	passes(1990 * MSEC);
	hears_nothing(3);
	passes(20 * MSEC);
	hears(3, "OK queue=mail job=a attempt=2 *");
}

TEST(a_job_that_fails_too_often_is_listed_as_dead_and_can_be_retried)
{
	cluster_begin(3);
	defers(1, "a");
	for (unsigned i = 1; i <= 3; i++) {
		says(2, "TAKE mail");
		ck_assert_int_eq(number_in(hears(2, "OK *"), "attempt"), i);
		says(2, "RETRY a delay=1s");
		hears(2, i < 3 ? "OK queue=mail job=a" : "OK queue=mail job=a state=dead");
		says(2, "TAKE mail");
		hears(2, "BUSY *");
		passes(SEC);
	}
	says(2, "LIST queues");
	hears(2, "\\* queue=mail due=0 leased=0 dead=1");
	hears(2, "OK n=1 more=0");
	says(2, "LIST jobs prefix=mail");
	hears(2, "\\* queue=mail job=a state=dead dead_ms=1000 failed=3 payload=hello");
	hears(2, "OK n=1");
	says(2, "RETRY a");
	hears(2, "ERR NOTHELD *");
	says(2, "RETRY b queue=mail");
	hears(2, "ERR NOTFOUND *");
	says(2, "RETRY a queue=mail");
	hears(2, "OK queue=mail job=a");
	says(2, "TAKE mail");
	hears(2, TAKEN("a"));
}

TEST(the_lock_of_a_job_is_granted_with_it_and_freed_when_it_is_done)
{
	cluster_begin(3);
	says(1, "DEFER mail hello lock=orders/1 id=a");
	hears(1, "OK *");
	says(2, "TAKE mail");
	hears(2, "OK queue=mail job=a attempt=1 valid_ms=9897 ttl_ms=10000 name=orders/1 fence=* payload=hello");
	says(3, "LOCK orders/1");
	hears(3, "BUSY name=orders/1 *");
	says(2, "DONE a");
	hears(2, "OK queue=mail job=a");
	says(3, "LOCK orders/1");
	hears(3, "OK name=orders/1 *");
}

TEST(a_job_whose_lock_is_held_is_not_handed_out_and_costs_no_attempt)
{
	cluster_begin(3);
	says(1, "LOCK orders/1");
	hears(1, "OK *");
	says(1, "DEFER mail hello lock=orders/1 id=a");
	hears(1, "OK *");
	says(2, "TAKE mail");
	hears(2, "BUSY queue=mail");
	passes(MSEC);
	defers(1, "b");
	says(2, "TAKE mail");
	hears(2, TAKEN("b"));
	says(2, "TAKE mail wait=forever");
	for (unsigned i = 0; i < 10; i++)
		passes(SEC);
	hears_nothing(2);
	says(1, "UNLOCK orders/1");
	hears(1, "OK *");
	passes(SEC);
	hears(2, "OK queue=mail job=a attempt=1 *name=orders/1 *");
}

TEST(the_lock_is_freed_when_the_session_of_the_job_ends)
{
	cluster_begin(3);
	says(1, "DEFER mail hello lock=l id=a");
	hears(1, "OK *");
	says(2, "TAKE mail");
	hears(2, "OK *");
	says(3, "TAKE mail wait=forever");
	goes(2, GONE_HANGUP);
	passes(SEC);
	hears(3, "OK queue=mail job=a attempt=2 *name=l *");
}

TEST(a_take_is_cancelled_and_refused_when_the_daemon_stops)
{
	cluster_begin(3);
	says(2, "@t TAKE mail wait=forever");
	says(2, "@t PING");
	hears(2, "@t ERR TAGINUSE *");
	says(2, "CANCEL @t");
	hears(2, "OK");
	hears(2, "@t ERR CANCELLED *");
	defers(1, "a");
	says(2, "TAKE mail");
	hears(2, TAKEN("a"));
}

TEST(what_is_wrong_with_a_request_is_said)
{
	cluster_begin(1);
	says(1, "DEFER \"\" x");
	hears(1, "ERR ARG *");
	says(1, "DEFER mail x id=\"\"");
	hears(1, "ERR ARG *");
	says(1, "DEFER mail x lock=\"\"");
	hears(1, "ERR ARG *");
	says(1, "DEFER mail");
	hears(1, "ERR ARG *");
	says(1, "LIST jobs");
	hears(1, "ERR ARG *");
	says(1, "LIST jobs prefix=mail after=x");
	hears(1, "ERR ARG *");
	says(1, "LIST things");
	hears(1, "ERR ARG *");
	says(1, "TAKE mail ttl=1h");
	hears(1, "ERR LIMIT *");
	says(1, "CHECK mail job=a");
	hears(1, "ERR NOTHELD *");
}
