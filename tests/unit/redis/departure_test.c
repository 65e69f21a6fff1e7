/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/departure.c: which calls are held back for a moment, and for how long. */
#include "daemon/redis/departure.h"

#include <check.h>

static struct departure departure;
static struct instant now;

static void begin(void)
{
	departure_init(&departure);
	now = (struct instant){1000000};
}

static enum departs decide_after(int64_t us, bool release, bool flying)
{
	now = instant_add(now, us);
	departure_collect(&departure, release);
	return departure_decide(&departure, now, flying);
}

static enum departs release_after(int64_t us)
{
	return decide_after(us, true, false);
}

static enum departs acquire_after(int64_t us)
{
	return decide_after(us, false, false);
}

static void pairs(unsigned n, int64_t us)
{
	while (n--) {
		ck_assert_int_eq(release_after(5000), DEPARTS_NOW);
		ck_assert_int_eq(acquire_after(us), DEPARTS_NOW);
	}
}

static void replies(unsigned n, int64_t us)
{
	while (n--)
		departure_reply(&departure, us);
}

START_TEST(releases_wait_for_a_pass_once_eight_in_a_row_were_followed_at_once)
{
	pairs(8, 99);
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
	ck_assert_int_eq(acquire_after(50), DEPARTS_NOW);
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
}
END_TEST

START_TEST(releases_followed_later_do_not_wait)
{
	pairs(7, 99);
	pairs(1, 100);
	pairs(7, 99);
	ck_assert_int_eq(release_after(5000), DEPARTS_NOW);
}
END_TEST

START_TEST(a_release_in_vain_waits_one_pass_and_ends_the_habit)
{
	pairs(8, 10);
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
	ck_assert_int_eq(departure_decide(&departure, now, false), DEPARTS_NOW);
	pairs(8, 10); /* a new habit takes eight again */
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
}
END_TEST

START_TEST(a_pass_that_took_long_ends_the_habit)
{
	pairs(8, 10);
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
	ck_assert_int_eq(acquire_after(100), DEPARTS_NOW);
	ck_assert_int_eq(release_after(5000), DEPARTS_NOW);
}
END_TEST

START_TEST(a_second_release_does_not_prolong_the_wait)
{
	pairs(8, 10);
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
	ck_assert_int_eq(release_after(10), DEPARTS_NOW);
}
END_TEST

START_TEST(a_release_beside_another_call_leaves_with_it)
{
	pairs(8, 10);
	departure_collect(&departure, false);
	ck_assert_int_eq(release_after(5000), DEPARTS_NOW);
}
END_TEST

START_TEST(releases_that_follow_each_other_count_as_well)
{
	ck_assert_int_eq(release_after(5000), DEPARTS_NOW);
	for (unsigned i = 0; i < 7; i++)
		ck_assert_int_eq(release_after(20), DEPARTS_NOW);
	ck_assert_int_eq(release_after(20), DEPARTS_NEXT_PASS);
}
END_TEST

START_TEST(a_call_that_waits_for_the_reply_to_a_release_has_followed_it_at_once)
{
	replies(1, 50);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_int_eq(release_after(5000), DEPARTS_NOW);
		ck_assert_int_eq(decide_after(10, false, true), DEPARTS_WITH_REPLY);
		now = instant_add(now, 200);
		ck_assert_int_eq(departure_decide(&departure, now, false), DEPARTS_NOW);
	}
	ck_assert_int_eq(release_after(5000), DEPARTS_NEXT_PASS);
}
END_TEST

START_TEST(behind_a_command_in_flight_a_call_waits_for_the_reply_of_a_server_that_is_near)
{
	ck_assert_int_eq(decide_after(10, false, true), DEPARTS_NOW); /* nothing is known of it */
	replies(1, 100);
	ck_assert_int_eq(decide_after(10, false, true), DEPARTS_NOW);
	replies(1, 99);
	ck_assert_int_eq(decide_after(10, false, true), DEPARTS_WITH_REPLY);
	ck_assert_int_eq(decide_after(10, true, true), DEPARTS_WITH_REPLY);
	ck_assert_int_eq(departure_decide(&departure, now, false), DEPARTS_NOW);
}
END_TEST

START_TEST(a_server_that_answers_late_from_now_on_is_near_no_more)
{
	replies(1, 50);
	replies(63, 700); /* its block, and the one behind it */
	ck_assert_int_eq(decide_after(10, false, true), DEPARTS_WITH_REPLY);
	replies(1, 700);
	ck_assert_int_eq(decide_after(10, false, true), DEPARTS_NOW);
	replies(1, 50);
	ck_assert_int_eq(decide_after(10, false, true), DEPARTS_WITH_REPLY);
}
END_TEST

START_TEST(releases_that_waited_for_a_reply_do_not_wait_again)
{
	pairs(8, 10);
	replies(1, 50);
	ck_assert_int_eq(decide_after(5000, true, false), DEPARTS_NEXT_PASS);
	ck_assert_int_eq(decide_after(10, true, true), DEPARTS_WITH_REPLY);
	ck_assert_int_eq(departure_decide(&departure, now, false), DEPARTS_NOW);
}
END_TEST

Suite *departure_suite(void)
{
	Suite *s = suite_create("departure");
	TCase *t = tcase_create("departure");

	tcase_add_checked_fixture(t, begin, NULL);
	tcase_add_test(t, releases_wait_for_a_pass_once_eight_in_a_row_were_followed_at_once);
	tcase_add_test(t, releases_followed_later_do_not_wait);
	tcase_add_test(t, a_release_in_vain_waits_one_pass_and_ends_the_habit);
	tcase_add_test(t, a_pass_that_took_long_ends_the_habit);
	tcase_add_test(t, a_second_release_does_not_prolong_the_wait);
	tcase_add_test(t, a_release_beside_another_call_leaves_with_it);
	tcase_add_test(t, releases_that_follow_each_other_count_as_well);
	tcase_add_test(t, a_call_that_waits_for_the_reply_to_a_release_has_followed_it_at_once);
	tcase_add_test(t, behind_a_command_in_flight_a_call_waits_for_the_reply_of_a_server_that_is_near);
	tcase_add_test(t, a_server_that_answers_late_from_now_on_is_near_no_more);
	tcase_add_test(t, releases_that_waited_for_a_reply_do_not_wait_again);
	suite_add_tcase(s, t);
	return s;
}
