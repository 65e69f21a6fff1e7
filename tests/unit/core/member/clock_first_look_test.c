/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/clock.c: a store whose clock was set forward before its daemon first looked at it. */
#include "daemon/core/member/clock.h"
#include "daemon/core/member/members.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

#define AHEAD "refused: its clock is more than 5000 ms ahead of the other servers': set it right"
#define MET_AHEAD "quarantine: its clock was ahead when it was first seen: keys may have expired early"

/* All stores were joined by a daemon that is gone, and none of them is in reach yet. */
static void stores_were_joined(unsigned nodes)
{
	cluster_open(nodes);
	cluster.conf.clock_tol_us = clock_tol_us(nodes, cluster.conf.max_lease_us, 0);
	for (unsigned i = 0; i < nodes; i++)
		node_is_born(i);
	daemon_starts(0);
	passes(3 * SEC);
	daemon_ends(0);
	for (unsigned i = 0; i < nodes; i++)
		falls(i);
}

static void come_all_from(unsigned node)
{
	for (; node < cluster.conf.nodes; node++)
		comes(node);
}

/* The store is not used before its quarantine is over, though its clock is right again. */
static void is_quarantined_when_it_is_right(unsigned node)
{
	cluster.node[node].clock_us = 0;
	passes(3 * SEC);
	ck_assert_str_eq(store_state(1, node), MET_AHEAD);
	ck_assert_int_eq(marker_of(node)[0], 'q');
	passes(quarantine_us(cluster.conf.max_lease_us, 0) + SEC);
	ck_assert_str_eq(store_state(1, node), "joined");
}

FIXTURE(.teardown = cluster_close)

/* The others were looked at before the stop, and seem to be behind for a moment. */
TEST(a_store_that_is_first_seen_after_a_stop_of_this_host_is_not_quarantined)
{
	stores_were_joined(3);
	daemon_starts(1);
	comes(1);
	comes(2);
	passes(2500 * MSEC);
	clocks_go_on_without_us(20 * SEC);
	comes(0);
	passes(3 * SEC);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(marker_of(i)[0], 'j');
		ck_assert_str_eq(store_state(1, i), "joined");
	}
}

LOOP_TEST(a_store_that_is_ahead_when_it_is_first_seen_is_quarantined_whatever_the_order_of_answers, 2)
{
	stores_were_joined(3);
	cluster.node[0].clock_us = 6 * SEC;
	daemon_starts(1);
	if (_i)
		come_all_from(1);
	comes(0);
	if (!_i)
		come_all_from(1);
	passes(3 * SEC);
	is_quarantined_when_it_is_right(0);
}

/* The first answer says too little of its clock. */
TEST(a_store_that_is_ahead_and_answers_late_at_first_is_quarantined)
{
	stores_were_joined(3);
	cluster.node[0].clock_us = 6 * SEC;
	daemon_starts(1);
	come_all_from(1);
	feels(0, MOOD_TARDY);
	comes(0);
	passes(2 * SEC);
	feels(0, MOOD_WELL);
	passes(2 * SEC);
	ck_assert_str_ne(store_state(1, 0), "joined");
	is_quarantined_when_it_is_right(0);
}

/* The late answer leaves open what the clock of the other store shows: that is no proof that the first store is not ahead. */
TEST(a_store_that_is_ahead_is_not_used_with_one_that_answered_late_at_first)
{
	stores_were_joined(3);
	cluster.node[0].clock_us = 6 * SEC;
	daemon_starts(1);
	comes(0);
	feels(1, MOOD_SILENT);
	comes(1);
	passes(2 * SEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	feels(1, MOOD_WELL);
	ck_assert_str_eq(store_state(1, 1), "joined");
	ck_assert_str_ne(store_state(1, 0), "joined");
	passes(2 * SEC);
	is_quarantined_when_it_is_right(0);
}

TEST(a_minority_that_is_ahead_is_quarantined_though_it_answers_first)
{
	stores_were_joined(5);
	cluster.node[0].clock_us = cluster.node[1].clock_us = 6 * SEC;
	daemon_starts(1);
	come_all_from(0);
	ck_assert_str_ne(store_state(1, 0), "joined");
	ck_assert_str_ne(store_state(1, 1), "joined");
	passes(3 * SEC);
	cluster.node[1].clock_us = 0;
	is_quarantined_when_it_is_right(0);
	ck_assert_str_eq(store_state(1, 1), "joined");
}

TEST(a_store_that_was_ahead_while_it_was_refused_is_quarantined_once_it_is_fit)
{
	stores_were_joined(3);
	cluster.node[0].clock_us = 6 * SEC;
	cluster.node[0].probe.loading = true;
	daemon_starts(1);
	come_all_from(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(1, 0), "refused: it is loading its data");
	cluster.node[0].probe.loading = false;
	is_quarantined_when_it_is_right(0);
}

/* The clock of the store is put right before there is another clock to compare it with. */
TEST(a_store_that_was_ahead_while_it_was_alone_is_quarantined)
{
	stores_were_joined(3);
	cluster.node[0].clock_us = 6 * SEC;
	daemon_starts(1);
	comes(0);
	passes(2 * SEC);
	cluster.node[0].clock_us = 0;
	passes(2 * SEC);
	come_all_from(1);
	is_quarantined_when_it_is_right(0);
}

/* The clock is put right while this host stands still, before the others were asked whether it is ahead. */
LOOP_TEST(a_store_that_was_ahead_and_was_put_right_during_a_stop_of_this_host_is_quarantined, 3)
{
	static const int64_t stop_us[] = {100 * MSEC, 2 * SEC, 20 * SEC};

	stores_were_joined(3);
	cluster.node[0].clock_us = 6 * SEC;
	daemon_starts(1);
	come_all_from(1);
	passes(2500 * MSEC);
	comes(0);
	cluster.node[0].clock_us = 0;
	clocks_go_on_without_us(stop_us[_i]);
	passes(3 * SEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	ck_assert_int_eq(marker_of(1)[0], 'j');
	ck_assert_int_eq(marker_of(2)[0], 'j');
}

/* As much as its clock may have drifted meanwhile is no proof of a jump. */
LOOP_TEST(a_store_that_is_ahead_after_it_was_long_out_of_reach_is_quarantined, 2)
{
	stores_were_joined(3);
	daemon_starts(1);
	come_all_from(0);
	passes(3 * SEC);
	falls(0);
	passes(_i ? 600 * SEC : 100 * SEC);
	cluster.node[0].clock_us = 5500 * MSEC;
	comes(0);
	passes(3 * SEC);
	ck_assert_str_eq(store_state(1, 0), AHEAD);
	ck_assert_int_eq(marker_of(0)[0], 'q');
}

LOOP_TEST(of_blank_stores_the_one_whose_clock_is_off_is_not_trusted, 2)
{
	cluster_open(3);
	cluster.conf.clock_tol_us = clock_tol_us(3, cluster.conf.max_lease_us, 0);
	for (unsigned i = 0; i < 3; i++)
		node_is_born(i);
	cluster.node[0].clock_us = _i ? 3600 * SEC : -3600 * SEC;
	daemon_starts(0);
	ck_assert_int_ne(marker_of(0)[0], 'j');
	passes(3 * SEC);
	ck_assert_int_ne(marker_of(0)[0], 'j');
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
}

/* When those clocks are put right, this host seems to have stood still. For a clock that is looked at seldom that is a guess until its next answer. */
TEST(a_store_that_is_right_is_not_quarantined_when_a_majority_that_was_set_back_is_put_right)
{
	stores_were_joined(6);
	for (unsigned i = 1; i < 5; i++)
		cluster.node[i].clock_us = -20 * SEC;
	daemon_starts(1);
	come_all_from(0);
	session_opens(1, 1);
	passes(3300 * MSEC);
	says(1, "LOCK a ttl=2s");
	ignores(1);
	for (unsigned i = 1; i < 5; i++)
		cluster.node[i].clock_us = 0;
	for (unsigned i = 0; i < 30; i++) {
		passes(100 * MSEC);
		ck_assert_int_eq(marker_of(0)[0], 'j');
		ck_assert_int_eq(marker_of(5)[0], 'j');
	}
}

/* Answers of the others from before a pause of this process also fit their clocks before the stop. */
TEST(a_store_that_shows_a_stop_of_this_host_is_not_ahead_before_it_is_known_whose_jump_that_is)
{
	static struct members ms;
	struct core core = {.conf = {.nodes = 3, .timeout_us = 85 * MSEC, .clock_tol_us = 800 * MSEC}};
	struct member *m = &ms.node[2];

	memset(&ms, 0, sizeof(ms));
	ms.core = &core;
	for (unsigned i = 0; i < 3; i++) {
		ms.node[i].index = i;
		ms.node[i].connected = true;
		core.now.us = SEC;
		jump_note(&ms, &ms.node[i], SEC, (struct instant){SEC - MSEC});
	}
	for (int64_t at = 2 * SEC; at <= 6 * SEC; at += 2 * SEC) {
		core.now.us = core.wall_us = at;
		jump_note(&ms, m, at + SEC, (struct instant){at - MSEC});
		ck_assert(!first_look_was_ahead(&ms, m) && !m->met.ahead);
		core.now.us = core.wall_us = at + 1800 * MSEC;
		for (unsigned i = 0; i < 2; i++)
			jump_note(&ms, &ms.node[i], at + SEC, (struct instant){at});
	}
}
