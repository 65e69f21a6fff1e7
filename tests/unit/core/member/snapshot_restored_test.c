/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/probe.c, member.c: hosts that are set back to a snapshot, and servers that change their addresses. */
#include "tests/fixture/cluster_part.h"

#include <check.h>
#include <stdio.h>

/* The fence of store 0 fell back: two daemons time its quarantine. */
static void is_quarantined_by_both(char *ret_marker)
{
	cluster_begin(3);
	daemon_starts(1);
	cluster.node[0].fence_lost = 10;
	passes(2 * SEC);
	cluster.node[0].fence_lost = 0;
	snprintf(ret_marker, MARKER_MAX, "%s", marker_of(0));
	ck_assert_int_eq(ret_marker[0], 'q');
}

FIXTURE(.teardown = cluster_close)

/*
 * One daemon was cut off while a quarantine ran, so for this daemon it is over. The store is set back to a moment within the quarantine, and the other
 * daemon notices.
 */
TEST(a_quarantine_that_comes_back_begins_anew_for_daemons_that_have_timed_it)
{
	char marker[MARKER_MAX];

	is_quarantined_by_both(marker);
	passes(SEC);
	daemon_node_event(1, 0, EVENT_NODE_DOWN);
	passes(QUARANTINE_US);
	ck_assert_str_eq(store_state(0, 0), "joined");
	says(1, "LOCK a ttl=30s");
	hears(1, "OK *");
	marker_is_set(0, marker);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker was set back");
	daemon_node_event(1, 0, EVENT_NODE_UP);
	runs();
	passes(QUARANTINE_US - 2 * SEC);
	ck_assert_str_eq(store_state(1, 0), "quarantine: another daemon found that it may have lost memory");
	passes(3 * SEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
}

static const char too_soon[] = "quarantine: it was joined anew without a quarantine";

/* As before, but the other daemon is cut off as well. The first one is back earlier and joins the store. The other knows that no quarantine has passed. */
TEST(a_store_that_was_joined_anew_too_soon_has_lost_its_memory)
{
	char marker[MARKER_MAX];

	is_quarantined_by_both(marker);
	daemon_node_event(1, 0, EVENT_NODE_DOWN);
	passes(QUARANTINE_US);
	ck_assert_str_eq(store_state(0, 0), "joined");
	passes(QUARANTINE_US);
	says(1, "LOCK a ttl=30s");
	hears(1, "OK *");
	daemon_node_event(0, 0, EVENT_NODE_DOWN);
	marker_is_set(0, marker);
	daemon_node_event(1, 0, EVENT_NODE_UP);
	runs();
	passes(MSEC);
	ck_assert_str_eq(store_state(1, 0), "joined");
	daemon_node_event(0, 0, EVENT_NODE_UP);
	runs();
	ck_assert_str_eq(store_state(0, 0), too_soon);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(1, 0), "quarantine: another daemon found that it may have lost memory");
	passes(QUARANTINE_US);
	for (unsigned d = 0; d < 2; d++)
		ck_assert_str_eq(store_state(d, 0), "joined");
}

/* A daemon that trusts a first start takes flushed stores for new ones. A daemon that was running knows better. */
TEST(a_store_that_a_first_start_joined_wrongly_is_quarantined_by_a_daemon_that_knows_it)
{
	cluster_begin(3);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		is_flushed(i);
	daemon_starts(1);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
	passes(1100 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_str_eq(store_state(0, i), too_soon);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 3);
	ck_assert_uint_eq(figure(1, METRIC_NODES_JOINED), 3);
}

/* A host that stood still has not counted the time of a quarantine that others saw through. The clock of the store shows it. */
TEST(a_quarantine_that_passed_while_this_host_stood_still_is_believed)
{
	char marker[MARKER_MAX];

	cluster_begin(3);
	passes(2 * SEC);
	snprintf(marker, sizeof(marker), "%sx", marker_of(0)); /* another value under the same configuration */
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us += QUARANTINE_US;
	marker_is_set(0, marker);
	passes(3 * SEC);
	ck_assert(was_logged("stood-still *"));
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* The host is set back to before the restart of its server. Its run id, marker and fence are the old ones. */
LOOP_TEST(a_server_that_is_set_back_to_before_its_restart_has_lost_its_memory, 2)
{
	char former[sizeof(cluster.node[0].run_id)], marker[MARKER_MAX];

	cluster_begin(3);
	passes(2 * SEC);
	snprintf(former, sizeof(former), "%s", cluster.node[0].run_id);
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	if (_i) {
		/* Another daemon sees to its quarantine. */
		falls(0);
		node_is_born(0);
		cluster.node[0].up = true;
		daemon_starts(1);
		passes(QUARANTINE_US + SEC);
		ck_assert_str_eq(store_state(1, 0), "joined");
		daemon_ends(1);
		daemon_node_event(0, 0, EVENT_NODE_UP);
		runs();
	} else {
		restarts_blank(0);
		passes(QUARANTINE_US + SEC);
	}
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	says(1, "LOCK a ttl=30s");
	hears(1, "OK *");
	falls(0);
	strcpy(cluster.node[0].run_id, former);
	marker_is_set(0, marker);
	cluster.node[0].fence_lost = QUARANTINE_US;
	comes(0);
	passes(100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), _i ? "quarantine: its fence fell back" : "quarantine: its marker was set back");
	passes(QUARANTINE_US - SEC);
	ck_assert_str_eq(store_state(0, 0), _i ? "quarantine: its fence fell back" : "quarantine: its marker was set back");
	cluster.node[0].fence_lost = 0;
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* The servers behind two addresses change places within a lease. The vote that b gave under its old address does not count beside that of its new one. */
TEST(a_server_that_has_moved_to_another_address_counts_once)
{
	struct cluster_node *a = &cluster.node[0], *b = &cluster.node[1];
	struct memory *memory;
	char run_id[64];

	cluster_begin(3);
	daemon_starts(1);
	session_opens(5, 1);
	passes(2 * SEC);
	falls(2);
	says(1, "LOCK a");
	hears(1, GRANT);
	memory_set_fence(a->memory, memory_fence(a->memory) + 10);
	refuses(0, "BUSY");
	passes(5 * SEC);
	hears(1, "! RISK *");
	feels(0, MOOD_WELL);
	falls(0);
	falls(1);
	memory = a->memory, a->memory = b->memory, b->memory = memory;
	strcpy(run_id, a->run_id), strcpy(a->run_id, b->run_id), strcpy(b->run_id, run_id);
	b->up = cluster.node[2].up = true;
	daemon_node_event(1, 1, EVENT_NODE_UP);
	daemon_node_event(1, 2, EVENT_NODE_UP);
	comes(0);
	passes(5500 * MSEC);
	hears(1, "! LOST name=a fence=* reason=quorum");
	says(5, "LOCK a");
	hears(5, GRANT);
	comes(1);
	ignores(1);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_str_eq(store_state(0, i), "joined");
}
