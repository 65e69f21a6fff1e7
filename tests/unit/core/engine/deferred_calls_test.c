/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/release.c, move.c: calls to busy stores that are put off, and when those stores hear of them. */
#include "tests/fixture/full_window.h"
#include "tests/fixture/resumable.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_busy_store_hears_a_little_later_which_tickets_are_withdrawn)
{
	waiter_leaves_while_it_is_full(2);
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], 1);
	feels(2, MOOD_WELL);
	passes(100 * MSEC);
	ck_assert_uint_eq(cluster.node[2].count[CALL_WITHDRAW], 1);
}

TEST(a_store_that_missed_a_release_is_asked_again_once_the_key_has_expired)
{
	unsigned asked;

	begins_with_window(3, 4);
	says(1, "LOCK a ttl=100ms");
	hears(1, "OK *");
	says(2, "LOCK a ttl=2s renew=no wait=1m");
	is_full(2, 5);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK *");
	says(3, "LOCK a wait=1m");
	passes(1900 * MSEC);
	feels(2, MOOD_WELL);
	asked = cluster.node[2].count[CALL_ACQUIRE];
	passes(100 * MSEC);
	hears(3, "OK *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_ACQUIRE], asked + 1);
}

/* In between the store is asked for a renewal and hears of a later release. The earlier value stands there all the same. */
TEST(a_store_that_missed_a_release_is_not_asked_although_it_hears_of_a_later_one)
{
	unsigned asked_there;

	begins_with_window(3, 1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	is_full(2, 2);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	asked_there = cluster.node[2].count[CALL_ACQUIRE];
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_RELEASE], 0);
	serves(2, waiting_at(2));
	says(1, "EXTEND a ttl=9s");
	hears(1, "OK name=a *");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	serves(2, waiting_at(2));
	ck_assert_uint_eq(cluster.node[2].count[CALL_RELEASE], 1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_ACQUIRE], asked_there);
	feels(2, MOOD_WELL);
}

/* So many stores are busy that the others cannot decide without them. */
TEST(stores_that_missed_two_releases_hear_of_them_right_before_they_are_asked)
{
	unsigned told[3];

	begins_with_window(3, 1);
	for (unsigned node = 2; node > 0; node--) {
		says(1, "LOCK a");
		hears(1, "OK name=a *");
		feels(node, MOOD_SILENT);
		says(3, "LOCK first-%u", node);
		says(4, "LOCK second-%u", node);
		told[node] = cluster.node[node].count[CALL_RELEASE];
		says(1, "UNLOCK a");
		hears(1, "OK *");
		ck_assert_uint_eq(cluster.node[node].count[CALL_RELEASE], told[node]);
		feels(node, MOOD_WELL);
		ck_assert(key_is_there(node, "a"));
	}
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	ck_assert(key_is_there(0, "a"));
	for (unsigned node = 1; node < 3; node++)
		ck_assert_uint_eq(cluster.node[node].count[CALL_RELEASE], told[node] + 1);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	for (unsigned node = 0; node < 3; node++)
		ck_assert(!key_is_there(node, "a"));
	ignores(3);
	ignores(4);
}

TEST(a_store_that_missed_a_release_hears_of_it_when_another_has_gone_and_it_is_needed)
{
	begins_with_window(3, 1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	is_full(1, 3);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	feels(1, MOOD_WELL);
	ck_assert(key_is_there(1, "a"));
	falls(2);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	comes(2);
}

TEST(a_busy_store_hears_at_once_of_a_release_that_a_client_waits_for)
{
	unsigned told;

	begins_with_window(3, 1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	is_full(2, 2);
	feels(0, MOOD_SILENT); /* without the busy one there is no quorum */
	told = cluster.node[2].count[CALL_RELEASE];
	says(1, "UNLOCK a sync=yes");
	ck_assert_uint_eq(cluster.node[2].count[CALL_RELEASE], told + 1);
	feels(2, MOOD_WELL);
	hears(1, "OK name=a count=0");
	feels(0, MOOD_WELL);
}

/* Store 0 is silent and store 2 refuses, so one store has freed the key. */
static void waits_for_a_release(void)
{
	cluster_open(3);
	cluster.conf.timeout_us = 5 * SEC;
	daemon_starts(0);
	passes(11 * SEC);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	feels(0, MOOD_SILENT);
	refuses(2, "OOM");
	says(1, "UNLOCK a sync=yes");
	hears_nothing(1);
}

TEST(a_store_that_refused_a_release_that_a_client_waits_for_is_told_again_soon)
{
	waits_for_a_release();
	feels(2, MOOD_WELL);
	ck_assert(key_is_there(2, "a"));
	passes(101 * MSEC);
	ck_assert(!key_is_there(2, "a"));
	hears(1, "OK name=a count=0");
	feels(0, MOOD_WELL);
}

TEST(a_client_waits_no_longer_for_a_release_than_a_command_may_take)
{
	waits_for_a_release();
	passes(4990 * MSEC);
	hears_nothing(1);
	passes(20 * MSEC);
	hears(1, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	passes(SEC);
	ck_assert(!key_is_there(0, "a"));
	ck_assert(!key_is_there(2, "a"));
}

TEST(a_store_that_missed_a_release_hears_of_it_when_another_hangs_and_it_is_needed)
{
	begins_with_window(3, 1);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	is_full(2, 3);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	feels(2, MOOD_WELL);
	ck_assert(key_is_there(2, "a"));
	feels(1, MOOD_SILENT);
	says(1, "LOCK a");
	passes(15 * MSEC); /* less than a command may take, and than the time before a retry */
	hears(1, "OK name=a *");
	feels(1, MOOD_WELL);
}

