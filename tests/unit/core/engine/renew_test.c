/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/renew.c: the watchdog, RISK and SAFE. */
#include "tests/fixture/held_lock.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_lease_is_renewed_when_a_third_of_it_is_over)
{
	int64_t fence = held_after_lock(3, "LOCK a");

	passes(3333 * MSEC - 1 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 0);
	ck_assert_int_eq(valid_ms(), 9897 - 3332);
	passes(2 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 3);
	ck_assert_int_eq(valid_ms(), 9896);
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.fence, fence);
	passes(60 * SEC);
	ck_assert_int_gt(valid_ms(), 6500);
	hears_nothing(1);
}

TEST(a_quorum_of_renewals_renews_and_the_votes_count_one_by_one)
{
	held_after_lock(3, "LOCK a");
	passes(3330 * MSEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	passes(10 * MSEC);
	/* One new vote: the second largest is an old one. */
	ck_assert_int_eq(valid_ms(), 9897 - 3340);
	serves(1, 1);
	ck_assert_int_gt(valid_ms(), 9880);
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
}

TEST(an_unknown_renewal_changes_nothing)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_LOSSY);
	passes(3400 * MSEC);
	hears(1, "! RISK name=a fence=* left_ms=*");
	ck_assert_int_eq(valid_ms(), 9897 - 3400);
	all_feel(MOOD_WELL);
	passes(600 * MSEC);
	hears(1, "! SAFE name=a fence=* valid_ms=98*");
}

TEST(a_shorter_renewal_of_unknown_outcome_lowers_the_deadline_from_its_send)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_LOSSY);
	says(1, "EXTEND a ttl=1s");
	ignores(1);
	ck_assert_int_le(valid_ms(), 987);
	all_feel(MOOD_WELL);
}

TEST(a_late_vote_does_not_outlive_the_shorter_lease_that_was_asked_for_after_it)
{
	cluster_begin(3);
	passes(2 * SEC);
	feels(2, MOOD_TARDY);
	says(1, "LOCK a");
	hears(1, "OK *");
	says(1, "EXTEND a ttl=200ms");
	hears(1, "OK name=a fence=* valid_ms=195");
	/* The acquire of 10 s was carried out at c, and after it the renewal of 200 ms, which is lost. */
	serves(2, 1);
	loses(2, 1);
	feels(2, MOOD_SILENT);
	falls(1);
	says(1, "CHECK a");
	ck_assert_int_le(number_in(hears(1, "OK name=a *"), "valid_ms"), 195);
	passes(180 * MSEC);
	/* a alone renews: one vote, since that of c is over. */
	passes(30 * MSEC);
	says(1, "CHECK a");
	ignores(1);
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
	feels(2, MOOD_WELL);
}

/* An EXTEND to a longer lease was answered ERR, and so was one to a shorter lease after it. The late votes are those of the second. */
TEST(a_renewal_that_is_confirmed_late_is_worth_no_more_than_what_was_asked_for_since)
{
	held_after_lock(3, "LOCK a");
	all_feel(MOOD_TARDY);
	says(1, "EXTEND a ttl=30s");
	passes(60 * MSEC);
	hears(1, "! RISK *");
	hears(1, "ERR QUORUM *");
	says(1, "EXTEND a ttl=3s");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	hears(1, "! SAFE *");
	passes(20 * SEC);
	hears_nothing(1);
	ck_assert_int_gt(valid_ms(), 1500);
}

/* The store was not asked for the shorter lease, because no quorum could be asked. What it granted before stands. */
TEST(a_late_vote_takes_nothing_from_what_its_store_had_granted_before)
{
	held_after_lock(3, "LOCK a");
	falls(2);
	feels(1, MOOD_TARDY);
	passes(3500 * MSEC);
	hears(1, "! RISK *");
	says(1, "EXTEND a ttl=1s");
	hears(1, "ERR QUORUM *");
	passes(900 * MSEC);
	feels(1, MOOD_WELL);
	passes(10 * MSEC);
	hears(1, "! SAFE name=a *");
	passes(SEC);
	hears_nothing(1);
}

/*
 * The votes of a round are worth no more than the shortest lease that was asked for while it was under way. Neither is its lease, and its loss is told that
 * much before.
 */
TEST(a_shorter_lease_that_is_asked_for_behind_a_longer_one_is_not_lost)
{
	held_after_lock(3, "LOCK a ttl=100ms");
	all_feel(MOOD_SILENT);
	says(1, "@1 EXTEND a ttl=30s");
	says(1, "@2 EXTEND a ttl=100ms");
	passes(5 * MSEC);
	serves(0, 1);
	serves(1, 1);
	hears(1, "@1 OK name=a fence=* valid_ms=9*");
	all_feel(MOOD_WELL);
	hears(1, "@2 OK name=a fence=* valid_ms=9*");
	hears_nothing(1);
}

TEST(a_lease_that_was_asked_for_longer_shorter_and_longer_at_once_is_not_lost)
{
	held_after_lock(3, "LOCK a ttl=100ms");
	all_feel(MOOD_SILENT);
	says(1, "@1 EXTEND a ttl=30s");
	says(1, "@2 EXTEND a ttl=100ms");
	passes(2 * MSEC);
	serves(0, 1);
	says(1, "@3 EXTEND a ttl=30s");
	serves(1, 1);
	hears(1, "@1 OK name=a fence=* valid_ms=*");
	all_feel(MOOD_WELL);
	hears(1, "@2 OK name=a fence=* valid_ms=*");
	hears(1, "@3 OK name=a fence=* valid_ms=29*");
	hears_nothing(1);
}

TEST(a_deadline_that_a_store_brings_nearer_is_kept_though_the_round_goes_on)
{
	cluster_open(3);
	cluster.conf.timeout_us = 200 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "LOCK a ttl=1s");
	hears(1, "OK name=a *");
	feels(2, MOOD_LOSSY); /* the vote of c is that of the grant: 987 ms */
	passes(920 * MSEC);
	hears_nothing(1);
	key_is_overwritten(0, "a", "foreign", 10 * SEC);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	/* a says that the key is another's, b and c have time until 1120 ms. */
	says(1, "EXTEND a");
	passes(20 * MSEC);
	hears(1, "! LOST name=a fence=* reason=quorum");
	hears(1, "ERR LOST *");
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
}

TEST(a_missed_renewal_is_told_once_and_tried_again_every_twentieth_of_the_ttl)
{
	unsigned before;

	held_after_lock(3, "LOCK a");
	refuses(1, "OOM");
	refuses(2, "OOM");
	passes(3334 * MSEC);
	hears(1, "! RISK name=a fence=* left_ms=6563");
	ck_assert_uint_eq(asked(CALL_EXTEND), 3);
	before = asked(CALL_EXTEND);
	passes(490 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), before);
	passes(20 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), before + 3);
	passes(2 * SEC);
	hears_nothing(1);
	all_feel(MOOD_WELL);
	passes(500 * MSEC);
	hears(1, "! SAFE name=a fence=* valid_ms=9*");
	/* And at the next miss it is told again. */
	refuses(1, "OOM");
	refuses(2, "OOM");
	passes(3400 * MSEC);
	hears(1, "! RISK name=a *");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(1, "! SAFE name=a *");
}

TEST(a_lease_at_risk_is_renewed_as_soon_as_a_quorum_is_back)
{
	held_after_lock(3, "LOCK a ttl=20s");
	falls(1);
	falls(2);
	passes(7 * SEC);
	hears(1, "! RISK *");
	comes(1);
	passes(0);
	hears(1, "! SAFE name=a fence=* valid_ms=19797");
}

TEST(a_short_lease_is_tried_again_after_20_ms)
{
	held_after_lock(1, "LOCK a ttl=120ms");
	refuses(0, "OOM");
	passes(41 * MSEC);
	hears(1, "! RISK *");
	ck_assert_uint_eq(asked(CALL_EXTEND), 1);
	passes(18 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 1);
	passes(3 * MSEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), 2);
	feels(0, MOOD_WELL);
}

TEST(with_one_store_down_no_lease_is_ever_lost)
{
	held_after_lock(3, "LOCK a ttl=1s");
	falls(2);
	for (unsigned i = 0; i < 20; i++) {
		passes(5 * SEC);
		ck_assert_int_gt(valid_ms(), 500);
	}
	hears_nothing(1);
}

TEST(extends_in_flight_are_bounded)
{
	cluster_open(1);
	cluster.conf.limits.waiting = 2;
	daemon_starts(0);
	says(1, "LOCK a");
	hears(1, "OK *");
	feels(0, MOOD_SILENT);
	says(1, "@1 EXTEND a");
	says(1, "@2 EXTEND a");
	says(1, "@3 EXTEND a");
	hears(1, "@3 ERR LIMIT *2 requests in flight*");
	feels(0, MOOD_WELL);
	hears(1, "@1 OK name=a *");
	passes(MSEC); /* the next round */
	hears(1, "@2 OK name=a *");
	says(1, "@3 EXTEND a");
	hears(1, "@3 OK name=a *");
}

TEST(a_renewal_that_a_quorum_confirms_late_is_one_and_no_second_is_asked_for)
{
	unsigned asked_so_far;

	cluster_begin(3);
	says(1, "LOCK a");
	ignores(1);
	passes(3333 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_SILENT);
	passes(70 * MSEC);
	hears(1, "! RISK name=a *");
	asked_so_far = asked(CALL_EXTEND);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	hears(1, "! SAFE name=a fence=* valid_ms=98*");
	hears_nothing(1);
	passes(3 * SEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), asked_so_far);
	passes(SEC);
	ck_assert_uint_eq(asked(CALL_EXTEND), asked_so_far + 3);
	hears_nothing(1);
}
