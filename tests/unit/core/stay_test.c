/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/stay.c, expire.c, belief.c: readers that the watchdog does not keep. */
#include "tests/fixture/readers.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define ENDING "OK name=a fence=* valid_ms=* ttl_ms=10000 count=1 mode=shared"
#define LOST   "! LOST name=a fence=* reason=expired"

static void stays(unsigned k)
{
	says(k, "LOCK a mode=shared renew=no");
	hears(k, ENDING);
}

static int64_t valid_ms(unsigned k)
{
	says(k, "CHECK a");
	return number_in(hears(k, "OK name=a *"), "valid_ms");
}

/* --- renew=no --- */

START_TEST(the_lease_of_a_reader_that_nobody_renews_ends_by_itself)
{
	unsigned asked_before;

	stores_have_room(3);
	stays(1);
	asked_before = asked(CALL_EXTEND);
	passes(9 * SEC);
	hears_nothing(1);
	ck_assert_uint_eq(asked(CALL_EXTEND), asked_before);
	is_refused_to(2);
	passes(SEC);
	hears(1, LOST);
	passes(200 * MSEC);
	is_free_for(2);
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *reason=expired*");
}
END_TEST

START_TEST(a_reader_that_nobody_renews_ends_beside_others)
{
	stores_have_room(3);
	if (_i == 0)
		reads(1);
	says(2, "LOCK a mode=shared renew=no ttl=5s");
	ck_assert_int_le(number_in(hears(2, "OK name=a * ttl_ms=5000 count=1 mode=shared"), "valid_ms"), 5000);
	if (_i == 1) {
		says(1, "LOCK a mode=shared");
		hears(1, "OK name=a *");
	}
	passes(3 * SEC);
	ck_assert_int_le(valid_ms(2), 2000);
	ck_assert_int_ge(valid_ms(1), 5000);
	passes(2 * SEC);
	hears(2, LOST);
	passes(20 * SEC);
	hears_nothing(1);
	ck_assert_int_ge(valid_ms(1), 5000);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	is_free_for(3);
}
END_TEST

/* Those who were renewed have gone. The lease is renewed once more, since it would be over sooner. */
START_TEST(a_reader_that_nobody_renews_holds_for_all_of_its_time)
{
	unsigned asked_before;

	stores_have_room(3);
	reads(1);
	passes(3 * SEC);
	stays(2);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	passes(5 * SEC);
	ck_assert_int_ge(valid_ms(2), 4000);
	asked_before = asked(CALL_EXTEND);
	passes(4 * SEC);
	hears_nothing(2);
	ck_assert_uint_eq(asked(CALL_EXTEND), asked_before);
	passes(SEC);
	hears(2, LOST);
	passes(200 * MSEC);
	is_free_for(3);
}
END_TEST

START_TEST(extend_moves_the_end_of_its_own_reader)
{
	stores_have_room(3);
	if (_i == 0)
		reads(1);
	stays(2);
	passes(6 * SEC);
	says(2, "EXTEND a");
	ck_assert_int_ge(number_in(hears(2, "OK name=a *"), "valid_ms"), 9000);
	passes(7 * SEC);
	hears_nothing(2);
	says(2, "EXTEND a ttl=2s");
	ck_assert_int_le(number_in(hears(2, "OK name=a *"), "valid_ms"), 2000);
	passes(1700 * MSEC);
	hears_nothing(2);
	passes(300 * MSEC);
	hears(2, LOST);
	ignores(1);
}
END_TEST

/* Nothing more than the shorter ttl is told from the moment when it is asked for. */
START_TEST(a_shorter_end_counts_before_the_stores_have_answered)
{
	stores_have_room(3);
	reads(1);
	stays(2);
	all_feel(MOOD_SILENT);
	says(2, "@e EXTEND a ttl=2s");
	ck_assert_int_le(valid_ms(2), 2000);
	ck_assert_int_ge(valid_ms(1), 9000);
	ignores(1);
	ignores(2);
}
END_TEST

START_TEST(a_writer_gets_the_name_when_the_last_reader_is_over)
{
	two_daemons(3);
	passes(SEC);
	stays(1);
	passes(2 * SEC);
	says(1, "LOCK a mode=shared renew=no owner=later ttl=3s");
	hears(1, "OK *");
	says(_i == 0 ? 3 : 2, "LOCK a wait=1m");
	passes(3 * SEC);
	hears(1, "! LOST name=a fence=* reason=expired owner=later");
	passes(4500 * MSEC);
	hears_nothing(1);
	hears_nothing(_i == 0 ? 3 : 2);
	passes(SEC);
	hears(1, LOST);
	hears(_i == 0 ? 3 : 2, GRANT);
}
END_TEST

START_TEST(a_lease_that_is_about_to_end_is_renewed_for_a_reader_that_joins)
{
	stores_have_room(3);
	stays(1);
	passes(_i == 0 ? 9300 * MSEC : 6 * SEC);
	says(2, _i == 0 ? "LOCK a mode=shared" : "LOCK a mode=shared renew=no");
	passes(MSEC);
	ck_assert_int_ge(number_in(hears(2, "OK name=a *"), "valid_ms"), 9000);
	passes(8 * SEC);
	hears(1, LOST);
	hears_nothing(2);
}
END_TEST

START_TEST(readers_behind_one_that_waits_for_a_renewal_wait_for_it_too)
{
	stores_have_room(3);
	stays(1);
	passes(6 * SEC);
	all_feel(MOOD_SILENT);
	says(2, "LOCK a mode=shared renew=no");
	says(3, "LOCK a mode=shared");
	says(4, "LOCK a mode=shared wait=1m");
	passes(50 * MSEC);
	hears_nothing(2);
	hears_nothing(3);
	if (_i == 1) {
		passes(SEC);
		hears(2, "ERR QUORUM *");
	}
	all_feel(MOOD_WELL);
	passes(1200 * MSEC);
	for (unsigned k = _i == 0 ? 2 : 3; k <= 4; k++)
		hears(k, READER);
}
END_TEST

/* It waits for a renewal when the last who holds the lock goes, and may believe in it for some more seconds. */
START_TEST(a_reader_that_was_about_to_join_is_answered_when_the_lease_closes)
{
	stores_have_room(3);
	stays(1);
	passes(6 * SEC);
	all_feel(MOOD_SILENT);
	says(2, "LOCK a mode=shared renew=no");
	passes(MSEC);
	hears_nothing(2);
	goes(1, GONE_KEEPALIVE);
	passes(1200 * MSEC);
	hears(2, "BUSY *");
	all_feel(MOOD_WELL);
}
END_TEST

START_TEST(risk_is_not_told_to_a_reader_that_nobody_renews)
{
	stores_have_room(3);
	reads(1);
	stays(2);
	feels(0, MOOD_SILENT);
	feels(1, MOOD_SILENT);
	passes(4 * SEC);
	hears(1, "! RISK *");
	hears_nothing(2);
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(1, "! SAFE *");
	hears_nothing(2);
}
END_TEST

START_TEST(a_second_request_of_the_same_owner_changes_no_terms)
{
	stores_have_room(3);
	stays(1);
	passes(5 * SEC);
	says(1, "LOCK a mode=shared renew=yes ttl=20s");
	ck_assert_int_le(number_in(hears(1, "OK name=a fence=* valid_ms=* ttl_ms=10000 count=2 mode=shared"), "valid_ms"), 5000);
	passes(5 * SEC);
	hears(1, LOST);
}
END_TEST

START_TEST(a_conversion_keeps_the_terms)
{
	stores_have_room(3);
	says(1, _i == 0 ? "LOCK a renew=no" : "LOCK a mode=shared renew=no");
	hears(1, "OK *");
	passes(5 * SEC);
	says(1, _i == 0 ? "LOCK a mode=shared" : "LOCK a");
	passes(MSEC);
	ck_assert_int_ge(number_in(hears(1, "OK *"), "valid_ms"), 9000);
	passes(9 * SEC);
	hears_nothing(1);
	passes(SEC);
	hears(1, LOST);
	passes(200 * MSEC);
	is_free_for(2);
}
END_TEST

START_TEST(an_extend_behind_a_conversion_is_answered)
{
	stores_have_room(3);
	stays(1);
	says(1, "@c LOCK a");
	says(1, "@e EXTEND a");
	passes(MSEC);
	hears(1, "@c OK name=a *");
	passes(10 * MSEC);
	hears(1, "@e OK name=a *");
}
END_TEST

START_TEST(lockall_has_readers_that_nobody_renews)
{
	begins_with_delay(3, 5 * SEC);
	passes(SEC);
	says(1, "LOCKALL a b mode=shared renew=no delay=2s");
	hears(1, "\\* name=a fence=* valid_ms=* ttl_ms=10000 count=1 mode=shared");
	hears(1, "\\* name=b fence=* valid_ms=* ttl_ms=10000 count=1 mode=shared");
	hears(1, "OK n=2");
	passes(9900 * MSEC);
	hears(1, LOST);
	hears(1, "! LOST name=b fence=* reason=expired");
	passes(SEC);
	is_refused_to(2);
	reads(2);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(2 * SEC);
	is_free_for(2);
}
END_TEST

/* --- another run --- */

START_TEST(a_restart_keeps_the_end_of_a_reader)
{
	struct secret s;

	stores_have_room(3);
	s = says_hello(1, "grace=1m");
	if (_i == 1)
		reads(2);
	says(1, "LOCK a mode=shared renew=no");
	hears(1, ENDING);
	passes(4 * SEC);
	daemon_returns(0);
	passes(SEC);
	session_opens(3, 0);
	resumes(3, &s);
	ck_assert_int_le(number_in(hears(3, "\\* name=a *"), "valid_ms"), 5000);
	hears(3, "OK session=* n=1");
	says(3, "EXTEND a ttl=6s");
	ck_assert_int_ge(number_in(hears(3, "OK name=a *"), "valid_ms"), 5000);
	passes(5500 * MSEC);
	hears_nothing(3);
	passes(SEC);
	hears(3, LOST);
}
END_TEST

START_TEST(the_lease_is_adopted_for_a_reader_for_all_of_its_time)
{
	struct secret s, other;

	stores_have_room(3);
	s = says_hello(1, "grace=1m");
	other = says_hello(2, "grace=1m");
	says(2, "LOCK a mode=shared");
	hears(2, READER);
	stays(1);
	passes(6 * SEC);
	daemon_returns(0);
	passes(SEC);
	session_opens(3, 0);
	resumes(3, &s);
	hears(3, "\\* name=a *");
	hears(3, "OK session=* n=1");
	session_opens(4, 0);
	resumes(4, &other);
	hears(4, "\\* name=a *");
	hears(4, "OK session=* n=1");
	passes(2 * SEC);
	hears_nothing(3);
	passes(SEC);
	hears(3, LOST);
	passes(20 * SEC);
	hears_nothing(4);
	ck_assert_int_ge(valid_ms(4), 5000);
}
END_TEST

Suite *stay_suite(void)
{
	Suite *s = suite_create("stay");
	TCase *c = tcase_create("stay");

	tcase_add_checked_fixture(c, NULL, cluster_close);
	tcase_add_test(c, the_lease_of_a_reader_that_nobody_renews_ends_by_itself);
	tcase_add_loop_test(c, a_reader_that_nobody_renews_ends_beside_others, 0, 2);
	tcase_add_test(c, a_reader_that_nobody_renews_holds_for_all_of_its_time);
	tcase_add_loop_test(c, extend_moves_the_end_of_its_own_reader, 0, 2);
	tcase_add_test(c, a_shorter_end_counts_before_the_stores_have_answered);
	tcase_add_loop_test(c, a_writer_gets_the_name_when_the_last_reader_is_over, 0, 2);
	tcase_add_loop_test(c, a_lease_that_is_about_to_end_is_renewed_for_a_reader_that_joins, 0, 2);
	tcase_add_loop_test(c, readers_behind_one_that_waits_for_a_renewal_wait_for_it_too, 0, 2);
	tcase_add_test(c, a_reader_that_was_about_to_join_is_answered_when_the_lease_closes);
	tcase_add_test(c, risk_is_not_told_to_a_reader_that_nobody_renews);
	tcase_add_test(c, a_second_request_of_the_same_owner_changes_no_terms);
	tcase_add_loop_test(c, a_conversion_keeps_the_terms, 0, 2);
	tcase_add_test(c, an_extend_behind_a_conversion_is_answered);
	tcase_add_test(c, lockall_has_readers_that_nobody_renews);
	tcase_add_loop_test(c, a_restart_keeps_the_end_of_a_reader, 0, 2);
	tcase_add_test(c, the_lease_is_adopted_for_a_reader_for_all_of_its_time);
	suite_add_tcase(s, c);
	return s;
}
