/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/renew.c: keys that stores have lost although they vouched for them, by DEL or by eviction. */
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <stdio.h>

FIXTURE(.teardown = cluster_close)

TEST(a_key_that_one_store_lost_is_put_back_and_logged)
{
	held_after_lock(3, "LOCK a");
	ck_assert(!was_logged("reasserted *"));
	memory_remove(cluster.node[0].memory, SPAN("a"));
	passes(3340 * MSEC);
	ck_assert(was_logged("reasserted name=a node=*"));
	ck_assert_int_eq(figure(0, METRIC_REASSERTIONS), 1);
	passes(20 * SEC);
	ck_assert(!was_logged("reasserted *"));
	ck_assert_int_eq(figure(0, METRIC_REASSERTIONS), 1);
}

TEST(a_key_that_a_quorum_lost_is_evicted_although_each_store_takes_it_back)
{
	held_after_lock(3, "LOCK a");
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
	hears_nothing(1);
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	/* A key that was put back is removed again, once nobody can trust the lock. */
	passes(10 * SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	says(2, "LOCK a");
	hears(2, "OK name=a *");
}

TEST(an_extend_that_finds_the_key_gone_at_a_quorum_is_answered_lost)
{
	held_after_lock(3, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	memory_remove(cluster.node[1].memory, SPAN("a"));
	says(1, "EXTEND a");
	hears(1, "! LOST name=a fence=* reason=evicted");
	hears(1, "ERR LOST *");
}

TEST(two_of_five_stores_that_lost_the_key_leave_a_quorum)
{
	held_after_lock(5, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	memory_remove(cluster.node[3].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears_nothing(1);
	ck_assert(key_is_there(0, "a"));
	/* With one more without a vote the two are too many. */
	falls(4);
	passes(10 * SEC);
	hears_nothing(1);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	memory_remove(cluster.node[2].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
}

TEST(a_key_that_two_stores_lost_one_after_the_other_was_always_at_a_quorum)
{
	held_after_lock(3, "LOCK a");
	for (unsigned i = 0; i < 9; i++) {
		memory_remove(cluster.node[i % 3].memory, SPAN("a"));
		passes(3340 * MSEC);
		passes(3340 * MSEC); /* in between all confirm that they have it */
		hears_nothing(1);
	}
	ck_assert_int_eq(figure(0, METRIC_REASSERTIONS), 9);
}

TEST(a_store_that_reports_the_loss_a_round_later_may_have_lost_the_key_at_the_same_time)
{
	held_after_lock(3, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	memory_remove(cluster.node[1].memory, SPAN("a"));
	feels(1, MOOD_SILENT);
	passes(3340 * MSEC);
	hears_nothing(1);
	loses(1, 1);
	feels(1, MOOD_WELL);
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
}

TEST(a_store_that_took_the_key_back_is_no_loss_when_another_goes_down_later)
{
	held_after_lock(3, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	feels(2, MOOD_SILENT);
	passes(3340 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_REASSERTIONS), 1);
	falls(2);
	/* The last vote of the store that is down ends while the others refuse. That shows nothing new. */
	passes(3340 * MSEC);
	refuses(0, "OOM");
	passes(5 * SEC);
	hears(1, "! RISK name=a *");
	feels(0, MOOD_WELL);
	passes(SEC);
	hears(1, "! SAFE name=a *");
	hears_nothing(1);
}

TEST(a_key_that_expired_while_the_question_was_on_its_way_was_not_lost)
{
	held_after_lock(3, "LOCK a");
	passes(3 * SEC);
	feels(0, MOOD_SILENT);
	passes(9 * SEC);
	ck_assert(!key_is_there(0, "a"));
	feels(0, MOOD_WELL);
	passes(5 * SEC);
	ck_assert(key_is_there(0, "a"));
	passes(2 * SEC); /* in between all confirm that they have it */
	/* So another store may lose it: two of three have always had the key. */
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(5 * SEC);
	ck_assert(key_is_there(1, "a"));
	hears_nothing(1);
}

TEST(a_store_that_lost_all_and_has_joined_again_denies_nothing)
{
	held_after_lock(3, "LOCK a");
	restarts_blank(0);
	passes(31 * SEC);
	restarts_blank(1);
	passes(35 * SEC);
	hears_nothing(1);
	ck_assert(key_is_there(0, "a"));
	ck_assert(key_is_there(1, "a"));
	ck_assert_int_eq(figure(0, METRIC_REASSERTIONS), 0);
}

/* Two of three granted, so the store that lost the key was needed. The other one keeps everybody else out, and the holder may not have read LOST. */
TEST(a_lock_that_a_store_lost_beside_one_that_refuses_goes_to_nobody_before_its_promise_is_over)
{
	cluster_begin(3);
	refuses(2, "OOM");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(3, "LOCK a wait=1m");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
	feels(2, MOOD_WELL);
	says(2, "LOCK a");
	hears(2, "BUSY name=a *");
	ck_assert(key_is_there(1, "a"));
	passes(6600 * MSEC);
	hears_nothing(3);
	passes(300 * MSEC);
	hears(3, "OK name=a *");
}

TEST(a_store_that_denies_the_key_brings_the_end_of_the_lease_nearer_but_not_of_what_was_promised)
{
	held_after_lock(3, "LOCK a renew=no ttl=20s");
	says(3, "LOCK a wait=1m");
	refuses(2, "OOM");
	passes(5 * SEC);
	says(1, "EXTEND a ttl=20s");
	hears(1, "OK name=a *"); /* until 25 s at two stores, until 20 s at the third */
	key_is_overwritten(0, "a", "somebody", 60 * SEC);
	refuses(1, "OOM");
	says(1, "EXTEND a ttl=20s");
	hears(1, "ERR QUORUM *");
	passes(14900 * MSEC);
	hears(1, "! LOST name=a fence=* reason=expired");
	all_feel(MOOD_WELL);
	passes(5 * SEC);
	hears_nothing(3);
	passes(SEC);
	hears(3, "OK name=a *");
}

/* Another daemon has broken it at store 1 alone. There the key stands as long as it would have, and only store 0 has lost it. */
TEST(a_store_where_the_key_is_broken_still_keeps_others_out)
{
	char broken[VALUE_MAX + 1];

	held_after_lock(3, "LOCK a");
	says(3, "LOCK a wait=1m");
	passes(3 * SEC);
	snprintf(broken, sizeof(broken), "!%s", cluster.node[1].last[CALL_ACQUIRE].value);
	key_is_overwritten(1, "a", broken, 6900 * MSEC);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	says(1, "EXTEND a");
	hears(1, "! LOST name=a fence=* reason=evicted");
	hears(1, "ERR LOST *");
	passes(9900 * MSEC);
	hears_nothing(3);
	passes(400 * MSEC);
	hears(3, "OK name=a *");
}

/* --- gaps: a store that did not have the key all the time vouches for no moment before it says that it has it --- */

TEST(a_store_that_was_given_the_key_later_does_not_vouch_for_the_time_before)
{
	cluster_begin(3);
	refuses(0, "OOM");
	says(1, "LOCK a");
	hears(1, GRANT);
	feels(0, MOOD_WELL);
	memory_remove(cluster.node[1].memory, SPAN("a")); /* now store 2 alone has it: another daemon may be granted it by the other two */
	feels(1, MOOD_SILENT);
	passes(3340 * MSEC);
	ck_assert(key_is_there(0, "a"));
	hears_nothing(1);
	loses(1, 1);
	feels(1, MOOD_WELL);
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
}

TEST(a_store_that_was_given_the_key_later_vouches_for_it_once_all_have_confirmed_that_they_have_it)
{
	cluster_begin(3);
	refuses(0, "OOM");
	says(1, "LOCK a");
	hears(1, GRANT);
	feels(0, MOOD_WELL);
	passes(3340 * MSEC);
	ck_assert(key_is_there(0, "a"));
	passes(3340 * MSEC);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(3340 * MSEC);
	ck_assert(key_is_there(1, "a"));
	hears_nothing(1);
	ck_assert_int_eq(figure(0, METRIC_REASSERTIONS), 1);
}

TEST(a_store_that_may_have_put_the_key_back_unheard_does_not_vouch_for_the_time_before)
{
	held_after_lock(3, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(3300 * MSEC);
	feels(0, MOOD_LOSSY);
	feels(1, MOOD_SILENT);
	passes(40 * MSEC);
	ck_assert(key_is_there(0, "a"));
	feels(0, MOOD_WELL);
	passes(200 * MSEC);
	hears(1, "! RISK name=a *");
	passes(SEC);
	hears(1, "! SAFE name=a *");
	feels(1, MOOD_WELL);
	passes(MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
}

TEST(a_vote_that_was_over_denies_nothing_beside_a_store_that_was_given_the_key_later)
{
	cluster_begin(3);
	refuses(0, "OOM");
	says(1, "LOCK a");
	hears(1, GRANT);
	feels(0, MOOD_WELL);
	passes(SEC);
	feels(1, MOOD_SILENT);
	passes(9500 * MSEC); /* its vote is over, and the next renewal has not begun */
	ck_assert(!key_is_there(1, "a"));
	feels(1, MOOD_WELL);
	passes(10 * SEC);
	ck_assert(key_is_there(1, "a"));
	hears_nothing(1);
}
