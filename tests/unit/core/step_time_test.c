/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, whatever crowds wait, watch, or wait for each other. */
#include "tests/fixture/timed_story.h"

/* --- crowds that wait for one name ------------------------------------------------------------------------------------ */

static void writers_follow(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 250, "wait=1h");
	w.longest_ns = 0;
	for (uint64_t k = 1; k < 20; k++) {
		says(k, "UNLOCK x");
		says(k, "PING");
	}
}

START_TEST(a_lock_goes_on_to_the_next_of_a_crowd)
{
	measure(writers_follow);
}
END_TEST

static void readers_come_in(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 250, "mode=shared wait=1h");
	w.longest_ns = 0;
	says(1, "UNLOCK x");
	lone_service_pass(&w, SEC / 10);
}

START_TEST(a_crowd_of_readers_comes_in)
{
	measure(readers_come_in);
}
END_TEST

static void crowd_gives_up(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 100, "wait=10s");
	w.longest_ns = 0;
	w.now = instant_add(w.now, 11 * SEC);
	lone_service_pass(&w, SEC);
}

START_TEST(a_crowd_gives_up_at_once)
{
	measure(crowd_gives_up);
}
END_TEST

static void priority_passes_crowd(void)
{
	sessions_open(1, 101);
	says(1, "LOCK x");
	crowd_waits(2, 101, 250, "wait=1h");
	w.longest_ns = 0;
	for (uint64_t k = 2; k < 50; k++)
		says(k, "@p LOCK x wait=1h priority=9");
}

START_TEST(a_priority_passes_a_crowd)
{
	measure(priority_passes_crowd);
}
END_TEST

static void crowd_is_watched(void)
{
	sessions_open(1, 101);
	says(101, "WATCH");
	says(1, "LOCK x");
	crowd_waits(2, 100, 250, "wait=1h");
	w.longest_ns = 0;
	for (uint64_t k = 2; k < 50; k++)
		says(k, "@w LOCK x wait=1h");
}

START_TEST(a_crowd_grows_that_is_watched)
{
	measure(crowd_is_watched);
}
END_TEST

/* --- watchers --------------------------------------------------------------------------------------------------------- */

static void many_watch(void)
{
	sessions_open(1, 5001);
	for (uint64_t k = 2; k <= 5001; k++)
		says_number(k, "WATCH x", 0, "");
	for (uint64_t k = 2; k <= 80; k++)
		for (unsigned i = 0; i < 64; i++)
			says_number(k, "WATCH y", i, "");
	w.longest_ns = 0;
	for (unsigned i = 0; i < 20; i++) {
		says(1, "LOCK x0");
		says(1, "UNLOCK x0");
	}
}

START_TEST(many_sessions_watch)
{
	measure(many_watch);
}
END_TEST

/* --- owners that wait for each other ---------------------------------------------------------------------------------- */

static void owners_wait(void)
{
	sessions_open(1, 4);
	for (uint64_t k = 1; k <= 4; k++)
		for (unsigned i = 0; i < 125; i++) {
			says_number(k, "ACQUIRE p limit=500 owner=", i, "");
			says_number(k, "ACQUIRE q limit=500 owner=", i, "");
		}
	w.longest_ns = 0;
	for (uint64_t k = 1; k <= 4; k++)
		for (unsigned i = 0; i < 125; i++) {
			char line[100];

			snprintf(line, sizeof(line), "@%u ACQUIRE %s limit=500 owner=%u wait=1h", i, i % 2 ? "q" : "p", i);
			says(k, line);
		}
	for (unsigned i = 0; i < 10; i++)
		lone_service_pass(&w, SEC);
}

START_TEST(many_owners_wait_for_each_other)
{
	measure(owners_wait);
}
END_TEST

Suite *step_time_suite(void)
{
	Suite *s = suite_create("step_time");
	TCase *t = tcase_create("step_time");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_lock_goes_on_to_the_next_of_a_crowd);
	tcase_add_test(t, a_crowd_of_readers_comes_in);
	tcase_add_test(t, a_crowd_gives_up_at_once);
	tcase_add_test(t, a_priority_passes_a_crowd);
	tcase_add_test(t, a_crowd_grows_that_is_watched);
	tcase_add_test(t, many_sessions_watch);
	tcase_add_test(t, many_owners_wait_for_each_other);
	suite_add_tcase(s, t);
	return s;
}
