/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/wait.c, move.c: how long LOCK without wait= may wait for busy stores, and for rounds that decide nothing. */
#include "tests/fixture/full_window.h"

#include <check.h>

#define BUSY_STORES "ERR QUORUM 3 of 3 stores can be used, but are too busy: *"

/* Each store answers one call in 15 ms. */
static void stores_work_for(int64_t us)
{
	for (int64_t past = 0; past < us; past += 15 * MSEC) {
		passes(15 * MSEC);
		for (unsigned i = 0; i < cluster.conf.nodes; i++)
			serves(i, 1);
	}
}

static void begins_with_busy_stores(void)
{
	begins_with_window(3, 1);
	all_feel(MOOD_SILENT);
}

/* Two stores show two holders, so nobody has a quorum. */
static void votes_are_split(const char *name)
{
	key_is_overwritten(0, name, "0123456789abcdef.one:1:00112233445566778899aabbccddeeff", 60 * SEC);
	key_is_overwritten(1, name, "fedcba9876543210.two:1:ffeeddccbbaa99887766554433221100", 60 * SEC);
}

static void crowds_are_served(unsigned first, unsigned last)
{
	all_feel(MOOD_WELL);
	passes(SEC);
	for (unsigned k = first; k <= last; k++)
		ignores(k);
}

FIXTURE(.teardown = cluster_close)

TEST(a_second_wait_for_busy_stores_does_not_begin_the_second_anew)
{
	begins_with_busy_stores();
	votes_are_split("a");
	says_of_many(1, "LOCK", "wait=60s");
	says(2, "LOCK a");
	for (unsigned k = 3; k <= 5; k++)
		says_of_many(k, "LOCK", "wait=60s");
	stores_work_for(800 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 1);
	hears_nothing(2);
	stores_work_for(210 * MSEC);
	hears(2, BUSY_STORES);
	crowds_are_served(1, 5);
}

TEST(each_lock_without_wait_has_a_second_of_its_own)
{
	begins_with_busy_stores();
	for (unsigned k = 1; k <= 4; k++)
		says_of_many(k, "LOCK", "wait=60s");
	says(5, "LOCK a");
	stores_work_for(900 * MSEC);
	says(6, "LOCK a");
	stores_work_for(120 * MSEC);
	hears(5, BUSY_STORES);
	hears_nothing(6);
	stores_work_for(840 * MSEC);
	hears_nothing(6);
	stores_work_for(60 * MSEC);
	hears(6, BUSY_STORES);
	crowds_are_served(1, 6);
}

/* Its wait ends during the round of the first waiter, who then leaves. That round asked for another lease. */
TEST(a_wait_that_is_over_does_not_go_on_at_busy_stores)
{
	begins_with_busy_stores();
	says(1, "LOCK a ttl=5s wait=60s");
	says(2, "LOCK a ttl=1s wait=20ms");
	for (unsigned k = 3; k <= 6; k++)
		says_of_many(k, "LOCK", "wait=60s");
	passes(30 * MSEC);
	hears_nothing(2);
	goes(1, GONE_HANGUP);
	stores_work_for(15 * MSEC);
	passes(5 * MSEC);
	hears(2, "ERR QUORUM *");
	crowds_are_served(3, 6);
}

TEST(rounds_that_nobody_wins_are_not_repeated_beyond_a_second)
{
	cluster_open(3);
	cluster.conf.timeout_us = 900 * MSEC;
	daemon_starts(0);
	passes(11 * SEC);
	votes_are_split("a");
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	for (unsigned round = 0; round < 2; round++) {
		hears_nothing(1);
		passes(800 * MSEC);
		for (unsigned i = 0; i < 3; i++)
			serves(i, waiting_at(i));
	}
	hears(1, "BUSY name=a waiters=0");
	all_feel(MOOD_WELL);
}
