/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/send.c, round.c: the log tells what waited for long, was held for long, and which stores were slow. */
#include "tests/fixture/mail_queue.h"

#include <check.h>

static void slow_is(int64_t wait_us, int64_t hold_us, int64_t store_us)
{
	cluster.conf.slow_wait_us = wait_us;
	cluster.conf.slow_hold_us = hold_us;
	cluster.conf.slow_store_us = store_us;
	service_reload(cluster.daemon[0].service, &cluster.conf);
}

FIXTURE(.teardown = cluster_close)

TEST(a_wait_a_hold_and_a_call_that_took_long_are_logged_at_their_end)
{
	cluster_begin(3);
	slow_is(SEC, 2 * SEC, 30 * MSEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=10s");
	says(3, "LOCK a wait=1s");
	passes(2 * SEC);
	hears(3, "TIMEOUT *");
	ck_assert(was_logged("slow kind=wait name=a peer=* session=* waited_ms=1000 outcome=timeout"));
	says(1, "UNLOCK a");
	hears(2, "OK *");
	ck_assert(was_logged("slow kind=hold name=a peer=* session=* held_ms=2000 outcome=released"));
	says(2, "UNLOCK a");
	hears(2, "OK *");
	ck_assert(!was_logged("slow *"));
	feels(0, MOOD_TARDY);
	says(1, "LOCK b");
	passes(30 * MSEC);
	feels(0, MOOD_WELL);
	ck_assert(was_logged("slow kind=store node=* name=b took_ms=30 outcome=executed"));
}

TEST(a_granted_wait_is_logged)
{
	cluster_begin(3);
	slow_is(SEC, 0, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=10s");
	passes(2 * SEC);
	says(1, "UNLOCK a");
	hears(2, "OK *");
	ck_assert(was_logged("slow kind=wait name=a peer=* session=* waited_ms=2000 outcome=granted"));
}

TEST(a_group_that_was_granted_late_is_logged_once)
{
	cluster_begin(3);
	slow_is(SEC, 0, 0);
	says(1, "LOCK b");
	hears(1, "OK *");
	says(2, "LOCKALL a b c wait=10s");
	passes(2 * SEC);
	says(1, "UNLOCK b");
	hears(1, "OK *");
	hears(2, "\\* name=a *");
	hears(2, "\\* name=b *");
	hears(2, "\\* name=c *");
	hears(2, "OK n=3");
	ck_assert(was_logged("slow kind=wait name=c peer=* session=* waited_ms=2000 names=3 outcome=granted"));
	ck_assert(!was_logged("slow *"));
	says(3, "LOCKANY a b wait=10s");
	passes(3 * SEC);
	says(2, "UNLOCK b");
	hears(3, "OK name=b *");
	ck_assert(was_logged("slow kind=wait name=b peer=* session=* waited_ms=3000 names=2 outcome=granted"));
	ck_assert(!was_logged("slow *"));
}

TEST(a_group_that_was_granted_at_once_is_not_logged)
{
	cluster_begin(3);
	slow_is(SEC, 0, 0);
	says(1, "LOCKALL a b wait=10s");
	passes(2 * SEC);
	ck_assert(!was_logged("slow *"));
}

/* The time in which nothing was due does not count. */
TEST(a_take_is_logged_if_its_job_was_due_for_long)
{
	cluster_begin(3);
	slow_is(SEC, 0, 0);
	says(1, "TAKE mail wait=1m");
	passes(10 * SEC);
	defers(2, "a");
	hears(1, "OK queue=mail job=a *");
	ck_assert(!was_logged("slow *"));
	says(3, "LOCK l");
	hears(3, "OK *");
	says(2, "DEFER mail hello id=b lock=l");
	hears(2, "OK *");
	says(1, "TAKE mail wait=1m");
	passes(2 * SEC);
	says(3, "UNLOCK l");
	hears(3, "OK *");
	passes(SEC);
	hears(1, "OK queue=mail job=b *");
	ck_assert(was_logged("slow kind=wait queue=mail peer=* session=* waited_ms=* outcome=granted"));
	ck_assert(!was_logged("slow *"));
}
