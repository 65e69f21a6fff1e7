/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/watch.c: events that a step has no time to tell. */
#include "tests/fixture/lone_service.h"

#include <check.h>
#include <stdio.h>

static struct lone_service w;
static char told[4][20]; /* the names that each session was told of, one letter each */
static unsigned events[5], missed[5];

static void notes(void *context, uint64_t session, struct span bytes)
{
	char line[400], name;
	size_t n = strlen(told[session]);

	(void)context;
	snprintf(line, sizeof(line), "%.*s", (int)bytes.n, bytes.p);
	events[session] += sscanf(line, "! EVENT kind=released name=%c", &name) == 1;
	if (sscanf(line, "! EVENT kind=missed count=%u", &missed[session]) == 1)
		name = '?';
	else if (sscanf(line, "! EVENT kind=released name=%c", &name) != 1)
		return;
	if (n + 1 < sizeof(told[session]))
		told[session][n] = name;
}

static void says(uint64_t session, const char *line)
{
	char copy[400];
	size_t n = (size_t)snprintf(copy, sizeof(copy), "%s", line);

	ck_assert_int_eq(lone_service_line(&w, session, copy, n), 0);
}

/* Session 1 ends, which held five names that session 2 watches. A step tells of one. */
static void ends_watched(void)
{
	memset(told, 0, sizeof(told));
	lone_service_init(&w);
	w.sent = notes;
	lone_service_settle(&w);
	for (uint64_t k = 1; k <= 3; k++)
		ck_assert_int_eq(lone_service_open(&w, k), 0);
	says(2, "WATCH");
	says(1, "LOCK a");
	says(1, "LOCK b");
	says(1, "LOCK c");
	says(1, "LOCK d");
	says(1, "LOCK e");
	lone_service_pass(&w, SEC);
	w.conf.work = 1;
	service_reload(w.service, &w.conf);
	lone_service_slow(&w, true);
	lone_service_gone(&w, 1, GONE_HANGUP);
	ck_assert_str_eq(told[2], "a");
}

TEST(events_that_a_step_has_no_time_for_are_told_in_order)
{
	ends_watched();
	says(3, "PING");
	ck_assert_str_eq(told[2], "ab");
	says(2, "UNWATCH");
	ck_assert_str_eq(told[2], "abc");
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "abc");
	lone_service_release(&w);
}

/* The lock of session 1, which ends. */
static void event_is_told_to_2_and_not_to_3(void)
{
	memset(told, 0, sizeof(told));
	lone_service_init(&w);
	w.sent = notes;
	lone_service_settle(&w);
	for (uint64_t k = 1; k <= 3; k++)
		ck_assert_int_eq(lone_service_open(&w, k), 0);
	says(2, "WATCH");
	says(3, "WATCH");
	says(1, "LOCK a");
	lone_service_pass(&w, SEC);
	memset(told, 0, sizeof(told));
	w.conf.work = 1;
	service_reload(w.service, &w.conf);
	lone_service_slow(&w, true);
	lone_service_gone(&w, 1, GONE_HANGUP);
	ck_assert_str_eq(told[2], "a");
	ck_assert_str_eq(told[3], "");
}

TEST(those_whom_a_step_had_no_time_for_are_told_of_the_same_event_once)
{
	event_is_told_to_2_and_not_to_3();
	says(2, "PING");
	ck_assert_str_eq(told[2], "a");
	ck_assert_str_eq(told[3], "a");
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "a");
	ck_assert_str_eq(told[3], "a");
	lone_service_release(&w);
}

TEST(a_later_event_is_told_behind_them)
{
	ends_watched();
	lone_service_slow(&w, false);
	says(3, "LOCK f");
	says(3, "UNLOCK f");
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "abcdef");
	lone_service_release(&w);
}

TEST(a_session_that_begins_to_watch_is_not_told_of_what_was_before)
{
	ends_watched();
	w.now = instant_add(w.now, MSEC);
	says(3, "WATCH");
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "abcde");
	ck_assert_str_eq(told[3], "");
	lone_service_release(&w);
}

TEST(a_prefix_that_is_watched_again_brings_nothing_of_what_was_before)
{
	ends_watched();
	says(2, "UNWATCH");
	says(2, "WATCH");
	ck_assert_str_eq(told[2], "ab");
	lone_service_slow(&w, false);
	says(3, "LOCK f");
	says(3, "UNLOCK f");
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "abf");
	lone_service_release(&w);
}

TEST(one_more_prefix_brings_nothing_of_what_was_before)
{
	ends_watched();
	says(3, "WATCH z");
	says(3, "WATCH e");
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "abcde");
	ck_assert_str_eq(told[3], "");
	lone_service_release(&w);
}

/* A session ends with more locks than there is room for in what the next steps tell. */
TEST(who_watches_hears_how_many_events_were_missed)
{
	enum { LOCKS = 12000 };
	char line[400];

	memset(told, 0, sizeof(told));
	memset(events, 0, sizeof(events));
	memset(missed, 0, sizeof(missed));
	lone_service_init(&w);
	w.sent = notes;
	w.conf.limits.locks = LOCKS;
	w.conf.limits.output = 0;
	service_reload(w.service, &w.conf);
	lone_service_settle(&w);
	for (uint64_t k = 1; k <= 3; k++)
		ck_assert_int_eq(lone_service_open(&w, k), 0);
	says(2, "WATCH x");
	for (unsigned i = 0; i < LOCKS; i++) {
		snprintf(line, sizeof(line), "LOCK x%u note=%0250u", i, i);
		says(1, line);
	}
	lone_service_slow(&w, true);
	lone_service_gone(&w, 1, GONE_HANGUP);
	w.now = instant_add(w.now, MSEC);
	says(3, "WATCH y");
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC);
	ck_assert_uint_gt(events[2], 6000);
	ck_assert_uint_eq(events[2] + missed[2], LOCKS);
	ck_assert_uint_eq(missed[3], 0);
	missed[2] = 0;
	says(3, "LOCK xy");
	says(3, "UNLOCK xy");
	lone_service_pass(&w, SEC);
	ck_assert_uint_eq(missed[2], 0);
	ck_assert_str_eq(told[2] + strlen(told[2]) - 1, "x");
	lone_service_release(&w);
}

/* Nobody can tell the process that goes on in a restart for whom the events were that were not told. */
TEST(what_is_left_is_missed_behind_a_restart)
{
	ends_watched();
	says(3, "PING");
	memset(missed, 0, sizeof(missed));
	ck_assert(lone_service_hand_over(&w));
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC);
	ck_assert_uint_eq(missed[2], 3);
	says(3, "LOCK f");
	says(3, "UNLOCK f");
	ck_assert_str_eq(told[2], "ab?f");
	lone_service_release(&w);
}

TEST(who_was_told_before_a_restart_has_missed_nothing)
{
	memset(missed, 0, sizeof(missed));
	event_is_told_to_2_and_not_to_3();
	ck_assert(lone_service_hand_over(&w));
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC);
	ck_assert_str_eq(told[2], "a");
	ck_assert_str_eq(told[3], "?");
	ck_assert_uint_eq(missed[3], 1);
	lone_service_release(&w);
}

TEST(what_is_left_goes_with_the_service)
{
	ends_watched();
	lone_service_release(&w);
}

static unsigned lines;

static void counts(void *context, uint64_t session, struct span bytes)
{
	(void)context;
	(void)session;
	lines += span_starts(bytes, SPAN("! EVENT"));
}

/* Session 1 ends, which held 64 names that 256 sessions watch. Returns how many lines the step told. */
static unsigned tells_of_names(const char *begin)
{
	char line[600];
	unsigned first;

	lone_service_init(&w);
	w.sent = counts;
	lone_service_settle(&w);
	for (uint64_t k = 1; k <= 257; k++)
		ck_assert_int_eq(lone_service_open(&w, k), 0);
	for (unsigned i = 0; i < 64; i++) {
		size_t n = (size_t)snprintf(line, sizeof(line), "LOCK %s%u", begin, i);

		ck_assert_int_eq(lone_service_line(&w, 1, line, n), 0);
	}
	for (uint64_t k = 2; k <= 257; k++)
		says(k, "WATCH x");
	lone_service_slow(&w, true);
	lines = 0;
	lone_service_gone(&w, 1, GONE_HANGUP);
	first = lines;
	lone_service_slow(&w, false);
	lone_service_pass(&w, SEC);
	ck_assert_uint_eq(lines, 64 * 256);
	lone_service_release(&w);
	return first;
}

/* The lines of a step are written to as many buffers in the same pass. */
TEST(a_step_tells_some_2048_lines)
{
	unsigned n = tells_of_names("x");

	ck_assert_uint_gt(n, 1024);
	ck_assert_uint_le(n, 2048);
}

TEST(a_step_tells_fewer_long_lines)
{
	static char name[500];

	memset(name, 'x', sizeof(name) - 1);
	ck_assert_uint_le(tells_of_names(name), 1400);
}
