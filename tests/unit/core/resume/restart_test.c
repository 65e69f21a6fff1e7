/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/handover.c, restore.c: what sessions find after a restart, whatever the stores do meanwhile. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/full_window.h"
#include "tests/fixture/resumable.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stores_fall(void)
{
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		cluster.node[i].up = false;
}

static void stores_are_well(void)
{
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		cluster.node[i].mood = MOOD_WELL;
}

FIXTURE(.teardown = cluster_close)

TEST(a_hold_goes_on_and_nobody_is_told)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	daemon_hands_over(0, NULL);
	passes(SEC);
	hears_nothing(1);
	says(1, "CHECK a");
	hears(1, "OK name=a *");
}

TEST(no_store_is_asked_about_a_hold_before_its_next_renewal)
{
	unsigned asked[3];

	cluster_begin(3);
	says(1, "LOCK a ttl=30s");
	hears(1, "OK name=a *");
	for (unsigned i = 0; i < 3; i++)
		asked[i] = cluster.node[i].count[CALL_EXTEND];
	passes(SEC);
	daemon_hands_over(0, NULL);
	passes(8 * SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(cluster.node[i].count[CALL_EXTEND], asked[i]);
	passes(2 * SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(cluster.node[i].count[CALL_EXTEND], asked[i] + 1);
	hears_nothing(1);
}

TEST(a_hold_of_a_session_without_grace_keeps_its_key)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	daemon_hands_over(0, NULL);
	daemon_starts(1);
	session_opens(2, 1);
	passes(40 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
}

/* What is known of the clocks changes by less than what is a jump. */
static void clocks_gain(void)
{
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		cluster.node[i].clock_us += 20 * MSEC;
}

/* The stores order tickets by their text. */
TEST(who_waits_keeps_the_place_among_those_of_other_daemons)
{
	char ticket[128];
	unsigned asked;

	two_daemons(3);
	says(2, "LOCK a");
	hears(2, GRANT);
	says(1, "LOCK a wait=1m");
	passes(SEC);
	snprintf(ticket, sizeof(ticket), "%s", cluster.node[0].last[CALL_ACQUIRE].ticket);
	ck_assert_str_ne(ticket, "");
	asked = cluster.node[0].count[CALL_ACQUIRE];
	daemon_hands_over(0, clocks_gain);
	passes(10 * SEC);
	ck_assert_str_eq(cluster.node[0].last[CALL_ACQUIRE].ticket, ticket);
	ck_assert_uint_gt(cluster.node[0].count[CALL_ACQUIRE], asked);
}

/* The round under way showed no ticket, since nobody waited when it began. The next one is for the request that does not wait, which stands first. */
TEST(who_waits_behind_a_request_that_does_not_has_a_place_from_the_first_round_on)
{
	unsigned asked;

	cluster_begin(3);
	session_opens(2, 0);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a");
	says(2, "LOCK a wait=1m");
	ck_assert_str_eq(cluster.node[0].last[CALL_ACQUIRE].ticket, "");
	asked = cluster.node[0].count[CALL_ACQUIRE];
	daemon_hands_over(0, stores_are_well);
	passes(SEC);
	hears(1, GRANT);
	ck_assert_uint_eq(cluster.node[0].count[CALL_ACQUIRE], asked + 1);
	ck_assert_str_ne(cluster.node[0].last[CALL_ACQUIRE].ticket, "");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
}

/* The ticket of the ACQUIRE of this name that waits at store 0. */
static const char *ticket_under_way(const char *name)
{
	const struct parcel *p;

	TAILQ_FOREACH(p, &cluster.daemon[0].queue[0], link)
		if (p->call.kind == CALL_ACQUIRE && strcmp(p->name, name) == 0)
			return p->ticket;
	return "none";
}

/* What the LOCKALL has of its names is given back, and asked for again. */
TEST(who_waits_behind_a_LOCKALL_that_does_not_has_a_place_from_the_first_round_on)
{
	cluster_begin(3);
	session_opens(2, 0);
	all_feel(MOOD_SILENT);
	says(1, "LOCKALL a b");
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	says(2, "LOCK a wait=1m");
	ck_assert_str_eq(ticket_under_way("a"), "none");
	ck_assert_str_eq(ticket_under_way("b"), "");
	daemon_hands_over(0, stores_are_well);
	all_feel(MOOD_SILENT);
	passes(10 * MSEC);
	ck_assert_str_ne(ticket_under_way("a"), "none");
	ck_assert_str_ne(ticket_under_way("a"), "");
	all_feel(MOOD_WELL);
	hears(1, "\\* name=a *");
	ignores(1);
}

/* Store 2 is too busy to hear that the wait is over. */
TEST(a_place_that_nobody_wants_any_more_is_given_up_after_the_restart)
{
	waiter_leaves_while_it_is_full(2);
	daemon_hands_over(0, stores_are_well);
	passes(SEC);
	ck_assert_uint_eq(cluster.node[2].count[CALL_WITHDRAW], 1);
	ignores(1);
}

static void stores_rise(void)
{
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		cluster.node[i].up = true;
}

/* A place by the clock of this host, which is behind, would be before those of others that came sooner. */
TEST(who_waits_before_any_store_has_spoken_has_a_place_by_their_clocks)
{
	int64_t asked_us;

	cluster_open(3);
	stores_fall();
	for (unsigned i = 0; i < cluster.conf.nodes; i++)
		cluster.node[i].clock_us = 20 * SEC;
	daemon_starts(0);
	asked_us = CLUSTER_WALL_US + cluster.now.us + 20 * SEC;
	says(1, "LOCK a wait=10m");
	daemon_hands_over(0, stores_rise);
	passes(60 * SEC);
	hears(1, GRANT);
	ck_assert_int_gt(strtoll(cluster.node[0].last[CALL_ACQUIRE].ticket, NULL, 10), asked_us - SEC);
}

TEST(a_wait_ends_when_it_would_have_ended)
{
	two_daemons(3);
	says(2, "LOCK a");
	hears(2, GRANT);
	says(1, "LOCK a wait=10s");
	passes(6 * SEC);
	daemon_hands_over(0, NULL);
	passes(4 * SEC - 100 * MSEC);
	hears_nothing(1);
	passes(200 * MSEC);
	hears(1, "TIMEOUT *");
}

TEST(a_hold_whose_stores_stay_away_is_lost_in_time)
{
	cluster_begin(3);
	says(1, "LOCK a ttl=10s");
	hears(1, GRANT);
	daemon_hands_over(0, stores_fall);
	passes(7 * SEC);
	hears(1, "! RISK name=a *");
	passes(4 * SEC);
	hears(1, "! LOST name=a *");
}

/* What a renewal for longer would have made of it counts for nothing: nobody was told. */
LOOP_TEST(a_hold_ends_as_it_was_told_though_more_was_asked_for, 2)
{
	cluster_begin(3);
	says(1, "LOCK a ttl=5s%s", _i ? " mode=shared" : "");
	hears(1, "OK name=a *");
	all_feel(MOOD_SILENT);
	says(1, "@e EXTEND a ttl=25s");
	daemon_hands_over(0, stores_fall);
	passes(2 * SEC);
	if (_i == 0)
		hears(1, "! RISK name=a *"); /* one that readers share is not renewed yet: it is adopted */
	hears(1, "@e ERR QUORUM *");
	passes(3 * SEC);
	hears(1, "! LOST name=a *");
}

/* By then it has been asked for longer than a LOCKANY takes to try its names one after the other. */
TEST(a_LOCKANY_that_does_not_wait_is_tried_again)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCKANY a b");
	jumps(1100 * MSEC);
	daemon_hands_over(0, stores_are_well);
	passes(SEC);
	hears(1, "OK name=a *");
}

/* Before it has served any request that it was handed. */
TEST(a_daemon_that_stops_at_once_answers_those_who_have_asked)
{
	struct event stop = {.kind = EVENT_STOP};

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	session_opens(2, 0);
	says(2, "@w LOCK a wait=1m");
	daemon_hands_over(0, stores_fall);
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	hears_nothing(1);
	hears(2, "@w ERR DRAINING *");
	daemon_ends(0);
}

/* --- gaps: see holding.h --- */

static void all_but_store_1_are_well(void)
{
	cluster.node[0].mood = cluster.node[2].mood = MOOD_WELL;
}

/* The key is deleted at two of three stores. Store 0 puts it back, which its daemon hears at once or never, and store 1 is not heard before the restart. */
static void key_is_put_back_at_store_0_before_a_restart(enum mood mood)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	memory_remove(cluster.node[0].memory, SPAN("a"));
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(3300 * MSEC);
	feels(0, mood);
	feels(1, MOOD_SILENT);
	passes(40 * MSEC);
	ck_assert(key_is_there(0, "a"));
	ck_assert(!key_is_there(1, "a"));
	daemon_hands_over(0, all_but_store_1_are_well);
	passes(SEC);
	ignores(1); /* RISK, SAFE: the renewal under way is asked for again */
}

LOOP_TEST(a_store_that_put_the_key_back_before_a_restart_does_not_vouch_for_the_time_before, 2)
{
	key_is_put_back_at_store_0_before_a_restart(_i ? MOOD_WELL : MOOD_TARDY);
	feels(1, MOOD_WELL);
	passes(3340 * MSEC);
	hears(1, "! LOST name=a fence=* reason=evicted");
}

TEST(a_store_with_a_renewal_under_way_at_a_restart_vouches_again_once_all_have_confirmed_that_they_have_the_key)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(3300 * MSEC);
	all_feel(MOOD_TARDY);
	passes(40 * MSEC);
	daemon_hands_over(0, stores_are_well);
	passes(8 * SEC);
	ignores(1);
	memory_remove(cluster.node[1].memory, SPAN("a"));
	passes(3340 * MSEC);
	hears_nothing(1);
	ck_assert(key_is_there(1, "a"));
}
