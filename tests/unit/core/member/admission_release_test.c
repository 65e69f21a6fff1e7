/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/admission.c, move.c: releases and lock delays wait for admission like everything else. */
#include "daemon/core/member/admission.h"
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/full_window.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(unlocks_that_are_waited_for_come_a_window_at_a_time)
{
	begins_with_window(3, 4);
	holds_many(1);
	all_feel(MOOD_SILENT);
	says_of_many(1, "UNLOCK", "sync=yes");
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(waiting_at(i), 4);
	hears_nothing(1);
	all_feel(MOOD_WELL);
	hears_of_many(1);
	passes(SEC); /* the last store was behind the others */
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* The time for the answer of an UNLOCK begins when its release is admitted. */
TEST(an_unlock_that_waits_for_admission_is_not_refused_meanwhile)
{
	begins_with_window(1, 1);
	holds_many(1);
	feels(0, MOOD_SILENT);
	says_of_many(1, "UNLOCK", "sync=yes");
	for (unsigned i = 0; i < MANY; i++) {
		passes(TURN_US);
		serves(0, waiting_at(0));
		hears(1, "@* OK name=many-* count=0");
	}
	hears_nothing(1);
}

/* The key of the lock ends by itself first. */
TEST(an_unlock_that_is_never_admitted_hears_that_the_stores_were_busy)
{
	begins_with_a_crowd_that_is_due();
	turns_pass(36);
	says(4, "LOCK a ttl=1s");
	turns_pass(4);
	hears(4, "OK name=a *");
	says(4, "UNLOCK a sync=yes");
	turns_pass(55);
	hears(4, "ERR QUORUM 1 of 1 stores can be used, but are too busy: *");
	feels(0, MOOD_WELL);
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 0);
}

TEST(a_store_that_comes_back_is_told_what_it_missed_a_window_at_a_time)
{
	begins_with_window(3, 4);
	holds_many(1);
	falls(2);
	says_of_many(1, "UNLOCK", "");
	hears_of_many(1);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), MANY);
	feels(2, MOOD_SILENT);
	comes(2);
	passes(300 * MSEC);
	ck_assert_uint_le(waiting_at(2), 2 * 4 + 1); /* and a probe */
	feels(2, MOOD_WELL);
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	ck_assert_uint_eq(cluster.node[2].count[CALL_RELEASE], MANY + 2 * 4); /* the first may have overtaken what the store got before */
	ck_assert(!key_is_there(2, "many-1-0"));
	ck_assert(!key_is_there(2, "many-1-39"));
}

/* After an outage: nobody's renewal waits behind all that was freed meanwhile. */
TEST(stores_that_come_back_together_renew_before_they_have_heard_all_that_was_freed)
{
	begins_with_window(1, 2);
	says(2, "LOCK kept");
	ignores(2);
	holds_many(1);
	passes(3 * SEC);
	falls(0);
	says_of_many(1, "UNLOCK", "");
	hears_of_many(1);
	passes(SEC);
	hears(2, "! RISK name=kept *");
	feels(0, MOOD_SILENT);
	comes(0);
	serves(0, 1); /* the probe */
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_le(waiting_at(0), 2 * 2 + 1);
		passes(TURN_US);
		serves(0, waiting_at(0));
	}
	hears(2, "! SAFE name=kept *");
	ck_assert_int_gt(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	feels(0, MOOD_WELL);
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* Without a quorum no release was admitted. Once there is a quorum, releases come before new requests. */
TEST(a_store_that_hung_hears_of_a_release_before_it_is_asked_for_that_name_again)
{
	begins_with_window(1, 2);
	holds_many(1);
	feels(0, MOOD_SILENT);
	says(2, "LOCK x");
	passes(200 * MSEC);
	hears(2, "ERR QUORUM *");
	says_of_many(1, "UNLOCK", "");
	hears_of_many(1);
	ck_assert_uint_le(waiting_at(0), 2 * 2 + 1);
	serves(0, 1);
	says(2, "LOCK many-1-39");
	hears_nothing(2);
	feels(0, MOOD_WELL);
	hears(2, "OK name=many-1-39 *");
}

TEST(a_crowd_that_stops_waiting_withdraws_its_tickets_a_window_at_a_time)
{
	begins_with_window(3, 4);
	daemon_starts(1);
	passes(11 * SEC);
	session_opens(2, 1);
	says_of_many(2, "LOCK", "");
	hears_of_many(2);
	for (unsigned i = 0; i < MANY; i++)
		says(1, "@%u LOCK many-2-%u wait=1m", i, i);
	all_feel(MOOD_SILENT);
	goes(1, GONE_HANGUP);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_le(waiting_at(i), 4);
	all_feel(MOOD_WELL);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(cluster.node[i].count[CALL_WITHDRAW], MANY); /* the last store was behind: it is spared */
}

/* A lease of one second would end long before all the others are renewed. */
TEST(a_key_with_a_lock_delay_is_admitted_before_renewals)
{
	begins_with_a_crowd_that_is_due();
	turns_pass(36);
	says(4, "LOCK a ttl=1s");
	turns_pass(4);
	hears(4, "OK name=a *");
	says(4, "UNLOCK a keep=20s");
	hears(4, "OK name=a count=0");
	turns_pass(55);
	ck_assert_int_gt(key_ttl_us(0, "a"), 15 * SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	ck_assert(!was_logged("keep-lost *"));
	feels(0, MOOD_WELL);
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 0);
	says(5, "LOCK a");
	hears(5, "BUSY name=a *");
}

/* Half of the renewal's lease is over already. But stores that hang have no room for renewals. */
TEST(a_key_that_is_left_behind_is_admitted_once_there_is_room_for_releases)
{
	const struct instant now = {100 * SEC};
	struct admission_entry renewal = {.class = ADMISSION_KEEP}, left = {.class = ADMISSION_LEAVE}, freed = {.class = ADMISSION_GIVE_BACK};
	struct admission a;

	admission_init(&a);
	admission_queue(&a, &freed, now, NULL);
	admission_queue(&a, &renewal, instant_add(now, -SEC), NULL);
	admission_queue(&a, &left, now, NULL);
	ck_assert_ptr_null(admission_next(&a, ROOM_NONE, now));
	ck_assert_ptr_eq(admission_next(&a, ROOM_FOR_RELEASES, now), &left);
	ck_assert_ptr_eq(admission_next(&a, ROOM_FOR_RELEASES, now), &freed);
	ck_assert_ptr_null(admission_next(&a, ROOM_FOR_RELEASES, now));
	ck_assert_ptr_eq(admission_next(&a, ROOM_FOR_ALL, now), &renewal);
	admission_release(&a);
}

TEST(a_lock_delay_that_could_not_be_set_is_logged)
{
	begins_with_window(3, 4);
	says(1, "LOCK a ttl=1s");
	hears(1, "OK name=a *");
	falls(0);
	falls(1);
	says(1, "UNLOCK a keep=20s");
	hears(1, "OK name=a count=0");
	passes(3 * SEC);
	ck_assert(was_logged("keep-lost name=a stores=1 *"));
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}

/* The keys stand for that long anyway. */
TEST(a_lock_delay_that_the_keys_have_anyway_is_not_logged_as_lost)
{
	begins_with_delay(3, 20 * SEC);
	passes(60 * SEC);
	says(1, "LOCK a ttl=1s delay=5s");
	hears(1, "OK name=a *");
	falls(0);
	falls(1);
	goes(1, GONE_HANGUP);
	ck_assert_int_gt(key_ttl_us(0, "a"), 5 * SEC);
	ck_assert_int_gt(key_ttl_us(1, "a"), 5 * SEC);
	passes(20 * SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
	ck_assert(!was_logged("keep-lost *"));
}

TEST(a_daemon_that_stops_sends_the_calls_that_wait_for_admission)
{
	struct event stop = {.kind = EVENT_STOP};

	begins_with_window(1, 1);
	says(1, "LOCK a");
	hears(1, "OK *");
	holds_many(2);
	feels(0, MOOD_SILENT);
	says_of_many(2, "UNLOCK", "");
	hears_of_many(2);
	says(1, "UNLOCK a keep=20s");
	hears(1, "OK name=a count=0");
	ck_assert_uint_eq(waiting_at(0), 1);
	daemon_step(0, &stop);
	ck_assert_uint_eq(waiting_at(0), MANY + 1);
	feels(0, MOOD_WELL);
	ck_assert_int_gt(key_ttl_us(0, "a"), 15 * SEC);
	ck_assert(!key_is_there(0, "many-2-39"));
	daemon_ends(0);
}

/* A busy store is asked again a little later. When the daemon stops there is no later. */
TEST(a_daemon_that_stops_sends_the_releases_that_a_busy_store_has_missed)
{
	struct event stop = {.kind = EVENT_STOP};

	begins_with_window(3, 4);
	says(1, "LOCK a");
	hears(1, "OK *");
	is_full(2, 2);
	says(1, "UNLOCK a keep=20s");
	hears(1, "OK name=a count=0");
	daemon_step(0, &stop);
	feels(2, MOOD_WELL);
	ck_assert_int_gt(key_ttl_us(2, "a"), 15 * SEC);
	daemon_ends(0);
}

/* Otherwise others would wait behind it until its tickets expire. */
TEST(a_daemon_that_stops_withdraws_all_tickets)
{
	struct event stop = {.kind = EVENT_STOP};

	begins_with_window(3, 4);
	daemon_starts(1);
	passes(11 * SEC);
	session_opens(2, 1);
	says_of_many(2, "LOCK", "");
	hears_of_many(2);
	session_opens(3, 1);
	says(3, "LOCK b");
	hears(3, "OK *");
	says(4, "LOCK b wait=1m");
	for (unsigned i = 0; i < MANY; i++)
		says(1, "@%u LOCK many-2-%u wait=1m", i, i);
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 8; i++)
		says(5, "@%u LOCK c-%u", i, i);
	goes(4, GONE_HANGUP); /* waits for its turn already */
	ck_assert_uint_eq(asked(CALL_WITHDRAW), 0);
	daemon_step(0, &stop);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(cluster.node[i].count[CALL_WITHDRAW], MANY + 1);
	all_feel(MOOD_WELL);
	daemon_ends(0);
}

/* 150 ms for one call each. A release that three stores refuse is repeated once, not once for each of them. */
TEST(releases_that_several_stores_refuse_are_repeated_no_later_for_that)
{
	const unsigned crowd = 3000;

	cluster_open(3);
	cluster.conf.limits.locks = crowd;
	daemon_starts(0);
	passes(11 * SEC);
	for (unsigned i = 0; i < crowd; i++)
		says(1, "LOCK refused-%u", i);
	ignores(1);
	for (unsigned i = 0; i < 3; i++)
		refuses(i, "MISCONF");
	for (unsigned i = 0; i < crowd; i++)
		says(1, "UNLOCK refused-%u", i);
	ignores(1);
	passes(SEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), crowd);
	all_feel(MOOD_WELL);
	passes(260 * MSEC);
	ck_assert_int_eq(figure(0, METRIC_OUTSTANDING_RELEASES), 0);
}
