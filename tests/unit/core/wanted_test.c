/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/renew.c, convert.c: a renewal that somebody wants who is not the watchdog. */
#include "tests/fixture/full_window.h"
#include "tests/fixture/readers.h"

#include <check.h>

/* What waits at the one store takes all of its room. */
static void store_is_silent_and_full(void)
{
	feels(0, MOOD_SILENT);
	says(4, "@1 LOCK other-1");
	says(4, "@2 LOCK other-2");
}

START_TEST(the_renewal_for_a_reader_that_is_to_join_waits_for_room)
{
	begins_with_window(1, 1);
	says(1, "LOCK a mode=shared renew=no ttl=30s");
	hears(1, "OK *");
	passes(20 * SEC);
	store_is_silent_and_full();
	says(2, "LOCK a mode=shared renew=no ttl=30s wait=1m");
	passes(100 * MSEC);
	hears_nothing(2);
	feels(0, MOOD_WELL);
	passes(SEC);
	hears(2, "OK name=a *");
	ignores(4);
}
END_TEST

/* Two requests: an upgrade, and a downgrade. */
START_TEST(the_renewal_for_a_conversion_waits_for_room)
{
	begins_with_window(1, 1);
	says(1, _i == 0 ? "LOCK a mode=shared renew=no ttl=30s" : "LOCK a renew=no ttl=30s");
	hears(1, "OK *");
	passes(5 * SEC);
	store_is_silent_and_full();
	says(1, _i == 0 ? "LOCK a wait=1m" : "LOCK a mode=shared wait=1m");
	passes(100 * MSEC);
	hears_nothing(1);
	feels(0, MOOD_WELL);
	passes(3 * SEC);
	hears(1, "OK name=a *");
	ignores(4);
}
END_TEST

START_TEST(an_extend_that_is_refused_gives_up_no_renewal_that_others_want)
{
	begins_with_window(1, 1);
	says(1, "LOCK a mode=shared renew=no ttl=30s");
	hears(1, "OK *");
	passes(20 * SEC);
	store_is_silent_and_full();
	says(1, "@9 EXTEND a");
	says(2, "LOCK a mode=shared renew=no ttl=30s wait=1m");
	passes(1100 * MSEC);
	hears(1, "@9 ERR *");
	hears_nothing(2);
	feels(0, MOOD_WELL);
	passes(SEC);
	hears(2, "OK name=a *");
	ignores(4);
}
END_TEST

/* Three requests: a reader that is to join, an upgrade, and a downgrade. */
START_TEST(the_renewal_is_asked_for_again_when_a_quorum_is_back)
{
	stores_have_room(3);
	says(1, _i == 2 ? "LOCK a renew=no ttl=30s" : "LOCK a mode=shared renew=no ttl=30s");
	hears(1, "OK *");
	passes(20 * SEC);
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	if (_i == 0)
		says(2, "LOCK a mode=shared renew=no ttl=30s wait=1m");
	else
		says(1, _i == 1 ? "LOCK a wait=1m" : "LOCK a mode=shared wait=1m");
	passes(100 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		comes(i);
	passes(3 * SEC);
	hears(_i == 0 ? 2 : 1, "OK name=a *");
}
END_TEST

/* The store has just joined: its fence is ahead of its clock. With and without the watchdog. */
START_TEST(a_conversion_waits_until_stores_would_take_the_floor)
{
	cluster_begin(1);
	says(1, _i == 0 ? "LOCK a renew=no ttl=30s" : "LOCK a ttl=30s");
	hears(1, "OK *");
	says(1, "LOCK a mode=shared wait=25s");
	passes(20 * SEC);
	hears(1, "OK *");
}
END_TEST

Suite *wanted_suite(void)
{
	Suite *s = suite_create("wanted");
	TCase *c = tcase_create("wanted");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, the_renewal_for_a_reader_that_is_to_join_waits_for_room);
	tcase_add_loop_test(c, the_renewal_for_a_conversion_waits_for_room, 0, 2);
	tcase_add_test(c, an_extend_that_is_refused_gives_up_no_renewal_that_others_want);
	tcase_add_loop_test(c, the_renewal_is_asked_for_again_when_a_quorum_is_back, 0, 3);
	tcase_add_loop_test(c, a_conversion_waits_until_stores_would_take_the_floor, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
