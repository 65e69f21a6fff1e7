/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/renew.c: leases that cannot be renewed, LOST, and keys that a store has lost. */
#include "tests/fixture/held_lock.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_lock_that_cannot_be_renewed_is_LOST_before_its_deadline_and_its_key_stays_until_then)
{
	held_after_lock(3, "LOCK a");
	refuses(1, "OOM");
	refuses(2, "OOM");
	passes(9 * SEC);
	hears(1, "! RISK *");
	hears_nothing(1);
	passes(890 * MSEC);
	hears(1, "! LOST name=a fence=* reason=quorum");
	ck_assert_uint_eq(asked(CALL_RELEASE), 0);
	ck_assert(key_is_there(0, "a"));
	says(2, "LOCK a");
	hears(2, "BUSY name=a * retry_ms=*");
	all_feel(MOOD_WELL);
	passes(106 * MSEC); /* a client's clock may be 1 % slower than ours */
	ck_assert_uint_eq(asked(CALL_RELEASE), 0);
	passes(10 * MSEC);
	ck_assert_uint_eq(asked(CALL_RELEASE), 3);
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(a_waiter_gets_a_lost_lock_at_its_deadline_and_not_before)
{
	held_after_lock(3, "LOCK a");
	says(2, "LOCK a wait=30s");
	all_feel(MOOD_SILENT);
	passes(9890 * MSEC);
	hears(1, "! RISK *");
	hears(1, "! LOST *");
	hears_nothing(2);
	all_feel(MOOD_WELL);
	hears_nothing(2);
	passes(150 * MSEC);
	hears(2, "OK name=a *");
}

TEST(an_evicted_key_is_lost_at_the_next_renewal)
{
	held_after_lock(1, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	says(2, "LOCK a wait=1m");
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
	hears_nothing(1);
	hears(2, "OK name=a *"); /* nobody can be kept out by a key that is gone */
}

TEST(a_key_that_another_client_overwrote_is_lost_and_left_to_it)
{
	held_after_lock(1, "LOCK a");
	key_is_overwritten(0, "a", "somebody", 20 * SEC);
	says(1, "EXTEND a");
	hears(1, "! LOST name=a fence=* reason=evicted");
	hears(1, "ERR LOST *");
	passes(SEC);
	ck_assert(key_is_there(0, "a"));
	says(2, "LOCK a");
	hears(2, "BUSY name=a holder=foreign ttl_ms=* waiters=0 retry_ms=*");
}

TEST(a_key_that_one_store_lost_is_put_back_while_the_others_are_a_quorum)
{
	held_after_lock(3, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears_nothing(1);
	ck_assert(key_is_there(0, "a"));
	falls(1);
	passes(3400 * MSEC);
	ck_assert_int_gt(valid_ms(), 9000);
}

TEST(a_key_is_not_put_back_once_the_others_are_known_to_be_no_quorum)
{
	held_after_lock(3, "LOCK a");
	key_is_overwritten(0, "a", "somebody", 20 * SEC);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	loses(1, 1);
	loses(2, 1);
	hears(1, "! RISK *");
	hears(1, "ERR QUORUM *");
	/* The vote of b stands, because an unknown answer changes nothing. But if the key were put back, a and c would have to hold without it. */
	passes(510 * MSEC);
	ck_assert(!cluster.node[1].last[CALL_EXTEND].call.create);
	feels(1, MOOD_WELL);
	hears(1, "! LOST name=a fence=* reason=evicted");
	feels(2, MOOD_WELL);
	ck_assert(!key_is_there(1, "a"));
}

TEST(a_push_names_the_owner_of_the_lock)
{
	held_after_lock(1, "LOCK a owner=t1");
	feels(0, MOOD_SILENT);
	passes(12 * SEC);
	hears(1, "! RISK name=a fence=* left_ms=* owner=t1");
	hears(1, "! LOST name=a fence=* reason=quorum owner=t1");
	feels(0, MOOD_WELL);
}
