/* SPDX-License-Identifier: BSD-2-Clause */
/* No step of the service is long, however many permits a session has or waits for, and however many wait for those of one semaphore. */
#include "daemon/core/session/semaphore.h"
#include "tests/fixture/timed_story.h"

FIXTURE(.seconds = 60)

static void permits_end_at_once(void)
{
	sessions_open(1, 2);
	for (unsigned i = 0; i < 500; i++)
		says_number(1, "ACQUIRE s", i, " limit=1");
	for (unsigned i = 0; i < 500; i++) {
		char line[100];

		snprintf(line, sizeof(line), "@%u ACQUIRE s%u limit=1 wait=1h", i, i);
		says(2, line);
	}
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_with_many_permits_ends)
{
	measure(permits_end_at_once);
}

static void permits_of_as_many_end(void)
{
	sessions_open(1, 1);
	for (unsigned i = 0; i < 1000; i++)
		says_number(1, "ACQUIRE s", i, " limit=1");
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_ends_with_permits_of_as_many_semaphores)
{
	measure(permits_of_as_many_end);
}

static void permits_of_one_end(void)
{
	sessions_open(1, 2);
	for (unsigned i = 0; i < 500; i++)
		says_number(1, "ACQUIRE s limit=500 owner=o", i, "");
	for (unsigned i = 0; i < 500; i++) {
		char line[100];

		snprintf(line, sizeof(line), "@%u ACQUIRE s limit=500 owner=p%u wait=1h", i, i);
		says(2, line);
	}
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

/* Others wait, or ask for the last slot: each permit that is given back stirs them. */
static void thousands_of_permits_end(unsigned semaphores, unsigned limit)
{
	char line[100];

	sessions_open(1, 2);
	for (unsigned m = 0; m < semaphores; m++)
		for (unsigned i = 0; i + 1 < limit; i++) {
			snprintf(line, sizeof(line), "ACQUIRE s%u limit=%u owner=o%u", m, limit, i);
			says(1, line);
		}
	lone_service_pass(&w, SEC);
	lone_service_slow(&w, true);
	for (unsigned m = 0; m < semaphores; m++)
		for (unsigned i = 0; i < 60; i++) { /* one more would be refused, and those before it with it */
			snprintf(line, sizeof(line), "@%uof%u ACQUIRE s%u limit=%u owner=p%u", m, i, m, limit, i);
			says(2, line);
		}
	w.longest_ns = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC);
}

static void thousand_permits_end(void)
{
	thousands_of_permits_end(1, 1024);
}

static void two_thousand_permits_end(void)
{
	thousands_of_permits_end(2, 1024);
}

LOOP_TEST(a_session_with_thousands_of_permits_ends, 2)
{
	static void (*const story[])(void) = {thousand_permits_end, two_thousand_permits_end};

	measure(story[_i]);
}

TEST(a_session_with_all_permits_ends)
{
	measure(permits_of_one_end);
}

static void waits_for_permits_end(void)
{
	sessions_open(1, 2);
	for (unsigned i = 0; i < 500; i++)
		says_number(1, "ACQUIRE s limit=500 owner=o", i, "");
	for (unsigned i = 0; i < 1024; i++) {
		char line[100];

		snprintf(line, sizeof(line), "@%u ACQUIRE s limit=500 owner=p%u wait=1h", i, i);
		says(2, line);
	}
	w.longest_ns = 0;
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_that_waits_for_many_permits_ends)
{
	measure(waits_for_permits_end);
}

/* However many wait before and behind them. */
static void permits_leave_a_long_line(void)
{
	w.conf.limits.output = 7 << 20;
	service_reload(w.service, &w.conf);
	sessions_open(1, 42);
	says(41, "ACQUIRE s limit=1");
	for (uint64_t k = 1; k <= 40; k++)
		for (unsigned i = 0; i < 1000; i++)
			says_number(k, "@", i, " ACQUIRE s limit=1 wait=1h");
	w.longest_ns = 0;
	says(42, "SHOW s");
	says(42, "@p ACQUIRE s limit=1 wait=1h priority=9");
	says(3, "CANCEL @500");
	lone_service_gone(&w, 2, GONE_HANGUP);
	lone_service_pass(&w, SEC);
}

TEST(a_session_leaves_a_long_line_for_permits)
{
	measure(permits_leave_a_long_line);
}

/* Sessions 10 to 40 have all permits of so many semaphores. Of each, sessions 1 and 5 wait for one, in this order; of eight more sessions 2 and 6 … */
static void lines_of_full_semaphores(unsigned semaphores, unsigned limit)
{
	char line[100];

	sessions_open(1, 40);
	for (unsigned m = 0; m < semaphores; m++)
		for (unsigned i = 0; i < limit; i++) {
			snprintf(line, sizeof(line), "ACQUIRE s%u limit=%u", m, limit);
			says(10 + m * limit / LIMIT_MOST, line);
		}
	for (uint64_t k = 1; k <= 5; k += 4)
		for (unsigned m = 0; m < semaphores; m++) {
			snprintf(line, sizeof(line), "@%u ACQUIRE s%u limit=%u wait=10s", m, m, limit);
			says(k + m * limit / SLOTS_OF_SESSION, line);
		}
	w.longest_ns = 0;
}

static void first_of_many_lines(unsigned semaphores, unsigned limit)
{
	lines_of_full_semaphores(semaphores, limit);
	lone_service_gone(&w, 1, GONE_HANGUP);
	lone_service_pass(&w, SEC);
	lone_service_pass(&w, 10 * SEC);
}

static void first_of_long_lines(void)
{
	first_of_many_lines(8, 1024);
}

static void first_of_short_lines(void)
{
	first_of_many_lines(1024, 1);
}

static void waits_of_first_end_at_once(void)
{
	lines_of_full_semaphores(30, 1024);
	lone_service_pass(&w, 11 * SEC);
}

static void first_are_drained(void)
{
	lines_of_full_semaphores(30, 1024);
	says(1, "DRAIN");
	lone_service_pass(&w, SEC);
}

LOOP_TEST(some_are_the_first_of_many_lines, 4)
{
	static void (*const story[])(void) = {first_of_long_lines, first_of_short_lines, waits_of_first_end_at_once, first_are_drained};

	measure(story[_i]);
}

static void keeps_last_of_first(void *context, uint64_t session, struct span bytes)
{
	(void)context;
	if (session == 1)
		snprintf(heard, sizeof(heard), "%.*s", (int)bytes.n, bytes.p);
}

static void stands_in_one_line_more(void)
{
	lines_of_full_semaphores(SLOTS_OF_SESSION / LIMIT_MOST, LIMIT_MOST);
	w.sent = keeps_last_of_first;
	for (unsigned i = 0; i < LIMIT_MOST; i++)
		says(9, "ACQUIRE t limit=1024");
	heard[0] = '\0';
	says(1, "@other ACQUIRE t limit=1024 wait=1h");
	ck_assert_ptr_nonnull(strstr(heard, "@other ERR LIMIT a session may be the first in line for at most 8192 slots of semaphores"));
	heard[0] = '\0';
	says(5, "@other ACQUIRE t limit=1024 wait=1h"); /* it stands behind session 1 in all other lines, and has nothing there */
	says(1, "@second ACQUIRE t limit=1024 wait=1h");
	ck_assert_str_eq(heard, "");
	says(1, "CANCEL @0");
	says(5, "CANCEL @other");
	says(9, "RELEASE t");
	ck_assert_ptr_nonnull(strstr(heard, "@second OK "));
}

TEST(a_session_is_the_first_in_line_for_so_many_slots_and_no_more)
{
	measure(stands_in_one_line_more);
}

/* The clients release none of them. */
static void lose_permits(unsigned times)
{
	sessions_open(1, 4 + times);
	for (unsigned t = 0; t < times; t++) {
		for (unsigned i = 0; i < 160; i++)
			says_number(4 + t, "ACQUIRE s limit=160 ttl=1s owner=o", i, "");
		says(1, "BREAK s");
		lone_service_pass(&w, 2 * SEC);
	}
	for (unsigned i = 0; i < 160; i++)
		says_number(2, "ACQUIRE s limit=160 owner=o", i, "");
}

static void waits_end_beside_lost_permits(void)
{
	lose_permits(60);
	for (unsigned i = 0; i < 1000; i++)
		says_number(3, "@", i, " ACQUIRE s limit=160 wait=2s");
	w.longest_ns = 0;
	w.now = instant_add(w.now, 3 * SEC);
	lone_service_pass(&w, SEC);
	says(3, "ACQUIRE s limit=160");
}

TEST(waits_for_a_permit_end_beside_many_lost_ones)
{
	measure(waits_end_beside_lost_permits);
}

static char long_name[491];
static unsigned left; /* of the permits that are given back at once */

static void says_of_long_name(const char *verb, const char *fields)
{
	char line[800];
	size_t n = (size_t)snprintf(line, sizeof(line), "%s %s owner=%.255s %s", verb, long_name, long_name, fields);

	ck_assert_int_eq(lone_service_line(&w, 1, line, n), 0);
}

static void permits_are_given_back(void)
{
	char count[32];

	memset(long_name, 's', sizeof(long_name) - 1);
	sessions_open(1, 1);
	says(1, "HELLO 1 grace=30s");
	for (unsigned i = 0; i < LIMIT_MOST; i++)
		says_of_long_name("ACQUIRE", "limit=1024");
	lone_service_pass(&w, SEC);
	snprintf(count, sizeof(count), "count=%u", left);
	w.longest_ns = 0;
	says_of_long_name("RELEASE", count);
	ck_assert_msg(strstr(heard, "OK name=s") && strstr(heard, count), "%s", heard);
	lone_service_pass(&w, SEC);
}

LOOP_TEST(many_permits_of_an_owner_are_given_back_at_once, 2)
{
	left = (unsigned)_i;
	measure(permits_are_given_back);
}
