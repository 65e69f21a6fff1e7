/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/observe.c: what each answer says about its store: clock, fence, evictions, silence. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

FIXTURE(.teardown = cluster_close)

TEST(a_fence_that_fell_back_is_proof_of_lost_memory)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.node[0].fence_lost = 10;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its fence fell back");
	cluster.node[0].fence_lost = 0;
	says(1, "CHECK a");
	hears(1, "OK *");
	passes(QUARANTINE_US + SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_fence_that_fell_back_is_noticed_by_the_next_call)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.node[0].fence_lost = 10;
	cluster.node[0].regains = true;
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	ck_assert_str_eq(store_state(0, 0), "quarantine: its fence fell back");
	passes(QUARANTINE_US + SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(of_a_store_that_was_flushed_the_lost_marker_is_told)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	marker_is_set(0, "");
	cluster.node[0].fence_lost = memory_fence(cluster.node[0].memory);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker is gone: it was flushed, or lost its data");
	cluster.node[0].fence_lost = 0;
	passes(QUARANTINE_US + SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* The host of a store is set back to a snapshot, twice. The second snapshot is older than the marker of the quarantine that the first one caused. */
TEST(a_marker_that_a_quarantine_has_replaced_is_never_trusted_again)
{
	char marker[MARKER_MAX];

	cluster_begin(3);
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.node[0].fence_lost = 10;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its fence fell back");
	cluster.node[0].fence_lost = 0;
	passes(2 * SEC);
	marker_is_set(0, marker);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker was set back");
	passes(QUARANTINE_US - 2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker was set back");
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* The store was a replica when the loss was seen, and could not be marked. Once it is a master again, another daemon quarantines it. */
TEST(evidence_against_a_marker_ends_with_the_marker_that_replaces_it)
{
	char marker[MARKER_MAX];

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	cluster.node[0].probe.role = SPAN("slave");
	cluster.node[0].fence_lost = 10;
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "refused: it is a replica: only a master may hold locks");
	passes(QUARANTINE_US);
	cluster.node[0].probe.role = (struct span){NULL, 0};
	cluster.node[0].fence_lost = 0;
	marker[strlen(marker) - 1] ^= 1;
	marker_is_set(0, marker);
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* The marker of a quarantine that ended long ago stands there again. Its time counts from now. */
TEST(a_quarantine_that_was_over_begins_anew_when_its_marker_comes_back)
{
	char marker[MARKER_MAX];

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.node[0].fence_lost = 10;
	passes(1100 * MSEC);
	cluster.node[0].fence_lost = 0;
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	ck_assert_int_eq(marker[0], 'q');
	passes(QUARANTINE_US + SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	marker_is_set(0, marker);
	passes(QUARANTINE_US - SEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its marker was set back");
	passes(3 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* One store misses the last tokens, another forgets them, all clocks are set back; the third remembers them, and answers late when the others count again. */
TEST(tokens_grow_when_clocks_are_set_back_and_a_store_forgets)
{
	cluster_begin(3);
	passes(2 * SEC);
	falls(2);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	comes(2);
	passes(SEC);
	for (unsigned i = 0; i < 3; i++)
		cluster.node[i].clock_us = -(QUARANTINE_US + 4 * SEC);
	restarts_blank(0);
	passes(QUARANTINE_US + 2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	feels(1, MOOD_SILENT);
	says(1, "LOCK a");
	passes(20 * MSEC);
	hears(1, GRANT); /* the cluster sees to it that its token is the largest */
	feels(1, MOOD_WELL);
}

/* The fence of another run of the server is no evidence. Its marker names the run, and shows whether its memory was lost. */
TEST(a_fence_of_another_run_is_no_evidence)
{
	char former[sizeof(cluster.node[0].run_id)], marker[MARKER_MAX], *run;

	cluster_begin(3);
	passes(2 * SEC);
	snprintf(former, sizeof(former), "%s", cluster.node[0].run_id);
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	memory_set_fence(cluster.node[0].memory, memory_fence(cluster.node[0].memory) + 1000);
	passes(1100 * MSEC);
	/* It comes back blank, and as a replica for a while, so that it is only looked at; meanwhile another daemon sees to its quarantine. */
	cluster.node[0].probe.role = SPAN("slave");
	restarts_blank(0);
	passes(QUARANTINE_US + SEC);
	ck_assert_str_eq(store_state(0, 0), "refused: it is a replica: only a master may hold locks");
	ck_assert(strstr(marker, former) && strlen(former) == strlen(cluster.node[0].run_id));
	for (run = marker; (run = strstr(run, former));)
		memcpy(run, cluster.node[0].run_id, strlen(former));
	marker_is_set(0, marker);
	cluster.node[0].probe.role = (struct span){NULL, 0};
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

/* A renewal is due in the very step in which the daemon reads that another one began the quarantine. */
TEST(a_call_before_a_new_marker_is_read_carries_the_one_that_was_verified)
{
	cluster_begin(3);
	daemon_starts(1);
	passes(1500 * MSEC);
	falls(0);
	comes(0);
	says(1, "LOCK a ttl=3060ms");
	hears(1, "OK name=a *");
	feels(0, MOOD_SILENT);
	passes(1010 * MSEC);
	is_flushed(0);
	while (marker_of(0)[0] != 'q') {
		ck_assert_uint_eq(waiting_at(0), 1);
		serves_daemon(1, 0, 1);
	}
	jumps(15 * MSEC);
	serves_daemon(0, 0, 1);
	ck_assert_str_eq(store_state(0, 0), "quarantine: another daemon found that it may have lost memory");
	ck_assert_uint_eq(waiting_at(0), 1);
	feels(0, MOOD_WELL);
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.marker.p[0], 'j');
	ck_assert(!key_is_there(0, "a"));
	ignores(1);
}

/* The store had granted while it was joined, and the others had reserved other tokens. Its data is all there. */
TEST(the_second_round_has_no_vote_of_a_store_whose_quarantine_has_begun)
{
	char marker[MARKER_MAX];

	cluster_begin(3);
	passes(960 * MSEC);
	memory_set_fence(cluster.node[1].memory, memory_fence(cluster.node[0].memory) + 1000000);
	falls(2);
	feels(1, MOOD_SILENT);
	says(1, "LOCK a");
	ck_assert(key_is_there(0, "a"));
	snprintf(marker, sizeof(marker), "%s", marker_of(0));
	marker[0] = 'q';
	marker_is_set(0, marker);
	falls(0);
	comes(0);
	ck_assert_str_eq(store_state(0, 0), "quarantine: another daemon found that it may have lost memory");
	serves(1, 1);
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], 1);
	ck_assert_int_ne(cluster.node[0].last[CALL_EXTEND].marker[0], 'q');
	ck_assert_int_ne(cluster.node[0].last[CALL_EXTEND].marker[0], '\0');
	feels(1, MOOD_WELL);
	passes(60 * MSEC);
	hears(1, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	ignores(1);
}

TEST(a_replica_that_is_attached_costs_no_quarantine)
{
	cluster_begin(3);
	cluster.node[0].probe.own_data = true;
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.node[0].probe.replid = SPAN("since it has a replica");
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	daemon_starts(1); /* whoever comes later knows it by the same signs */
	ck_assert_str_eq(store_state(1, 0), "joined");
	/* Promoted, after it was a replica itself: with the same run id, and a marker that is right. */
	cluster.node[0].probe.own_data = false;
	cluster.node[0].probe.replid = SPAN("promoted");
	passes(1100 * MSEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: it was restarted, replaced or taken over");
}

TEST(our_data_in_another_process_is_a_restart)
{
	cluster_begin(1);
	cluster.node[0].probe.own_data = true;
	cluster.node[0].probe.replid = SPAN("the same");
	passes(2 * SEC);
	strcpy(cluster.node[0].run_id, "another-run");
	passes(1100 * MSEC);
	ck_assert_int_eq(marker_of(0)[0], 'q');
}

TEST(a_clock_that_jumps_ahead_quarantines_its_store_and_lowers_its_votes)
{
	held_after_lock(3, "LOCK a");
	cluster.node[0].clock_us = 40 * SEC;
	passes(SEC);
	ck_assert_str_eq(store_state(0, 0), "quarantine: its clock jumped ahead: keys may have expired early");
	falls(1);
	/* One vote is gone, and another is not renewed, so the lease ends when that vote does. */
	passes(9 * SEC);
	hears(1, "! RISK name=a *");
	hears(1, "! LOST name=a *");
}

TEST(a_clock_that_jumps_ahead_with_a_single_store_is_a_loss_at_once)
{
	held_after_lock(1, "LOCK a");
	cluster.node[0].clock_us = 40 * SEC;
	passes(SEC);
	hears(1, "! LOST name=a *");
	says(2, "LOCK b");
	hears(2, "ERR QUORUM 0 of 1 * retry_ms=*");
	says(2, "LOCK a");
	hears(2, "BUSY name=a *"); /* its holder may not have read that yet */
}

TEST(the_first_answer_that_shows_a_jump_ends_the_membership)
{
	cluster_begin(3);
	passes(2 * SEC);
	cluster.node[0].clock_us = 40 * SEC;
	says(1, "LOCK a");
	ck_assert_uint_eq(figure(0, METRIC_NODES_JOINED), 2);
	hears(1, GRANT);
}

TEST(a_clock_that_is_set_back_frees_nothing_early)
{
	held_after_lock(1, "LOCK a");
	cluster.node[0].clock_us = -40 * SEC;
	passes(20 * SEC);
	says(1, "CHECK a");
	ck_assert_int_gt(number_in(session_reachable(1, "*", __FILE__, __LINE__), "fence"), 0);
	ignores(1);
}

TEST(an_answer_that_sat_in_a_socket_is_no_jump)
{
	cluster_begin(1);
	passes(2 * SEC);
	feels(0, MOOD_TARDY);
	passes(1100 * MSEC);
	jumps(20 * SEC);
	feels(0, MOOD_WELL);
	passes(2 * SEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
}

TEST(a_silent_store_is_not_asked_until_it_answers_again)
{
	unsigned before;

	cluster_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(60 * MSEC);
	ck_assert_str_eq(store_state(0, 2), "slow: it has not answered within redis.timeout");
	before = cluster.node[2].count[CALL_ACQUIRE];
	says(1, "LOCK b");
	hears(1, "OK name=b *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_ACQUIRE], before);
	feels(2, MOOD_WELL);
	ck_assert_str_eq(store_state(0, 2), "joined");
	says(1, "LOCK c");
	hears(1, "OK name=c *");
	ck_assert_uint_eq(cluster.node[2].count[CALL_ACQUIRE], before + 1);
}

/* The connection is about to end. A refusal by the store itself shows that the store is there. */
TEST(a_call_that_was_never_sent_is_no_sign_of_life)
{
	cluster_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(60 * MSEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	ck_assert_uint_eq(waiting_at(2), 2);
	never_sends(2, 1);
	ck_assert_str_eq(store_state(0, 2), "slow: it has not answered within redis.timeout");
	refuses(2, "OOM command not allowed");
	ck_assert_str_eq(store_state(0, 2), "joined");
	feels(2, MOOD_WELL);
	passes(SEC);
}

TEST(a_store_that_comes_back_is_used_within_two_seconds)
{
	cluster_begin(1);
	falls(0);
	says(1, "LOCK a wait=1m");
	passes(10 * SEC);
	comes(0);
	passes(2 * SEC);
	hears(1, GRANT);
}

TEST(an_answer_belongs_to_the_question_that_it_answers)
{
	cluster_open(3);
	cluster.conf.clock_tol_us = 100 * MSEC;
	daemon_starts(0);
	passes(1500 * MSEC);
	feels(0, MOOD_SILENT);
	passes(600 * MSEC); /* its health is asked */
	daemon_node_event(0, 0, EVENT_NODE_DOWN);
	daemon_node_event(0, 0, EVENT_NODE_UP); /* and anew, on another connection */
	feels(0, MOOD_TARDY);
	loses(0, 1); /* the first is answered late: the connection was gone */
	passes(SEC);
	feels(0, MOOD_WELL);
	passes(MSEC);
	ck_assert_str_eq(store_state(0, 0), "joined");
	ck_assert(!was_logged("node node=n0 state=refused*"));
}
