/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/acquire.c: daemons that race for a name beside a store that hangs or is slow. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

TEST(a_store_that_hangs_does_not_keep_two_daemons_from_ending_a_split)
{
	two_daemons(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a wait=1m");
	says(2, "LOCK a wait=1m");
	serves_daemon(0, 1, 1);
	serves_daemon(1, 2, 1);
	serves_daemon(0, 2, 1);
	serves_daemon(1, 1, 1);
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	passes(30 * MSEC); /* less than a command may take */
	ck_assert_int_eq(figure(0, METRIC_GRANTS) + figure(1, METRIC_GRANTS), 1);
	for (unsigned k = 1; k < 3; k++)
		ignores(k);
}

TEST(a_lock_without_wait_hears_a_slow_store_in_its_last_round)
{
	cluster_begin(3);
	passes(2 * SEC);
	key_is_overwritten(1, "a", "another client's", 60 * SEC);
	feels(0, MOOD_SILENT);
	for (unsigned round = 0; round < 2; round++) {
		says(1, "LOCK a");
		hears_nothing(1);
		for (unsigned i = 0; i < 3 && waiting_at(0) < 4; i++)
			passes(5 * MSEC); /* two rounds, and what gives back their votes */
		passes(10 * MSEC);
		hears_nothing(1);
		feels(0, MOOD_WELL);
		hears(1, "OK name=a *");
		says(1, "UNLOCK a");
		hears(1, "OK *");
		feels(0, MOOD_SILENT);
	}
}

/* For how long the longest vote stood at this node within that time, to the millisecond; meanwhile the rival's value at node 1 is renamed every so often. */
static int64_t longest_vote(unsigned node, int64_t ms, int64_t rename_ms)
{
	int64_t longest = 0, stood = 0;

	for (int64_t t = 0; t < ms; t++) {
		if (rename_ms && t % rename_ms == 0) {
			char value[16];

			snprintf(value, sizeof(value), "d1:%d:00", (int)t);
			key_is_overwritten(1, "a", value, 100 * SEC);
		}
		passes(MSEC);
		stood = key_is_there(node, "a") ? stood + 1 : 0;
		longest = stood > longest ? stood : longest;
	}
	return longest * MSEC;
}

static void with_a_timeout_of(unsigned nodes, int64_t us)
{
	cluster_open(nodes);
	cluster.conf.timeout_us = us;
	daemon_starts(0);
	passes(2 * SEC);
}

TEST(a_long_race_waits_no_longer_for_a_hanging_store_than_a_short_one)
{
	with_a_timeout_of(3, 3 * SEC);
	feels(0, MOOD_SILENT);
	key_is_overwritten(1, "a", "d1:1:00", 100 * SEC);
	says(1, "LOCK a wait=1m");
	ck_assert_int_le(longest_vote(2, 2500, 1), 10 * MSEC);
	ck_assert_int_gt(figure(0, METRIC_SPLITS), 30);
	feels(0, MOOD_WELL);
	ignores(1);
}

/* No round has a quorum without the store that hangs. But the key may be released at any time, so nobody keeps a vote from others for long. */
TEST(a_value_that_stays_is_waited_out_in_rounds_that_end)
{
	int64_t longest;

	with_a_timeout_of(3, 3 * SEC);
	feels(0, MOOD_SILENT);
	key_is_overwritten(1, "a", "d1:1:00", 100 * SEC);
	says(1, "LOCK a wait=1m");
	longest = longest_vote(2, 2500, 0);
	ck_assert_int_ge(longest, 90 * MSEC);
	ck_assert_int_le(longest, 110 * MSEC);
	feels(0, MOOD_WELL);
	ignores(1);
}

TEST(rivals_at_a_quorum_of_five_race_although_an_orphan_key_stands_at_one)
{
	with_a_timeout_of(5, 3 * SEC);
	feels(0, MOOD_SILENT);
	key_is_overwritten(2, "a", "d2:1:00", 100 * SEC);
	key_is_overwritten(3, "a", "d2:1:00", 100 * SEC);
	says(1, "LOCK a wait=1m");
	ck_assert_int_ge(longest_vote(4, 1500, 0), 90 * MSEC);
	memory_remove(cluster.node[3].memory, SPAN("a"));
	longest_vote(4, 200, 3); /* the round that is under way ends */
	ck_assert_int_le(longest_vote(4, 1000, 3), 10 * MSEC);
	feels(0, MOOD_WELL);
	ignores(1);
}

/* Node 0 answers each call after that long. */
static bool granted_while_node_0_takes(int64_t us, int64_t within_us)
{
	const char *line;

	for (int64_t t = 0; t < within_us; t += us) {
		passes(us);
		serves(0, waiting_at(0));
		line = next_line(1);
		if (line)
			return strncmp(line, "OK name=a ", 10) == 0;
	}
	return false;
}

LOOP_TEST(a_daemon_that_asks_in_vain_for_long_still_hears_a_store_that_answers_within_the_timeout, 3)
{
	static const int64_t takes[] = {20 * MSEC, 300 * MSEC, 700 * MSEC};

	with_a_timeout_of(3, 1600 * MSEC);
	feels(0, MOOD_SILENT);
	key_is_overwritten(1, "a", "d1:1:00", 100 * SEC);
	says(1, "LOCK a wait=2m");
	ck_assert(granted_while_node_0_takes(takes[_i], _i ? 60 * SEC : 2 * SEC));
	feels(0, MOOD_WELL);
}
