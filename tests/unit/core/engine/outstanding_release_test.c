/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/release.c: UNLOCK, releases that stores have not confirmed yet, and when sync=yes is answered. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/held_lock.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(an_unlock_is_answered_before_the_stores_confirm)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_SILENT);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	ck_assert(key_is_there(0, "a"));
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
	all_feel(MOOD_WELL);
	ck_assert(!key_is_there(0, "a"));
}

TEST(a_new_lock_behind_an_early_unlock_finds_the_key_free)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_SILENT);
	says(1, "UNLOCK a");
	says(1, "LOCK a");
	hears(1, "OK name=a count=0");
	hears_nothing(1);
	all_feel(MOOD_WELL);
	hears(1, "OK name=a fence=* ttl_ms=10000 count=1");
}

TEST(sync_waits_for_a_quorum_of_confirmations)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_SILENT);
	says(1, "UNLOCK a sync=yes");
	serves(0, 1);
	hears_nothing(1);
	serves(1, 1);
	hears(1, "OK name=a count=0");
	all_feel(MOOD_WELL);
}

TEST(sync_without_a_quorum_says_so_and_the_lock_is_gone_all_the_same)
{
	held_after_lock(3, "LOCK a");
	falls(1);
	falls(2);
	says(1, "UNLOCK a sync=yes");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM *");
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
	comes(1);
	comes(2);
	passes(200 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
}

TEST(sync_tells_how_many_stores_can_be_used)
{
	held_after_lock(1, "LOCK a");
	feels(0, MOOD_SILENT);
	says(1, "UNLOCK a sync=yes");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM 0 of 1 stores can be used, 1 are needed: 1 slow");
	feels(0, MOOD_WELL);
	passes(200 * MSEC);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	cluster.node[0].refusal = "MISCONF no disk";
	feels(0, MOOD_REFUSING);
	says(1, "UNLOCK a sync=yes");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM 1 of 1 stores can be used, but fewer than 1 complied in time; LIST nodes shows them");
	feels(0, MOOD_WELL);
	passes(200 * MSEC);
}

TEST(sync_tells_that_the_lock_had_been_gone_from_a_majority)
{
	held_after_lock(3, "LOCK a");
	memory_remove(cluster.node[0].memory, SPAN("a"));
	memory_remove(cluster.node[1].memory, SPAN("a"));
	says(1, "UNLOCK a sync=yes");
	hears(1, "ERR LOST *");
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
}

/* The connections break when the keys are gone already, so the repeated releases find nothing. */
TEST(sync_is_no_loss_when_an_unanswered_release_removed_the_keys)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_TARDY);
	says(1, "UNLOCK a sync=yes");
	hears_nothing(1);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(!key_is_there(i, "a"));
		falls(i);
		feels(i, MOOD_WELL);
		comes(i);
	}
	hears(1, "OK name=a count=0");
	feels(2, MOOD_WELL);
	passes(200 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* Another daemon has begun a quarantine there. That says nothing about the key. */
TEST(sync_is_no_loss_when_stores_are_in_quarantine)
{
	held_after_lock(3, "LOCK a");
	marker_is_set(0, "q|another");
	marker_is_set(1, "q|another");
	says(1, "UNLOCK a keep=5s sync=yes");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM *");
	passes(15 * SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

TEST(sync_survives_one_lost_answer)
{
	held_after_lock(3, "LOCK a");
	feels(0, MOOD_LOSSY);
	says(1, "UNLOCK a sync=yes");
	hears(1, "OK name=a count=0");
	feels(0, MOOD_WELL);
	passes(200 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

TEST(a_session_that_ends_does_not_wait_for_its_sync)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_SILENT);
	says(1, "UNLOCK a sync=yes");
	goes(1, GONE_HANGUP);
	all_feel(MOOD_WELL);
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(the_same_owner_counts_up_and_down_and_the_lock_is_free_at_0)
{
	int64_t fence = held_after_lock(3, "LOCK a");

	passes(SEC);
	says(1, "LOCK a");
	ck_assert_int_eq(number_in(hears(1, "OK name=a fence=* valid_ms=8897 ttl_ms=10000 count=2"), "fence"), fence);
	ck_assert_uint_eq(asked(CALL_ACQUIRE), 3);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=1");
	says(2, "LOCK a");
	hears(2, "BUSY *");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(two_owners_of_one_session_exclude_each_other)
{
	held_after_lock(1, "LOCK a owner=t1");
	says(1, "LOCK a owner=t2");
	hears(1, "BUSY *");
	says(1, "LOCK a");
	hears(1, "BUSY *");
	says(1, "UNLOCK a owner=t2");
	hears(1, "ERR NOTHELD *");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
	says(1, "UNLOCK a owner=t1");
	hears(1, "OK name=a count=0");
}

TEST(a_second_waiting_lock_of_an_owner_is_granted_with_the_first)
{
	held_after_lock(3, "LOCK a");
	says(2, "@1 LOCK a wait=1m");
	says(3, "LOCK a wait=1m");
	says(2, "@2 LOCK a wait=1m");
	says(2, "@3 LOCK a wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "@1 OK name=a fence=* ttl_ms=10000 count=1");
	hears(2, "@2 OK name=a fence=* ttl_ms=10000 count=2");
	hears(2, "@3 OK name=a fence=* ttl_ms=10000 count=3");
	hears_nothing(3);
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=2");
	says(2, "UNLOCK a");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=1");
	hears(2, "OK name=a count=0");
	hears(3, "OK *");
}

TEST(a_late_unlock_of_an_old_grant_changes_nothing)
{
	int64_t old = held_after_lock(1, "LOCK a"), fence;

	says(1, "UNLOCK a fence=%lld", (long long)old);
	hears(1, "OK name=a count=0");
	says(1, "LOCK a");
	fence = number_in(hears(1, "OK *"), "fence");
	ck_assert_int_gt(fence, old);
	says(1, "UNLOCK a fence=%lld", (long long)old);
	hears(1, "ERR NOTHELD *");
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* count=1");
	says(1, "UNLOCK a fence=%lld", (long long)fence);
	hears(1, "OK name=a count=0");
}

#define SESSIONS 10
#define NAMES    60

TEST(a_store_that_refuses_a_crowd_of_releases_is_asked_again_one_after_the_other)
{
	unsigned before, worst = 0;

	cluster_begin(3);
	for (unsigned k = 1; k <= SESSIONS; k++)
		for (unsigned i = 0; i < NAMES; i++)
			says(k, "@%u LOCK held-%u-%u", i, k, i);
	refuses(2, "MISCONF it cannot write");
	for (unsigned k = 1; k <= SESSIONS; k++) {
		ck_assert_uint_eq(ignores(k), NAMES);
		goes(k, GONE_HANGUP);
	}
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), SESSIONS * NAMES);
	before = cluster.node[2].count[CALL_RELEASE];
	for (unsigned i = 0; i < 100; i++) {
		unsigned count = cluster.node[2].count[CALL_RELEASE];

		passes(5 * MSEC);
		count = cluster.node[2].count[CALL_RELEASE] - count;
		worst = count > worst ? count : worst;
	}
	ck_assert_uint_le(worst, 101); /* 20 a millisecond */
	ck_assert_uint_ge(cluster.node[2].count[CALL_RELEASE] - before, 3 * SESSIONS * NAMES); /* none is forgotten */
	feels(2, MOOD_WELL);
	passes(200 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

TEST(an_outstanding_release_sets_no_timer_for_a_store_that_is_away)
{
	struct instant until, next;
	unsigned steps = 0;

	cluster_begin(3);
	says(1, "LOCK a");
	ignores(1);
	passes(SEC);
	falls(2);
	says(1, "UNLOCK a");
	ignores(1);
	until = instant_add(cluster.now, 2 * SEC);
	while (service_deadline(cluster.daemon[0].service, &next) && instant_before(next, until)) {
		passes(instant_diff(next, cluster.now));
		steps++;
	}
	ck_assert_uint_le(steps, 8); /* probes */
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 1);
	comes(2);
	passes(MSEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* Session 1 has given back so many names of which node 0 has not heard, and a step looks at one of them. */
static void node_0_misses_releases(unsigned n)
{
	held_after_lock(3, "LOCK a");
	cluster.daemon[0].conf.work = 1;
	service_reload(cluster.daemon[0].service, &cluster.daemon[0].conf);
	for (unsigned i = 0; i < n; i++) {
		says(1, "LOCK n%u", i);
		hears(1, "OK name=*");
	}
	falls(0);
	for (unsigned i = 0; i < n; i++) {
		says(1, "UNLOCK n%u", i);
		hears(1, "OK *");
	}
}

/* Its connection breaks before it has answered anything. */
static void node_0_comes_and_goes(void)
{
	struct parcel *p;

	daemon_node_event(0, 0, EVENT_NODE_UP);
	daemon_node_event(0, 0, EVENT_NODE_DOWN);
	while ((p = TAILQ_FIRST(&cluster.daemon[0].queue[0])))
		parcel_answer(0, p, ANSWER_UNKNOWN, "connection lost");
}

/* What is asked of the others waits for one look at each release, and no longer. */
TEST(a_store_that_comes_and_goes_keeps_nobody_waiting_for_ever)
{
	struct event line = {.kind = EVENT_LINE, .session.id = 1};
	char text[] = "LOCK b";
	unsigned before;

	node_0_misses_releases(20);
	node_0_comes_and_goes();
	before = cluster.node[1].count[CALL_ACQUIRE];
	line.session.line = text;
	line.session.n = sizeof(text) - 1;
	ck_assert_int_eq(daemon_step(0, &line), 0);
	ck_assert_uint_eq(cluster.node[1].count[CALL_ACQUIRE], before);
	for (unsigned i = 0; i < 20; i++)
		node_0_comes_and_goes();
	ck_assert_uint_eq(cluster.node[1].count[CALL_ACQUIRE], before + 1);
	runs();
	hears(1, "OK name=b *");
}

/* What it has not looked at yet since then is due all the same. */
TEST(a_daemon_that_stops_tells_a_store_that_came_back_of_all_releases)
{
	struct event up = {.kind = EVENT_NODE_UP}, stop = {.kind = EVENT_STOP};
	unsigned before;

	node_0_misses_releases(20);
	cluster.node[0].up = true;
	ck_assert_int_eq(daemon_step(0, &up), 0);
	before = cluster.node[0].count[CALL_RELEASE];
	ck_assert_int_eq(daemon_step(0, &stop), 0);
	ck_assert_uint_ge(cluster.node[0].count[CALL_RELEASE] - before, 18); /* the others were sent before */
	daemon_ends(0);
}
