/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/release.c: keys that stay without a holder, by UNLOCK keep= or by a lock delay. */
#include "tests/fixture/held_lock.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(keep_leaves_the_key_that_long_without_a_holder)
{
	held_after_lock(3, "LOCK a");
	says(1, "UNLOCK a keep=5s");
	hears(1, "OK name=a count=0");
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_le(key_ttl_us(i, "a"), 5001 * MSEC);
	says(2, "LOCK a");
	hears(2, "BUSY name=a * retry_ms=*");
	says(2, "LOCK a wait=1m");
	passes(4990 * MSEC);
	hears_nothing(2);
	passes(100 * MSEC);
	hears(2, "OK name=a *");
}

TEST(keep_may_be_longer_than_the_lease_but_not_than_the_longest)
{
	held_after_lock(3, "LOCK a");
	says(1, "UNLOCK a keep=3601s");
	hears(1, "ERR LIMIT *");
	says(1, "UNLOCK a keep=30s");
	hears(1, "OK name=a count=0");
	passes(29 * SEC);
	ck_assert(key_is_there(0, "a"));
	passes(2 * SEC);
	ck_assert(!key_is_there(0, "a"));
}

TEST(a_clean_unlock_frees_at_once_whatever_the_delay)
{
	begins_with_delay(3, 20 * SEC);
	says(1, "LOCK a delay=5s");
	hears(1, "OK *");
	ck_assert_int_eq(cluster.node[0].last[CALL_ACQUIRE].call.px_ms, 15000);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(after_an_abnormal_end_the_name_stays_refused_for_its_delay)
{
	begins_with_delay(3, 20 * SEC);
	says(1, "LOCK a delay=5s");
	says(2, "LOCK a wait=1m");
	ignores(1);
	goes(1, GONE_HANGUP);
	passes(4900 * MSEC);
	hears_nothing(2);
	passes(300 * MSEC);
	hears(2, "OK name=a *");
}

TEST(a_quit_is_no_abnormal_end)
{
	begins_with_delay(3, 20 * SEC);
	says(1, "LOCK a delay=5s");
	says(2, "LOCK a wait=1m");
	ignores(1);
	says(1, "QUIT");
	hears(1, "OK");
	hears(2, "OK name=a *");
}

TEST(a_loss_with_a_delay_keeps_the_name_refused_beyond_the_deadline)
{
	begins_with_delay(1, 20 * SEC);
	says(1, "LOCK a delay=5s renew=no");
	hears(1, "OK name=a fence=* valid_ms=9897 *");
	says(2, "LOCK a wait=1m");
	passes(10 * SEC);
	hears(1, "! LOST *");
	passes(4900 * MSEC);
	hears_nothing(2);
	passes(1200 * MSEC);
	hears(2, "OK name=a *");
}

/* The key has the longer TTL still: no renewal takes that back. */
TEST(a_loss_with_a_delay_refuses_the_name_no_longer_than_that)
{
	begins_with_delay(3, 20 * SEC);
	says(1, "LOCK a ttl=30s delay=5s renew=no");
	hears(1, "OK name=a *");
	says(1, "EXTEND a ttl=10s");
	hears(1, "OK name=a *");
	says(2, "LOCK a wait=1m");
	passes(10 * SEC);
	hears(1, "! LOST *");
	passes(4700 * MSEC);
	hears_nothing(2);
	passes(1300 * MSEC);
	hears(2, "OK name=a *");
}

/* The store was cut off when the session ended, and hears of the delay when the key has only half of it left. */
TEST(a_store_that_hears_of_a_delay_late_does_not_begin_it_anew)
{
	begins_with_delay(3, 20 * SEC);
	says(1, "LOCK a ttl=2s delay=5s");
	hears(1, "OK name=a *");
	falls(2);
	goes(1, GONE_HANGUP);
	passes(4 * SEC);
	comes(2);
	passes(100 * MSEC);
	ck_assert(key_is_there(2, "a"));
	ck_assert_int_lt(key_ttl_us(2, "a"), 3 * SEC);
}

TEST(the_next_waiter_with_another_delay_gets_a_lease_of_its_own_after_a_cancel)
{
	begins_with_delay(1, 20 * SEC);
	feels(0, MOOD_SILENT);
	says(1, "@x LOCK a wait=1m");
	says(2, "LOCK a wait=1m delay=5s");
	says(1, "CANCEL @x");
	feels(0, MOOD_WELL);
	hears(2, "OK name=a *");
	ck_assert_int_eq(cluster.node[0].last[CALL_ACQUIRE].call.px_ms, 15000);
	ignores(1);
}
