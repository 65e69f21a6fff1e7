/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/together.c: an upgrade where some stores do not answer, or have other shares. */
#include "tests/fixture/readers.h"

#include <check.h>

/*
 * A reader elsewhere asks, and its share stands at store 2 alone, until it gives up. The upgrade has stores 0 and 1. Where others may join is soon put right:
 * else a deletion at one store would let a reader in.
 */
START_TEST(an_upgrade_that_meets_a_share_at_one_store_soon_has_that_store_as_well)
{
	two_daemons(3);
	reads(1);
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	says(2, "LOCK a mode=shared");
	says(1, "LOCK a");
	passes(MSEC);
	serves_daemon(0, 0, 1);
	serves_daemon(0, 1, 1);
	hears(1, GRANT);
	passes(60 * MSEC);
	feels(0, MOOD_WELL);
	feels(1, MOOD_WELL);
	passes(100 * MSEC);
	ignores(2);
	key_is_overwritten(0, "a", "somebody:0:else", MSEC);
	passes(MSEC);
	says(2, "LOCK a mode=shared");
	passes(100 * MSEC);
	hears(2, "BUSY *");
}
END_TEST

/* Store 0 alone has no other share, and store 1 does not answer. */
START_TEST(an_upgrade_that_a_silent_store_leaves_open_is_over_with_the_timeout)
{
	unsigned asked;

	two_daemons(3);
	reads(1);
	refuses(0, "OOM");
	reads(2);
	feels(0, MOOD_WELL);
	passes(500 * MSEC);
	feels(1, MOOD_SILENT);
	asked = cluster.node[0].count[CALL_EXTEND];
	says(1, _i ? "@u LOCK a wait=1m" : "@u LOCK a");
	passes(MSEC);
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], asked + 1);
	hears_nothing(1);
	passes(100 * MSEC);
	ck_assert_uint_gt(cluster.node[0].count[CALL_EXTEND], asked + 1);
	if (!_i)
		hears(1, "@u BUSY *");
	feels(1, MOOD_WELL);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(1100 * MSEC);
	if (_i)
		hears(1, "@u OK name=a fence=* valid_ms=* ttl_ms=10000 count=1");
}
END_TEST

/* Daemon 0 renews, and hands its lease to a reader while a reader elsewhere wants it. It is shared as soon as that renewal has ended. */
START_TEST(a_lease_that_goes_to_a_reader_during_its_renewal_is_shared_right_behind_that)
{
	unsigned asked_before;

	two_daemons(3);
	passes(SEC);
	says(4, "LOCK a");
	hears(4, GRANT);
	says(1, "LOCK a wait=1m"); /* since somebody waits, the grant has tokens for hand-overs */
	says(4, "UNLOCK a");
	hears(4, "OK *");
	passes(SEC);
	hears(1, GRANT);
	says(3, "@r LOCK a mode=shared wait=1m");
	passes(SEC);
	all_feel(MOOD_SILENT);
	says(1, "@e EXTEND a");
	is_wanted(0, 0, "a");
	says(1, "@u UNLOCK a");
	hears(3, "@r OK name=a *");
	asked_before = asked(CALL_EXTEND);
	all_feel(MOOD_WELL);
	passes(MSEC);
	ck_assert_uint_ge(asked(CALL_EXTEND), asked_before + 2);
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.form, FORM_SHARED);
	ignores(1);
}
END_TEST

/* The connection is new, so an earlier call that shares the lock may yet be carried out, for a while. */
START_TEST(an_upgrade_that_does_not_wait_is_busy_behind_one_that_waits)
{
	cluster_begin(1);
	passes(SEC);
	reads(1);
	falls(0);
	comes(0);
	passes(10 * MSEC);
	says(1, "@1 LOCK a wait=1m");
	passes(10 * MSEC);
	hears_nothing(1);
	says(1, "@2 LOCK a");
	hears(1, "@2 BUSY name=a *");
	passes(20 * SEC);
	hears(1, "@1 OK name=a *");
}
END_TEST

/* A waiter keeps the place of the writers, so the stores are asked for the one that waits only now and then. */
START_TEST(an_upgrade_that_does_not_wait_asks_at_once_behind_one_that_was_given_up)
{
	two_daemons(3);
	passes(SEC);
	reads(1);
	reads(2);
	says(3, "LOCK a wait=1m");
	says(1, "@1 LOCK a wait=20ms");
	passes(21 * MSEC);
	hears(1, "@1 TIMEOUT name=a *");
	if (_i) {
		says(2, "UNLOCK a");
		hears(2, "OK *");
	}
	says(1, "@2 LOCK a");
	passes(5 * MSEC);
	hears(1, _i ? "@2 OK name=a *" : "@2 BUSY name=a *");
}
END_TEST

/* Another name was granted with tokens for hand-overs: the fence of the store is beyond the last token that anybody was given. */
START_TEST(an_upgrade_is_not_missed_for_tokens_that_this_daemon_has_in_store)
{
	unsigned asked;

	cluster_begin(1);
	passes(SEC);
	reads(1);
	says(2, "LOCK b");
	hears(2, "OK name=b *");
	for (int i = 0; i < 100; i++)
		says(3, "@%d LOCK b wait=1m owner=%d", i, i);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(3, "@0 OK name=b *");
	asked = cluster.node[0].count[CALL_EXTEND];
	says(1, "LOCK a");
	passes(MSEC);
	hears(1, "OK name=a *");
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], asked + 1);
}
END_TEST

/* The fences are ahead of the clock, and the daemons have seen the same: both ask for the same token. */
START_TEST(upgrades_of_two_daemons_in_one_moment_have_a_token_each)
{
	two_daemons(_i ? 3 : 1);
	passes(SEC);
	says(1, "LOCK a mode=shared");
	says(2, "LOCK b mode=shared");
	passes(2 * SEC);
	hears(1, "OK name=a *");
	hears(2, "OK name=b *");
	says(1, "LOCK a");
	says(2, "LOCK b");
	passes(5 * MSEC);
	hears(1, "OK name=a *");
	hears(2, "OK name=b *");
}
END_TEST

/* Each store gives a token once. */
START_TEST(two_upgrades_of_one_moment_have_a_token_each)
{
	cluster_begin(_i ? 3 : 1);
	passes(SEC);
	says(1, "LOCK a mode=shared");
	says(1, "LOCK b mode=shared");
	hears(1, "OK name=a *");
	hears(1, "OK name=b *");
	says(1, "@1 LOCK a");
	says(1, "@2 LOCK b wait=1m");
	passes(5 * MSEC);
	hears(1, "@1 OK name=a *");
	hears(1, "@2 OK name=b *");
}
END_TEST

Suite *upgrade_suite(void)
{
	Suite *s = suite_create("upgrade");
	TCase *c = tcase_create("upgrade");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, an_upgrade_that_meets_a_share_at_one_store_soon_has_that_store_as_well);
	tcase_add_loop_test(c, an_upgrade_that_a_silent_store_leaves_open_is_over_with_the_timeout, 0, 2);
	tcase_add_test(c, a_lease_that_goes_to_a_reader_during_its_renewal_is_shared_right_behind_that);
	tcase_add_test(c, an_upgrade_that_does_not_wait_is_busy_behind_one_that_waits);
	tcase_add_loop_test(c, an_upgrade_that_does_not_wait_asks_at_once_behind_one_that_was_given_up, 0, 2);
	tcase_add_test(c, an_upgrade_is_not_missed_for_tokens_that_this_daemon_has_in_store);
	tcase_add_loop_test(c, upgrades_of_two_daemons_in_one_moment_have_a_token_each, 0, 2);
	tcase_add_loop_test(c, two_upgrades_of_one_moment_have_a_token_each, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
