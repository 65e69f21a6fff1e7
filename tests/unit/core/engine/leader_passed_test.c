/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/acquire.c: the leading node shows a value that stays, of a holder or of nobody. When it has stood for long the next node is asked
 * first, so nobody waits for longer than it must.
 */
#include "tests/fixture/split_votes.h"

#include <check.h>

/* One round trip to stores that are 20 ms away. */
static void round_trip_passes(void)
{
	passes(20 * MSEC);
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		serves(i, waiting_at(i));
}

static void stores_are_far(void)
{
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 200; i++) /* until the round trip is known */
		round_trip_passes();
}

FIXTURE(.teardown = cluster_close)

/* An orphan key stands at one of the two stores in reach. Nobody announces its end. */
LOOP_TEST(a_waiter_behind_an_orphan_key_has_the_lock_soon_after_its_end, 60)
{
	int64_t stands = 1 * SEC + _i * 80 * MSEC, took = -stands;

	cluster_begin(3);
	passes(2 * SEC);
	falls(2);
	stores_are_far();
	key_is_overwritten(0, "a", "d1:1:00", stands);
	says(1, "LOCK a wait=1m");
	for (; !figure(0, METRIC_GRANTS); took += 20 * MSEC)
		round_trip_passes();
	ck_assert_int_le(took, 500 * MSEC + 20 * 20 * MSEC);
	hears(1, "OK name=a *");
}

/* Of five stores, so many that would lead have the value of a daemon that does not reach them. The votes of the others are split, for one round trip. */
static void leading_nodes_are_kept(unsigned many)
{
	static const char *const value[] = {"d1:1:00", "d2:2:00"};
	uint16_t kept = 0;

	cluster_begin(5);
	passes(2 * SEC);
	stores_are_far();
	for (unsigned k = 0; k < 3; k++) {
		unsigned node = leading("a", kept);

		key_is_overwritten(node, "a", k < many ? value[k] : "d3:3:00", k < many ? 50 * SEC : 30 * MSEC);
		kept |= (uint16_t)(1u << node);
	}
	says(1, "LOCK a wait=1m");
	round_trip_passes();
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 1);
}

RANGE_TEST(a_value_that_stays_at_the_leading_node_does_not_keep_the_lock_from_others, 1, 3)
{
	int64_t took = 20 * MSEC;

	leading_nodes_are_kept((unsigned)_i);
	for (; !figure(0, METRIC_GRANTS); took += 20 * MSEC)
		round_trip_passes();
	ck_assert_int_le(took, 500 * MSEC + 20 * 20 * MSEC);
	hears(1, "OK name=a *");
}

TEST(a_holder_that_won_the_leading_node_is_known_by_asking_one_store_after_the_other)
{
	unsigned asked_once;

	leading_nodes_are_kept(1);
	for (unsigned i = 0; i < 5; i++)
		key_is_overwritten(i, "a", "d1:1:00", 50 * SEC);
	for (unsigned i = 0; i < 25; i++)
		round_trip_passes();
	asked_once = asked(CALL_ACQUIRE);
	says(2, "LOCK a");
	hears(2, "BUSY name=a waiters=1 retry_ms=*");
	ck_assert_uint_eq(asked(CALL_ACQUIRE), asked_once);
	hears_nothing(1);
}
