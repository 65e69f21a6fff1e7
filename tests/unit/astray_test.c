/* SPDX-License-Identifier: BSD-2-Clause */
/* What was under way when a connection broke may be carried out after the release that was sent over the next one: the key does not stay for all that. */
#include "tests/unit/holder.h"

#include <check.h>

#define IN_TIME_US (10 * MSEC) /* of the 50 ms that a command may take */
#define SOON_US    (200 * MSEC)

static void is_left_nowhere(void)
{
	passes(SOON_US);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_msg(!key_is_there(i, "a"), "the key is left at store %u", i);
	ck_assert_int_eq(figure(0, METRIC_DEBTS), 0);
}

START_TEST(an_acquire_that_arrives_after_its_release_leaves_no_key)
{
	stage_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	breaks(2);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(IN_TIME_US);
	arrives(2);
	ck_assert(key_is_there(2, "a"));
	is_left_nowhere();
}
END_TEST

START_TEST(an_acquire_of_a_round_that_was_not_won_leaves_no_key_when_it_arrives)
{
	stage_begin(3);
	key_is_overwritten(0, "a", "other", 5 * SEC);
	key_is_overwritten(1, "a", "other", 5 * SEC);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "BUSY *");
	breaks(2);
	passes(IN_TIME_US);
	serves_astray(2, 1); /* the release that was behind it went with the connection */
	ck_assert(key_is_there(2, "a"));
	passes(SOON_US);
	ck_assert(!key_is_there(2, "a"));
	ck_assert_int_eq(figure(0, METRIC_DEBTS), 0);
}
END_TEST

START_TEST(a_renewal_that_arrives_after_the_release_leaves_no_key)
{
	held_after_lock(3, "LOCK a");
	feels(2, MOOD_SILENT);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	breaks(2);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	ck_assert(!key_is_there(2, "a"));
	passes(IN_TIME_US);
	arrives(2);
	ck_assert(key_is_there(2, "a"));
	is_left_nowhere();
}
END_TEST

/* A renewal has found the key of another there meanwhile. */
START_TEST(an_acquire_that_arrives_where_a_renewal_was_refused_leaves_no_key)
{
	stage_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	key_is_overwritten(2, "a", "other", IN_TIME_US / 2);
	breaks(2);
	says(1, "EXTEND a");
	hears(1, "OK name=a *");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	passes(IN_TIME_US);
	arrives(2);
	ck_assert(key_is_there(2, "a"));
	is_left_nowhere();
}
END_TEST

START_TEST(what_arrives_after_it_was_left_behind_leaves_no_more_than_that)
{
	stage_begin(3);
	feels(2, MOOD_SILENT);
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	breaks(2);
	says(1, "UNLOCK a keep=400ms");
	hears(1, "OK name=a count=0");
	passes(IN_TIME_US);
	arrives(2);
	passes(SOON_US);
	ck_assert_int_le(key_ttl_us(2, "a"), 400 * MSEC);
	passes(400 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	ck_assert_int_eq(figure(0, METRIC_DEBTS), 0);
}
END_TEST

Suite *astray_suite(void)
{
	Suite *s = suite_create("astray");
	TCase *t = tcase_create("release");

	tcase_add_checked_fixture(t, NULL, stage_close);
	tcase_add_test(t, an_acquire_that_arrives_after_its_release_leaves_no_key);
	tcase_add_test(t, an_acquire_of_a_round_that_was_not_won_leaves_no_key_when_it_arrives);
	tcase_add_test(t, a_renewal_that_arrives_after_the_release_leaves_no_key);
	tcase_add_test(t, an_acquire_that_arrives_where_a_renewal_was_refused_leaves_no_key);
	tcase_add_test(t, what_arrives_after_it_was_left_behind_leaves_no_more_than_that);
	suite_add_tcase(s, t);
	return s;
}
