/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, however many LOCKALLs and LOCKANYs are answered at one moment, and whatever they hold. */
#include "tests/fixture/timed_story.h"

FIXTURE(.seconds = 60)

static char long_name[450];

/* Session 2 has so many requests, each of which waits for another name of session 1. */
static void wait_for_one_each(const char *verb, unsigned groups, const char *wait)
{
	char line[590];

	memset(long_name, 'n', sizeof(long_name) - 1);
	sessions_open(1, 3);
	for (unsigned i = 0; i < groups; i++) {
		snprintf(line, sizeof(line), "LOCK %s%u", long_name, i);
		says(1, line);
	}
	for (unsigned i = 0; i < groups; i++) {
		snprintf(line, sizeof(line), "@%u %s %s%u wait=%s", i, verb, long_name, i, wait);
		says(2, line);
	}
	w.longest_ns = 0;
}

static const char *const verbs[] = {"LOCKALL", "LOCKANY"};
static const char *verb;

static void all_time_out(void)
{
	wait_for_one_each(verb, 1000, "10s");
	lone_service_pass(&w, 11 * SEC);
	ck_assert_ptr_nonnull(strstr(heard, " TIMEOUT name="));
}

LOOP_TEST(many_groups_of_a_session_time_out, 2)
{
	verb = verbs[_i];
	measure(all_time_out);
}

static void session_gets_locks(void)
{
	wait_for_one_each(verb, 4000, "1h");
	for (unsigned i = 0; i < 50; i++)
		says_number(2, "LOCK free", i, "");
	ck_assert_ptr_nonnull(strstr(heard, "OK name=free49"));
}

LOOP_TEST(a_session_with_many_groups_gets_locks, 2)
{
	verb = verbs[_i];
	measure(session_gets_locks);
}

/* What session 1 leaves goes to session 2, by LOCKs, for half of which other requests of the same owner wait as well. */
static void session_gets_what_its_groups_want(void)
{
	char line[100];

	sessions_open(1, 3);
	holds_locks(1, 1000);
	for (unsigned i = 0; i < 500; i++) {
		snprintf(line, sizeof(line), "@%u LOCK s1/%u wait=1h", i, i);
		says(2, line);
	}
	for (unsigned i = 0; i < 500; i++) {
		snprintf(line, sizeof(line), "@g%u %s s1/%u wait=1h", i, verb, i);
		says(2, line);
	}
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	for (unsigned i = 0; i < 500; i++)
		says_number(2, "CHECK s1/", i, "");
	ck_assert_msg(strstr(heard, "OK name=s1/499") && strstr(heard, "count=2"), "%s", heard);
}

LOOP_TEST(a_session_gets_what_many_of_its_groups_wait_for, 2)
{
	verb = verbs[_i];
	measure(session_gets_what_its_groups_want);
}

static void all_get_one_name(void)
{
	char line[100];

	sessions_open(1, 2);
	holds_locks(1, 1);
	says(2, "@first LOCK s1/0 wait=1h");
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "@g%u %s s1/0 wait=1h", i, verb);
		says(2, line);
	}
	w.longest_ns = 0;
	says(1, "UNLOCK s1/0");
	lone_service_pass(&w, SEC / 100);
	says(2, "CHECK s1/0");
	ck_assert_ptr_nonnull(strstr(heard, "count=1001"));
}

LOOP_TEST(an_owner_gets_a_name_for_which_many_of_its_groups_wait, 2)
{
	verb = verbs[_i];
	measure(all_get_one_name);
}

/* Each has 63 names, and waits for one more. */
static void holders_time_out(void)
{
	sessions_open(1, 21);
	says(1, "LOCK zz");
	for (unsigned k = 2; k <= 21; k++)
		for (unsigned i = 0; i < 15; i++) {
			char line[600];
			size_t n = (size_t)snprintf(line, sizeof(line), "@%u LOCKALL zz wait=10s owner=o%u", i, i);

			for (unsigned j = 0; j < 63; j++)
				n += (size_t)snprintf(line + n, sizeof(line) - n, " %x/%x/%x", k, i, j);
			says(k, line);
		}
	w.longest_ns = 0;
	lone_service_pass(&w, 11 * SEC);
	ck_assert_ptr_nonnull(strstr(heard, " TIMEOUT name=zz"));
}

TEST(many_groups_time_out_that_hold_many_names)
{
	measure_within(holders_time_out, MOST_NS / 2);
}

/* 780 requests, of 63 names that nobody else asks for and zz. */
static void many_ask_for_many_and_zz(void)
{
	sessions_open(2, 14);
	for (unsigned k = 2; k <= 14; k++)
		for (unsigned i = 0; i < 60; i++) {
			char line[600];
			size_t n = (size_t)snprintf(line, sizeof(line), "@%u LOCKALL zz", i);

			for (unsigned j = 0; j < 63; j++)
				n += (size_t)snprintf(line + n, sizeof(line) - n, " %x/%x/%x", k, i, j);
			says(k, line);
		}
}

/* Each has 63 names, and asks for zz when the store goes down. */
static void holders_are_refused(void)
{
	lone_service_slow(&w, true);
	many_ask_for_many_and_zz();
	while (TAILQ_FIRST(&w.held) != TAILQ_LAST(&w.held, held_calls))
		lone_service_answer(&w);
	w.longest_ns = 0;
	lone_service_store(&w, false);
	lone_service_pass(&w, SEC);
	ck_assert_msg(strstr(heard, "ERR QUORUM") != NULL, "%s", heard);
}

TEST(many_groups_are_refused_that_hold_many_names)
{
	measure(holders_are_refused);
}

static void priority_passes_crowds(void)
{
	char line[600] = "LOCKANY wait=1h priority=9";

	w.conf.limits.waiting = 16384;
	service_reload(w.service, &w.conf);
	sessions_open(1, 64);
	for (unsigned i = 0; i < 64; i++) {
		says_number(1, "LOCK n", i, "");
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " n%u", i);
	}
	for (uint64_t k = 2; k <= 63; k++)
		for (unsigned i = 0; i < 1000; i++) {
			char one[100];

			snprintf(one, sizeof(one), "@%u LOCK n%u wait=1h owner=o%u", i, i % 64, i);
			says(k, one);
		}
	w.longest_ns = 0;
	says(64, line);
	lone_service_pass(&w, SEC);
}

TEST(a_request_for_many_names_passes_the_crowds_of_all)
{
	measure_within(priority_passes_crowds, MOST_NS / 2);
}
