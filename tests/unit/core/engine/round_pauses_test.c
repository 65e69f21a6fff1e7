/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/acquire.c, retry.c: the pauses between rounds while votes are split, and how long a LOCK without wait= may take meanwhile. */
#include "tests/fixture/split_votes.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(requests_that_come_during_the_pause_after_a_split_do_not_end_it_one_by_one)
{
	int64_t rounds;

	cluster_begin(3);
	passes(2 * SEC);
	orphans_everywhere();
	says(1, "LOCK a wait=1m");
	passes(100 * MSEC); /* the pauses are 6 ms and longer by now */
	rounds = figure(0, METRIC_ROUNDS);
	for (unsigned k = 2; k < 12; k++)
		says(k, "LOCK a wait=1m");
	ck_assert_int_eq(figure(0, METRIC_ROUNDS), rounds);
	for (unsigned k = 12; k < 22; k++)
		says(k, "LOCK a");
	ck_assert_int_eq(figure(0, METRIC_ROUNDS), rounds);
	passes(301); /* a round trip, and half of it: 200 us at least */
	ck_assert_int_eq(figure(0, METRIC_ROUNDS), rounds + 1);
	for (unsigned k = 12; k < 22; k++)
		hears(k, "BUSY name=a *");
}

TEST(a_wait_that_ends_while_votes_are_split_is_a_timeout)
{
	cluster_begin(3);
	passes(2 * SEC);
	orphans_everywhere();
	says(1, "LOCK a wait=150ms");
	passes(160 * MSEC);
	hears(1, "TIMEOUT name=a waited_ms=*");
	/* Nobody was seen to hold it. When the stores are gone, nothing else can be said. */
	says(1, "LOCK a wait=150ms");
	falls(0);
	falls(1);
	passes(160 * MSEC);
	hears(1, "ERR QUORUM 1 of 3 *");
}

TEST(a_long_round_trip_makes_no_pause_longer_than_a_second_and_a_half)
{
	cluster_open(3);
	cluster.conf.timeout_us = 500 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	orphans_everywhere();
	all_feel(MOOD_TARDY);
	says(1, "LOCK b");
	passes(400 * MSEC);
	all_feel(MOOD_WELL);
	hears(1, "OK name=b *");
	says(1, "LOCK a wait=10m");
	for (unsigned s = 0; s < 20; s += 2) {
		int64_t rounds = figure(0, METRIC_ROUNDS);

		passes(2 * SEC);
		ck_assert_int_gt(figure(0, METRIC_ROUNDS), rounds);
	}
}

/* Its marker changed while a probe of it was under way, and no answer comes. The store hangs, and promises nothing. */
TEST(a_lock_without_wait_is_not_delayed_by_a_store_that_hangs_while_it_is_looked_at)
{
	cluster_begin(1);
	passes(2 * SEC);
	feels(0, MOOD_SILENT);
	says(1, "LOCK a wait=1m");
	passes(1500 * MSEC);
	marker_is_set(0, "another");
	serves(0, 1);
	ck_assert_str_eq(store_state(0, 0), "probing: its marker changed");
	says(2, "LOCK b");
	passes(200 * MSEC);
	hears(2, "ERR QUORUM *");
}
