/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/grant.c, hold.c: readers of one daemon hold a lock together, a writer holds it alone. */
#include "tests/fixture/readers.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(readers_hold_a_lock_together_with_one_round)
{
	unsigned rounds;

	readers_hold(3, 1);
	rounds = asked(CALL_ACQUIRE);
	reads(2);
	reads(3);
	ck_assert_uint_eq(asked(CALL_ACQUIRE), rounds);
	says(4, "LOCK a");
	hears(4, "BUSY name=a holder=* held_ms=0 mode=shared holders=3 waiters=0 retry_ms=*");
	says(1, "UNLOCK a");
	says(2, "UNLOCK a");
	hears(1, "OK name=a count=0");
	hears(2, "OK name=a count=0");
	ck_assert(!is_free());
	says(3, "CHECK a");
	hears(3, "OK name=a fence=* valid_ms=* count=1 mode=shared");
	says(3, "UNLOCK a");
	hears(3, "OK name=a count=0");
	ck_assert(is_free());
}

TEST(each_reader_has_its_own_fence_and_a_writer_behind_them_a_larger_one)
{
	int64_t fence[4];

	stores_have_room(3);
	for (unsigned k = 1; k <= 3; k++) {
		says(k, "LOCK a mode=shared");
		fence[k] = number_in(hears(k, READER), "fence");
	}
	ck_assert_int_lt(fence[1], fence[2]);
	ck_assert_int_lt(fence[2], fence[3]);
	says(1, "UNLOCK a fence=%lld", (long long)fence[2]);
	hears(1, "ERR NOTHELD *");
	for (unsigned k = 1; k <= 3; k++) {
		says(k, "UNLOCK a fence=%lld", (long long)fence[k]);
		hears(k, "OK name=a count=0");
	}
	says(4, "LOCK a");
	ck_assert_int_gt(number_in(hears(4, GRANT), "fence"), fence[3]);
}

TEST(readers_beyond_the_range_share_its_last_fence)
{
	int64_t last = 0;

	readers_hold(1, 0);
	for (unsigned i = 0; i < 80; i++) {
		says(1, "LOCK a mode=shared owner=%u", i);
		last = number_in(hears(1, READER), "fence");
	}
	says(1, "LOCK a mode=shared owner=x");
	ck_assert_int_eq(number_in(hears(1, READER), "fence"), last);
	says(2, "LOCK a wait=1m");
	for (unsigned i = 0; i < 80; i++)
		says(1, "UNLOCK a owner=%u", i);
	says(1, "UNLOCK a owner=x");
	ignores(1);
	ck_assert_int_gt(number_in(hears(2, GRANT), "fence"), last);
}

TEST(the_same_reader_is_reentrant)
{
	int64_t fence;

	readers_hold(3, 1);
	says(2, "LOCK a mode=shared");
	fence = number_in(hears(2, READER), "fence");
	says(2, "LOCK a mode=shared");
	ck_assert_int_eq(number_in(hears(2, "OK name=a fence=* count=2 mode=shared"), "fence"), fence);
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=1");
	says(1, "UNLOCK a");
	ck_assert(!is_free());
	says(2, "UNLOCK a");
	ck_assert(is_free());
}

TEST(a_lease_that_is_lost_is_lost_for_all_readers)
{
	readers_hold(3, 3);
	all_feel(MOOD_SILENT);
	passes(11 * SEC);
	for (unsigned k = 1; k <= 3; k++) {
		hears(k, "! RISK name=a *");
		hears(k, "! LOST name=a fence=* reason=quorum");
		says(k, "CHECK a");
		hears(k, "ERR LOST *");
	}
}

/* Its client may believe for as long as it was told. */
TEST(a_reader_that_went_unsurely_keeps_writers_out_but_no_readers)
{
	cluster_begin(3);
	session_opens_from_afar(1, 0);
	reads(1);
	reads(2);
	goes(1, GONE_RESET);
	reads(3);
	says(2, "UNLOCK a");
	says(3, "UNLOCK a");
	ck_assert(!is_free());
	says(4, "LOCK a wait=1m");
	passes(9 * SEC);
	hears_nothing(4);
	passes(2 * SEC);
	hears(4, GRANT);
}

TEST(a_reader_may_ask_for_a_longer_lease_than_the_others)
{
	readers_hold(3, 1);
	says(2, "LOCK a mode=shared ttl=25s");
	hears(2, "OK name=a fence=* mode=shared");
	passes(100 * MSEC);
	says(2, "CHECK a");
	ck_assert_int_gt(number_in(hears(2, "OK name=a *"), "valid_ms"), 20000);
}

TEST(an_extend_of_one_reader_shortens_nothing_for_another)
{
	readers_hold(3, 2);
	says(1, "EXTEND a ttl=2s");
	hears(1, "OK name=a fence=* valid_ms=* mode=shared");
	says(2, "CHECK a");
	ck_assert_int_gt(number_in(hears(2, "OK name=a *"), "valid_ms"), 9000);
}

TEST(an_extend_of_a_reader_that_leaves_is_cancelled_and_those_of_others_are_answered)
{
	readers_hold(3, 2);
	all_feel(MOOD_SILENT);
	says(1, "@1 EXTEND a");
	says(2, "@2 EXTEND a");
	says(1, "@3 EXTEND a");
	says(1, "@u UNLOCK a");
	hears(1, "@u OK *");
	hears(1, "@1 ERR CANCELLED *");
	hears(1, "@3 ERR CANCELLED *");
	hears_nothing(2);
	all_feel(MOOD_WELL);
	hears(2, "@2 OK name=a *");
}

TEST(a_reader_that_joins_a_lease_at_risk_is_told_so)
{
	readers_hold(3, 1);
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	passes(4 * SEC);
	hears(1, "! RISK *");
	reads(2);
	hears(2, "! RISK name=a *");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(1, "! SAFE *");
	hears(2, "! SAFE *");
}

TEST(show_and_list_tell_all_readers)
{
	readers_hold(3, 2);
	says(3, "LOCK a wait=1m");
	says(4, "LOCK a mode=shared wait=1m");
	says(5, "SHOW a");
	hears(5, "\\* role=holder pos=0 * fence=* held_ms=* valid_ms=* count=1 mode=shared");
	hears(5, "\\* role=holder pos=0 * fence=* held_ms=* valid_ms=* count=1 mode=shared");
	hears(5, "\\* role=waiter pos=1 * waited_ms=0");
	hears(5, "\\* role=waiter pos=2 * waited_ms=0 mode=shared");
	hears(5, "OK n=4");
	says(5, "LIST");
	hears(5, "\\* name=a fence=* session=1 * count=1 mode=shared holders=2 waiters=2");
	hears(5, "OK n=1 more=0");
}

/* 2 was told of the lease that 1 had asked for, and cannot be told that it is shorter now. */
TEST(an_extend_does_not_shorten_what_another_reader_was_told)
{
	stores_have_room(3);
	session_opens_from_afar(2, 0);
	says(1, "LOCK a mode=shared ttl=30s");
	hears(1, "OK *");
	says(2, "LOCK a mode=shared ttl=5s");
	hears(2, "OK *");
	says(3, "LOCK a mode=shared ttl=5s");
	hears(3, "OK *");
	passes(11 * SEC);
	says(2, "CHECK a");
	ck_assert_int_gt(number_in(hears(2, "OK name=a *"), "valid_ms"), 25000);
	says(1, "UNLOCK a");
	says(3, "EXTEND a ttl=6s");
	hears(3, "OK name=a *");
	passes(SEC);
	goes(2, GONE_RESET);
	says(3, "UNLOCK a");
	says(4, "LOCK a wait=1m");
	passes(20 * SEC);
	hears_nothing(4);
	passes(12 * SEC);
	hears(4, GRANT);
}

/* That a writer waits is told once to each of those that hold, however many of them came together. */
TEST(readers_that_come_together_are_told_of_a_waiter_once)
{
	stores_have_room(3);
	says(1, "LOCK a");
	hears(1, "OK *");
	for (unsigned k = 2; k <= 4; k++) {
		says(k, "SUBSCRIBE");
		hears(k, "OK");
		says(k, "LOCK a mode=shared wait=1m");
	}
	says(5, "LOCK a wait=1m");
	says(1, "UNLOCK a");
	for (unsigned k = 2; k <= 4; k++) {
		hears(k, READER);
		hears(k, "! CONTENDED name=a fence=* waiters=1");
		hears_nothing(k);
	}
}

LOOP_TEST(readers_have_no_end_no_lock_delay_and_no_keep_of_their_own, 3)
{
	static const char *const request[] = {"LOCK a", "LOCKALL a b", "LOCKANY a b"};

	cluster_open(3);
	cluster.conf.max_delay_us = 10 * SEC;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "%s mode=shared renew=no", request[_i]);
	hears(1, "ERR ARG renew=no is for exclusive locks*");
	says(1, "%s mode=shared delay=1s wait=1m", request[_i]);
	hears(1, "ERR ARG delay= is for exclusive locks*");
	says(1, "LOCK a mode=shared renew=yes delay=0s");
	hears(1, READER);
	says(1, "UNLOCK a keep=1s");
	hears(1, "ERR ARG keep= is for exclusive locks*");
	says(1, "UNLOCK a keep=0s");
	hears(1, "OK name=a count=0");
	ck_assert(is_free());
}

/* Else the renewal of a conversion lengthens it, also one that is refused. */
LOOP_TEST(a_hold_that_ends_or_has_a_lock_delay_is_not_shared, 2)
{
	cluster_open(3);
	cluster.conf.max_delay_us = 10 * SEC;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, _i == 0 ? "LOCK a renew=no" : "LOCK a delay=1s");
	hears(1, GRANT);
	passes(5 * SEC);
	says(1, "LOCK a mode=shared wait=%s", _i == 0 ? "0" : "1m");
	hears(1, _i == 0 ? "ERR ARG *renew=no*" : "ERR ARG *delay=*");
	says(1, "CHECK a");
	if (_i == 0)
		ck_assert_int_le(number_in(hears(1, "OK name=a fence=* valid_ms=* count=1"), "valid_ms"), 5000);
	else
		hears(1, "OK name=a fence=* valid_ms=* count=1");
}
