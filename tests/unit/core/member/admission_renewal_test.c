/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/admission.c, move.c, renew.c: renewals that wait for admission, and the EXTENDs that they are to answer. */
#include "tests/fixture/full_window.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

/* The late renewal does not answer the EXTEND. Its own round does. */
TEST(an_extend_that_waits_for_admission_is_answered_by_its_own_round_and_not_by_a_late_renewal)
{
	begins_with_window(1, 1);
	says(1, "LOCK a");
	ignores(1);
	passes(3300 * MSEC);
	feels(0, MOOD_SILENT);
	for (unsigned i = 0; i < 200 && figure(0, METRIC_RISKS) == 0; i++)
		passes(MSEC);
	hears(1, "! RISK *");
	says(1, "EXTEND a ttl=8s");
	hears_nothing(1);
	feels(0, MOOD_WELL);
	hears(1, "! SAFE *");
	passes(100 * MSEC);
	hears(1, "OK name=a *");
}

/* If EXTENDs of long leases came first, the short one would be the 121st. */
TEST(a_short_lease_is_kept_before_long_ones_that_came_first)
{
	begins_with_window(1, 1);
	for (unsigned k = 1; k <= 3; k++) {
		says_of_many(k, "LOCK", "");
		hears_of_many(k);
	}
	says(4, "LOCK short ttl=1s");
	ignores(4);
	feels(0, MOOD_SILENT);
	for (unsigned k = 1; k <= 3; k++)
		says_of_many(k, "EXTEND", "");
	turns_pass(60);
	hears_nothing(4);
	turns_pass(60);
	hears_nothing(4);
	feels(0, MOOD_WELL);
	for (unsigned k = 1; k <= 3; k++)
		ck_assert_uint_eq(ignores(k), MANY); /* some are told that the store is busy */
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 0);
	ck_assert_int_eq(figure(0, METRIC_LOCKS_HELD), 3 * MANY + 1);
}

#define SECOND_TURNS (SEC / TURN_US)
#define TOO_BUSY     "ERR QUORUM 1 of 1 stores can be used, but are too busy: the lock is still held, *"

/* So many leases that end before that of session 4, at a store with a window of 1 that answers in turns from now on. */
static void begins_with_a_longer_lease(unsigned others, const char *terms)
{
	begins_with_window(1, 1);
	for (unsigned i = 0; i < others; i++)
		says(1, "@%u LOCK short-%u", i, i);
	ck_assert_uint_eq(ignores(1), others);
	says(4, "LOCK long ttl=30s %s", terms);
	hears(4, "OK name=long *");
	passes(2 * SEC);
	feels(0, MOOD_SILENT);
}

static void others_extend(unsigned others)
{
	for (unsigned i = 0; i < others; i++)
		says(1, "@%u EXTEND short-%u", i, i);
}

TEST(an_extend_that_is_not_admitted_within_a_second_is_refused_and_the_lock_is_renewed_as_before)
{
	begins_with_a_longer_lease(60, "");
	others_extend(60);
	says(4, "EXTEND long ttl=20s");
	turns_pass(SECOND_TURNS - 1);
	hears_nothing(4);
	turns_pass(1);
	hears(4, TOO_BUSY);
	says(4, "CHECK long");
	hears(4, "OK name=long *");
	feels(0, MOOD_WELL);
	passes(MSEC);
	ck_assert(span_equal(cluster.node[0].last[CALL_EXTEND].call.name, SPAN("long")));
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.px_ms, 20000);
	passes(60 * SEC);
	hears_nothing(4);
	ignores(1);
	ck_assert_int_eq(figure(0, METRIC_RISKS), 0);
}

TEST(an_extend_that_was_refused_does_not_prolong_a_lease_without_renew)
{
	begins_with_a_longer_lease(60, "renew=no");
	others_extend(60);
	says(4, "EXTEND long");
	turns_pass(SECOND_TURNS);
	hears(4, TOO_BUSY);
	feels(0, MOOD_WELL);
	passes(SEC);
	ck_assert_int_lt(key_ttl_us(0, "long"), 27 * SEC);
	says(4, "EXTEND long");
	hears(4, "OK name=long *");
	ck_assert_int_gt(key_ttl_us(0, "long"), 29 * SEC);
	ignores(1);
}

TEST(an_extend_that_was_sent_within_a_second_is_answered_by_its_round)
{
	begins_with_a_longer_lease(SECOND_TURNS - 1, "");
	others_extend(SECOND_TURNS - 1);
	says(4, "EXTEND long");
	turns_pass(SECOND_TURNS - 1);
	ck_assert(span_equal(cluster.node[0].last[CALL_EXTEND].call.name, SPAN("long")));
	passes(TURN_US + MSEC);
	hears_nothing(4);
	feels(0, MOOD_WELL);
	hears(4, "OK name=long *");
	ignores(1);
}

TEST(each_extend_has_a_second_of_its_own_which_a_renewal_under_way_is_part_of)
{
	begins_with_a_longer_lease(60, "");
	says(4, "@1 EXTEND long");
	says(4, "@2 EXTEND long");
	others_extend(60);
	turns_pass(1);
	hears(4, "@1 OK name=long *");
	turns_pass(10);
	says(4, "@3 EXTEND long");
	turns_pass(SECOND_TURNS - 12);
	hears_nothing(4);
	turns_pass(1);
	hears(4, "@2 " TOO_BUSY);
	turns_pass(10);
	hears_nothing(4);
	turns_pass(1);
	hears(4, "@3 " TOO_BUSY);
	feels(0, MOOD_WELL);
	ignores(1);
}

/* More leases than the store can renew in time. */
TEST(a_renewal_that_may_be_admitted_too_late_is_a_RISK_before_the_lock_is_lost)
{
	int64_t risks;

	begins_with_window(1, 1);
	says_of_many(1, "LOCK", "ttl=1s");
	hears_of_many(1);
	feels(0, MOOD_SILENT);
	for (unsigned i = 0; i < 40; i++) {
		risks = figure(0, METRIC_RISKS);
		turns_pass(1);
		ck_assert_int_le(figure(0, METRIC_LOSSES), risks);
	}
	ck_assert_int_gt(figure(0, METRIC_LOSSES), 0);
}

/* The store falls silent while the renewal waits for admission: the timer of the admission is due before that of the lease. */
TEST(after_a_long_stop_a_lease_that_waited_for_admission_is_lost_and_is_no_RISK)
{
	begins_with_window(1, 1);
	says(1, "LOCK a");
	hears(1, GRANT);
	passes(3310 * MSEC);
	feels(0, MOOD_SILENT);
	says(2, "LOCK b");
	passes(60 * MSEC);
	hears_nothing(1);
	jumps(20 * SEC);
	wakes(0);
	hears(1, "! LOST name=a fence=* reason=quorum");
	hears_nothing(1);
	ck_assert_int_eq(figure(0, METRIC_RISKS), 0);
	ck_assert_int_eq(figure(0, METRIC_RENEWALS_MISSED), 0);
}
