/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/acquire.c: a round leaves a busy store out, and asks it when it has room and its vote is needed. */
#include "daemon/base/rng.h"
#include "daemon/core/member/membership.h"
#include "tests/fixture/full_window.h"

#include <check.h>

/* The three stores: the leading one, the next one, the last one. */
static void in_order(unsigned order[3])
{
	order[0] = 0;
	for (unsigned i = 1; i < 3; i++)
		if (member_weight(SPAN("a"), span_of(cluster.node[i].run_id)) > member_weight(SPAN("a"), span_of(cluster.node[order[0]].run_id)))
			order[0] = i;
	order[1] = (order[0] + 1) % 3;
	order[2] = (order[0] + 2) % 3;
}

/* Both other stores get values of other daemons: session 2, which waits for a, finds the votes split. */
static void finds_a_split(const unsigned order[3])
{
	key_is_overwritten(order[1], "a", "d1:1:00", 50 * SEC);
	key_is_overwritten(order[2], "a", "d2:2:00", 50 * SEC);
	says(2, "LOCK a wait=1m");
	ck_assert_int_eq(figure(0, METRIC_SPLITS), 1);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_busy_store_is_asked_when_it_has_room_and_another_hangs_or_has_gone, 2)
{
	begins_with_window(3, 4);
	is_full(1, 1);
	feels(2, MOOD_SILENT);
	says(2, "LOCK a");
	if (_i)
		falls(2);
	passes(5 * MSEC);
	hears_nothing(2);
	feels(1, MOOD_WELL);
	passes(15 * MSEC); /* less than a command may take */
	hears(2, "OK name=a *");
	ck_assert_int_eq(figure(0, METRIC_ROUNDS_FAILED), 0);
}

TEST(a_leading_node_is_asked_when_it_has_room)
{
	unsigned order[3];

	begins_with_window(3, 4);
	in_order(order);
	finds_a_split(order);
	for (unsigned i = 1; i < 3; i++)
		memory_remove(cluster.node[order[i]].memory, SPAN("a"));
	is_full(order[0], 1);
	feels(order[2], MOOD_SILENT);
	passes(4 * MSEC);
	feels(order[0], MOOD_WELL);
	passes(15 * MSEC);
	hears(2, "OK name=a *");
}

/* One vote is missing, and the store that was left out decides. A LOCK without wait= waits for it, as for a slow store. */
TEST(a_lock_without_wait_hears_the_busy_store_that_decides)
{
	begins_with_window(3, 4);
	key_is_overwritten(1, "a", "another client's", 60 * SEC);
	is_full(2, 1);
	says(2, "LOCK a");
	passes(10 * MSEC);
	hears_nothing(2);
	feels(2, MOOD_WELL);
	passes(30 * MSEC);
	hears(2, "OK name=a *");
}

/* The store has not heard yet that the last holder released the lock, and would only refuse. */
TEST(a_busy_store_that_still_has_a_value_of_ours_is_not_asked_for_the_next)
{
	unsigned asked;

	begins_with_window(3, 4);
	says(1, "LOCK a ttl=9s");
	hears(1, "OK *");
	is_full(2, 5);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	serves(2, 2 * cluster.conf.window - 2);
	asked = cluster.node[2].count[CALL_ACQUIRE];
	says(2, "LOCK a");
	hears(2, "OK name=a *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_ACQUIRE], asked);
}

TEST(a_busy_store_is_not_asked_once_nobody_wants_the_lock)
{
	unsigned asked;

	begins_with_window(3, 4);
	is_full(1, 1);
	feels(2, MOOD_SILENT);
	says(2, "LOCK a");
	goes(2, GONE_HANGUP);
	feels(1, MOOD_WELL);
	asked = cluster.node[1].count[CALL_ACQUIRE];
	passes(15 * MSEC);
	ck_assert_uint_eq(cluster.node[1].count[CALL_ACQUIRE], asked);
}

TEST(a_store_that_was_asked_late_and_hangs_counts_as_slow)
{
	begins_with_window(3, 4);
	passes(400 * MSEC); /* no probe is due soon */
	is_full(1, 1);
	feels(2, MOOD_SILENT);
	says(2, "LOCK a");
	passes(500);
	feels(1, MOOD_WELL);
	feels(1, MOOD_SILENT);
	passes(10 * MSEC);
	ck_assert_uint_eq(waiting_at(1), 1);
	feels(2, MOOD_WELL);
	hears(2, "OK name=a *");
	passes(80 * MSEC);
	ck_assert_str_eq(store_state(0, 1), "slow: it has not answered within redis.timeout");
}

TEST(a_store_that_was_asked_behind_the_leading_node_and_hangs_counts_as_slow)
{
	unsigned order[3];

	begins_with_window(3, 0);
	passes(400 * MSEC);
	in_order(order);
	finds_a_split(order);
	feels(order[0], MOOD_SILENT);
	feels(order[2], MOOD_SILENT);
	passes(400);
	feels(order[0], MOOD_WELL);
	goes(2, GONE_HANGUP);
	passes(60 * MSEC);
	ck_assert_uint_ge(waiting_at(order[2]), 1);
	ck_assert_str_eq(store_state(0, order[2]), "slow: it has not answered within redis.timeout");
}

/* --- all of it at random --- */

#define SESSIONS 8
#define STORMS   27

static unsigned drawn(struct rng *rng, unsigned below)
{
	return (unsigned)rng_below(rng, below);
}

/* Session k, of the daemon k % 2, says something; tags are numbered. */
static void somebody_speaks(struct rng *rng, unsigned tag)
{
	static const char *const how[] = {"", "wait=5s", "ttl=300ms", "wait=300ms"};
	unsigned k = 1 + drawn(rng, SESSIONS), name = drawn(rng, 6);

	switch (drawn(rng, 6)) {
	case 0:
		goes(k, GONE_HANGUP);
		session_opens(k, k % 2);
		break;
	case 1:
		says(k, "@%u UNLOCK n-%u", tag, name);
		break;
	case 2:
		says(k, "@%u CANCEL @%u", tag, tag - 1 - drawn(rng, 6));
		break;
	case 3:
		for (unsigned i = 0; i < 10; i++)
			says(k, "@%u-%u LOCK n-%u wait=300ms", tag, i, name + i);
		break;
	default:
		says(k, "@%u LOCK n-%u %s", tag, name, how[drawn(rng, 4)]);
	}
}

static void a_store_changes(struct rng *rng)
{
	static const enum mood moods[] = {MOOD_SILENT, MOOD_SILENT, MOOD_TARDY, MOOD_LOSSY, MOOD_WELL, MOOD_WELL, MOOD_WELL};
	unsigned node = drawn(rng, cluster.conf.nodes);

	if (drawn(rng, 8) > 0)
		feels(node, moods[drawn(rng, sizeof(moods) / sizeof(*moods))]);
	else if (cluster.node[node].up)
		falls(node);
	else
		comes(node);
}

static void all_is_well_again(void)
{
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		if (!cluster.node[i].up)
			comes(i);
	all_feel(MOOD_WELL);
	passes(60 * SEC);
}

FIXTURE(.teardown = cluster_close, .seconds = 60)

LOOP_TEST(every_request_at_random_stores_is_answered_and_every_round_ends, STORMS)
{
	const uint64_t key[2] = {(uint64_t)_i, 0};
	struct rng rng;

	rng_init(&rng, key);
	cluster_open(1 + (unsigned)_i % NODES_MAX);
	cluster.conf.window = 1 + (unsigned)_i % 4;
	if (_i % 3 == 1)
		cluster.conf.timeout_us = 3 * MSEC;
	daemon_starts(0);
	daemon_starts(1);
	passes(12 * SEC);
	for (unsigned k = 1; k <= SESSIONS; k++)
		session_opens(k, k % 2);
	for (unsigned step = 1; step < 400; step++) {
		if (drawn(&rng, 3) > 0)
			somebody_speaks(&rng, step);
		else
			a_store_changes(&rng);
		passes((int64_t)rng_below(&rng, drawn(&rng, 4) ? 3 * MSEC : 60 * MSEC));
		for (unsigned k = 1; k <= SESSIONS; k++)
			ignores(k);
	}
	all_is_well_again();
	for (unsigned k = 1; k <= SESSIONS; k++) {
		ignores(k);
		ck_assert_uint_eq(unanswered(k), 0);
		says(k, "LOCK fresh-%u", k);
		hears(k, "OK *");
	}
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES) + figure(1, METRIC_OUTSTANDING_RELEASES), 0);
}
