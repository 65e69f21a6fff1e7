/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/member/member.c, probe.c: what a daemon knows of a fence outlives a quarantine, whoever began it. If a host is set back to a snapshot of
 * before the last quarantine but one, the marker there is not remembered any more: only the fence tells.
 */
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

#define SEEN_US     (1100 * MSEC) /* each daemon has asked each store meanwhile */
#define BY_ANOTHER  "quarantine: another daemon found that it may have lost memory"
#define BY_ITSELF   "quarantine: it evicted keys"
#define ITS_FENCE_FELL "its fence fell back"
#define IS_SET_BACK "quarantine: " ITS_FENCE_FELL

static char old_marker[MARKER_MAX];
static int64_t old_fence;

static void host_is_saved(void)
{
	snprintf(old_marker, sizeof(old_marker), "%s", marker_of(0));
	old_fence = memory_fence(cluster.node[0].memory);
}

static void host_is_set_back(void)
{
	marker_is_set(0, old_marker);
	cluster.node[0].fence_lost = memory_fence(cluster.node[0].memory) - old_fence;
}

/* Daemons 0 and 1 use three stores. The host of store 0 is saved, and then the store is quarantined for the first time, and joined anew. */
static void saved_before_a_quarantine(void)
{
	two_daemons(3);
	passes(2 * SEC);
	host_is_saved();
	cluster.node[0].probe.evicted = 1;
	passes(QUARANTINE_US + 4 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_str_ne(marker_of(0), old_marker);
	ck_assert_int_gt(memory_fence(cluster.node[0].memory), old_fence);
	passes(SEEN_US); /* both have seen the fence of its join */
}

FIXTURE(.teardown = cluster_close)

/* Daemon 1 sees store 1 for the first time in a quarantine that daemon 0 began. No other fence that it ever sees tells of the last token. */
TEST(a_fence_that_is_first_seen_in_a_quarantine_is_not_forgotten)
{
	cluster_begin(3);
	passes(2 * SEC);
	falls(0);
	falls(1);
	cluster.conf.trust_first_start = false;
	daemon_starts(1); /* it reaches store 2 alone */
	for (unsigned i = 0; i < 2; i++) {
		cluster.node[i].up = true;
		daemon_node_event(0, i, EVENT_NODE_UP);
	}
	runs();
	daemon_node_event(0, 2, EVENT_NODE_DOWN);
	passes(65 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert_str_eq(store_state(0, 1), "joined");
	ck_assert_str_eq(store_state(1, 2), "joined");
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	cluster.node[1].probe.evicted = 1;
	passes(SEEN_US);
	ck_assert_str_eq(store_state(0, 1), BY_ITSELF);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -120 * SEC; /* so no clock makes up for a fence that is forgotten */
	daemon_ends(0);
	passes(SEEN_US);
	daemon_node_event(1, 1, EVENT_NODE_UP);
	runs();
	ck_assert_str_eq(store_state(1, 1), BY_ANOTHER);
	falls(1);
	restarts_blank(0);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	ck_assert_str_eq(store_state(1, 2), "joined");
	session_opens(2, 1);
	says(2, "LOCK a");
	hears(2, GRANT); /* the cluster sees to it that its token is the largest */
	ignores(2);
}

/*
 * Daemon 0 was cut off from the store for longer than a quarantine, and comes back in a quarantine that daemon 1 has begun. Then the host is set back: _i: for
 * the second time, and late; else for the first time, within a second after daemon 0 saw the new marker.
 */
LOOP_TEST(a_snapshot_of_long_before_the_quarantine_of_another_daemon_is_noticed, 2)
{
	saved_before_a_quarantine();
	daemon_node_event(0, 0, EVENT_NODE_DOWN);
	passes(QUARANTINE_US + SEC);
	if (_i)
		host_is_set_back();
	else
		cluster.node[0].probe.evicted = 2;
	passes(SEEN_US);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	daemon_node_event(0, 0, EVENT_NODE_UP);
	runs();
	ck_assert_str_eq(store_state(0, 0), BY_ANOTHER);
	daemon_ends(1);
	passes(_i ? 20 * SEC : 500 * MSEC);
	host_is_set_back();
	passes(SEEN_US);
	ck_assert_ptr_nonnull(strstr(store_state(0, 0), ITS_FENCE_FELL));
}

/*
 * The same with a lock. Daemon 1 holds it at stores 0 and 1, and is cut off from store 0 when it has begun the quarantine there. If daemon 0 then took store 0
 * for a sound one, it would have the votes of stores 0 and 2.
 */
TEST(a_lock_is_not_granted_twice_behind_a_snapshot_of_long_before_the_quarantine_of_another_daemon)
{
	saved_before_a_quarantine();
	daemon_node_event(0, 0, EVENT_NODE_DOWN);
	passes(QUARANTINE_US + SEC);
	daemon_node_event(1, 2, EVENT_NODE_DOWN); /* this daemon does not reach store 2 */
	says(2, "LOCK a ttl=30s");
	hears(2, "OK name=a *");
	ck_assert(key_is_there(0, "a") && key_is_there(1, "a") && !key_is_there(2, "a"));
	cluster.node[0].probe.evicted = 2;
	passes(SEEN_US);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	daemon_node_event(0, 0, EVENT_NODE_UP);
	runs();
	ck_assert_str_eq(store_state(0, 0), BY_ANOTHER);
	daemon_node_event(1, 0, EVENT_NODE_DOWN);
	passes(500 * MSEC);
	host_is_set_back();
	key_is_overwritten(0, "a", "x", 0); /* the snapshot knows nothing of the key */
	passes(700 * MSEC);
	ck_assert(!key_is_there(0, "a"));
	says(2, "CHECK a");
	hears(2, "OK name=a *");
	says(1, "LOCK a");
	passes(20 * MSEC);
	hears(1, "BUSY name=a *"); /* or the cluster finds two holders */
	ignores(1);
	ignores(2);
}

/* Daemon 0 is cut off as soon as it has seen the new marker, which it set itself, or _i: daemon 1. So no later probe tells it the fence once more. */
LOOP_TEST(a_daemon_that_is_cut_off_as_soon_as_it_saw_a_quarantine_still_knows_the_fence, 2)
{
	saved_before_a_quarantine();
	cluster.node[0].probe.evicted = 2;
	for (unsigned k = 0; k < 2; k++) { /* whoever is connected anew asks at once */
		unsigned d = k ^ (unsigned)_i;

		daemon_node_event(d, 0, EVENT_NODE_DOWN);
		daemon_node_event(d, 0, EVENT_NODE_UP);
		runs();
	}
	ck_assert_str_eq(store_state(0, 0), _i ? BY_ANOTHER : BY_ITSELF);
	daemon_node_event(0, 0, EVENT_NODE_DOWN);
	ck_assert_int_eq(marker_of(0)[0], 'q');
	passes(3 * QUARANTINE_US);
	ck_assert_str_eq(store_state(1, 0), "joined");
	daemon_ends(1);
	host_is_set_back();
	daemon_node_event(0, 0, EVENT_NODE_UP);
	runs();
	passes(100 * MSEC);
	ck_assert_ptr_nonnull(strstr(store_state(0, 0), ITS_FENCE_FELL));
}

/* A daemon of a later generation takes the store over, which this one only sees; then the host is set back to a snapshot of before that. */
TEST(a_snapshot_of_before_a_takeover_is_noticed)
{
	char taken[MARKER_MAX];

	cluster_begin(3);
	passes(2 * SEC);
	host_is_saved();
	snprintf(taken, sizeof(taken), "q|2.0123456789abcdef|%s|%s|0123456789abcdef|30000|2.00000000|", cluster.node[0].run_id, cluster.node[0].run_id);
	marker_is_set(0, taken);
	passes(SEEN_US);
	ck_assert_str_eq(store_state(0, 0), "refused: it belongs to generation 2, this daemon is configured for 1");
	host_is_set_back();
	passes(SEEN_US);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker was set back");
}
