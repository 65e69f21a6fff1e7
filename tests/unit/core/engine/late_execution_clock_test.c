/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/release.c, renew.c: late calls at stores whose clocks are known only roughly. Such a call may pass for a prompt one, so the release is
 * repeated until none can come any more.
 */
#include "daemon/core/member/members.h"
#include "tests/fixture/cluster_part.h"

#include <check.h>

#define ROUGHLY_US (1900 * MSEC)
#define LATE_US    (400 * MSEC)
#define TIMEOUT_US (500 * MSEC)
#define SLOW_US    (450 * MSEC) /* an answer in time */
#define SOON_US    (200 * MSEC)

/* The store has answered twice, and late both times. */
static void clock_is_known_roughly(void)
{
	cluster_begin(3);
	daemon_ends(0);
	feels(2, MOOD_SILENT);
	daemon_starts(0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_str_ne(store_state(0, 2), "joined");
		passes(ROUGHLY_US);
		serves(2, 1);
	}
	ck_assert_str_eq(store_state(0, 2), "joined");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
}

static void arrives_late(const struct call *late)
{
	struct answer answer;

	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(LATE_US);
	memory_call(cluster.node[2].memory, late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'G');
	passes(ROUGHLY_US);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* Store 2 has not answered that ACQUIRE, which is returned, and answers one for session k at once. */
static struct call another_is_in_time(unsigned k)
{
	struct call late = late_call(2, CALL_ACQUIRE);

	loses(2, 1);
	feels(2, MOOD_WELL);
	says(k, "LOCK b");
	hears(k, "OK name=b *");
	return late;
}

FIXTURE(.teardown = cluster_close)

TEST(an_acquire_that_is_late_by_two_connections_leaves_no_key)
{
	struct call late;

	clock_is_known_roughly();
	late = late_call(2, CALL_ACQUIRE);
	breaks(2);
	breaks(2);
	arrives_late(&late);
}

/* Over another connection to the store, which is as old. */
TEST(an_acquire_that_is_late_where_others_were_answered_in_time_since_leaves_no_key)
{
	struct call late;

	clock_is_known_roughly();
	late = another_is_in_time(2);
	breaks(2);
	arrives_late(&late);
}

/* While a server cannot be dialled, each new reason for that is told by NODE_DOWN. Nothing has been sent there since. */
TEST(an_acquire_that_is_late_where_the_store_was_dialled_in_vain_since_leaves_no_key)
{
	struct call late;

	clock_is_known_roughly();
	late = another_is_in_time(2);
	falls(2);
	passes(ROUGHLY_US / 4);
	daemon_node_event(0, 2, EVENT_NODE_DOWN);
	comes(2);
	arrives_late(&late);
}

/* Slow answers that still come in time leave the clock known only roughly. A prompt one over another connection says nothing of what was sent before. */
TEST(an_acquire_that_is_late_where_answers_were_slow_but_in_time_leaves_no_key)
{
	struct call late;
	struct answer answer;

	cluster_open(3);
	cluster.conf.timeout_us = TIMEOUT_US;
	daemon_starts(0);
	passes(2 * SEC);
	daemon_ends(0);
	feels(2, MOOD_SILENT);
	daemon_starts(0);
	passes(SLOW_US);
	serves(2, 1);
	ck_assert_str_eq(store_state(0, 2), "joined");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	late = another_is_in_time(1);
	breaks(2);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(2 * SLOW_US);
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'G');
	passes(LATE_US);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* A late call may still arrive at one store, for seconds. That does not keep another store from being asked again. */
TEST(a_store_that_refused_is_asked_again_while_late_calls_are_awaited_at_another)
{
	clock_is_known_roughly();
	feels(2, MOOD_WELL);
	breaks(2);
	refuses(1, "READONLY You can't write against a read only replica.");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(SOON_US);
	feels(1, MOOD_WELL);
	ck_assert(key_is_there(1, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 1);
	passes(SOON_US);
	ck_assert(!key_is_there(1, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 1);
}

/* How long the store hung does not tell how roughly its clock was known when the call was sent: the store was heard again before. */
LOOP_TEST(an_acquire_that_is_late_after_the_store_hung_leaves_no_key, 2)
{
	struct answer answer;
	struct call late;

	cluster_begin(3);
	says(1, "LOCK z");
	hears(1, "OK name=z *");
	feels(2, MOOD_SILENT);
	passes(3 * SEC);
	feels(2, MOOD_WELL);
	passes(_i ? 10 * SEC : MSEC);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	late = late_call(2, CALL_ACQUIRE);
	breaks(2);
	feels(2, MOOD_WELL);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'G');
	passes(3 * cluster.conf.timeout_us + 2 * JUMP_SLACK_US); /* its clock may have moved by so much unnoticed while it hung */
	ck_assert(!key_is_there(2, "a"));
}

/*
 * The renewal that came over the next connection was late itself, so it put no key back; _i: it found the key of another. The store says so only when no call
 * of the earlier connection can come any more.
 */
LOOP_TEST(an_acquire_that_arrives_before_a_renewal_that_found_nothing_is_heard_leaves_no_key, 2)
{
	struct answer answer;
	struct call late;

	clock_is_known_roughly();
	late = late_call(2, CALL_ACQUIRE);
	breaks(2);
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	passes(2 * cluster.conf.timeout_us);
	if (_i)
		key_is_overwritten(2, "a", "other", MSEC);
	feels(2, MOOD_TARDY);
	passes(MSEC);
	ck_assert(!key_is_there(2, "a"));
	memory_call(cluster.node[2].memory, &late, cluster.now, &answer);
	ck_assert_int_eq(answer.code, 'G');
	passes(ROUGHLY_US + SOON_US);
	feels(2, MOOD_WELL);
	ck_assert(key_is_there(2, "a"));
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(SOON_US);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}
