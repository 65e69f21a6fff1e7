/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/session/session.c: how sessions end and what is released when, heartbeats, lines that are read ahead, the order of answers. */
#include "daemon/core/session/session.h"
#include "tests/fixture/held_lock.h"

#include <check.h>
#include <stdio.h>

/* --- which locks are free at once, and which at D --- */

FIXTURE(.teardown = cluster_close)

TEST(quit_frees_at_once)
{
	held_and_waited_for();
	says(1, "QUIT");
	hears(1, "OK");
	ck_assert(hung_up(1));
	hears(2, GRANT);
}

TEST(the_end_of_its_input_frees_at_once)
{
	held_and_waited_for();
	half_closes(1);
	ck_assert(hung_up(1));
	hears(2, GRANT);
}

TEST(a_hang_up_frees_at_once)
{
	held_and_waited_for();
	goes(1, GONE_HANGUP);
	hears(2, GRANT);
}

TEST(a_reset_by_this_host_frees_at_once)
{
	held_and_waited_for();
	goes(1, GONE_RESET);
	hears(2, GRANT);
}

LOOP_TEST(a_session_behind_a_broken_path_keeps_its_lock_until_the_deadline, 3)
{
	static const enum gone how[] = {GONE_RESET, GONE_KEEPALIVE, GONE_OVERFLOW};
	unsigned renewals;

	cluster_begin(3);
	passes(2 * SEC);
	session_opens_from_afar(1, 0);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	passes(4 * SEC);
	renewals = asked(CALL_EXTEND);
	/* Renewed at 3.333 s: D is 13.230 s, on a slow clock 13.330 s. */
	goes(1, how[_i]);
	passes(9320 * MSEC);
	hears_nothing(2);
	ck_assert_uint_eq(asked(CALL_EXTEND), renewals);
	ck_assert_uint_eq(asked(CALL_RELEASE), 0);
	passes(20 * MSEC);
	hears(2, GRANT);
}

TEST(an_overflow_of_a_local_session_waits_for_the_deadline_as_well)
{
	held_and_waited_for();
	goes(1, GONE_OVERFLOW);
	passes(9 * SEC);
	hears_nothing(2);
	passes(SEC);
	hears(2, GRANT);
}

TEST(the_waits_of_a_session_are_withdrawn_when_it_ends)
{
	held_and_waited_for();
	says(3, "LOCK a wait=1m");
	goes(2, GONE_HANGUP);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(3, GRANT);
}

TEST(the_end_of_a_session_grants_it_nothing_more)
{
	cluster_begin(1);
	says(1, "LOCK a owner=t1");
	says(1, "@w LOCK a owner=t2 wait=1m");
	says(2, "LOCK a wait=1m");
	ignores(1);
	goes(1, GONE_HANGUP);
	hears(2, GRANT);
}

TEST(a_missed_heartbeat_is_told_and_frees_at_the_deadline)
{
	held_and_waited_for();
	says(1, "HELLO 1 heartbeat=1s");
	hears(1, "OK proto=1 *");
	passes(900 * MSEC);
	says(1, "PING");
	hears(1, "OK");
	passes(990 * MSEC);
	ck_assert(!hung_up(1));
	passes(20 * MSEC);
	hears(1, "! LOST name=a fence=* reason=idle");
	ck_assert(hung_up(1));
	ck_assert(was_logged("hang-up peer=* reason=heartbeat *"));
	passes(7 * SEC);
	hears_nothing(2);
	passes(2 * SEC);
	hears(2, GRANT);
}

TEST(a_heartbeat_may_be_switched_off_again)
{
	cluster_begin(1);
	says(1, "HELLO 1 heartbeat=1s");
	says(1, "HELLO 1 heartbeat=0");
	ignores(1);
	passes(60 * SEC);
	ck_assert(!hung_up(1));
}

TEST(a_session_without_a_heartbeat_is_never_ended_for_being_idle)
{
	held_and_waited_for();
	passes(3600 * SEC);
	ck_assert(!hung_up(1));
	says(1, "CHECK a");
	hears(1, "OK name=a *");
	says(1, "UNLOCK a");
	ignores(1);
	ignores(2);
}

TEST(a_client_that_the_daemon_does_not_read_is_not_blamed_for_its_silence)
{
	held_and_waited_for();
	says(3, "HELLO 1 heartbeat=1s");
	says(3, "LOCK a wait=1m");
	for (unsigned i = 0; i < 256; i++)
		says(3, "PING");
	ck_assert(!is_read(3));
	passes(5 * SEC);
	ck_assert(!hung_up(3));
	ignores(3);
	ignores(2);
}

/* It looks, and that is all. */
TEST(a_session_of_the_web_page_is_in_no_figure_and_in_no_list)
{
	int64_t sessions, opened, requests;

	held_and_waited_for();
	sessions = figure(0, METRIC_SESSIONS);
	opened = figure(0, METRIC_SESSIONS_OPENED);
	requests = answered(0);
	session_opens_for_the_web(9, 0);
	for (unsigned i = 0; i < 20; i++) {
		says(9, "PING");
		hears(9, "OK");
	}
	ck_assert_int_eq(figure(0, METRIC_SESSIONS), sessions);
	says(1, "LIST sessions");
	hears(1, "* session=*");
	hears(1, "* session=*");
	hears(1, "OK n=2*");
	goes(9, GONE_HANGUP);
	ck_assert_int_eq(figure(0, METRIC_SESSIONS), sessions);
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_OPENED), opened);
	ck_assert_int_lt(answered(0) - requests, 20);
}

/* --- order, and reading ahead --- */

TEST(untagged_requests_are_answered_in_order_and_tagged_ones_overtake)
{
	held_and_waited_for();
	says(3, "LOCK a wait=2s");
	says(3, "PING");
	says(3, "@p PING");
	hears(3, "@p OK");
	hears_nothing(3);
	passes(2 * SEC);
	hears(3, "TIMEOUT *");
	hears(3, "OK");
	ignores(2);
}

/* Its answer carries no tag, so the client would take it for the answer of the first request. */
TEST(a_malformed_tag_is_answered_in_its_turn)
{
	static const char *const line[] = {"@ PING", "@a/b PING", "@a=b PING", "\"@a\" PING", "@\xc3\xa4 PING", "@a\x01 PING", "  @/",
	                                   "@abcdefghijklmnopqrstuvwxyz1234567 PING"};

	cluster_begin(1);
	says(1, "LOCK a");
	for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		says(2, "LOCK a wait=1s");
		says_bytes(2, line[i], strlen(line[i]));
		says(2, " \t@x PING\r");
		hears(2, "@x OK");
		hears_nothing(2);
		passes(SEC);
		hears(2, "TIMEOUT *");
		hears(2, "ERR *");
	}
	ignores(1);
}

TEST(reading_stops_at_256_lines_and_goes_on_when_they_are_served)
{
	held_and_waited_for();
	says(3, "LOCK a wait=2s");
	for (unsigned i = 0; i < 255; i++)
		says(3, "PING");
	ck_assert(is_read(3));
	says(3, "PING");
	ck_assert(!is_read(3));
	says(3, "@p PING");
	hears(3, "@p OK");
	passes(2 * SEC);
	ck_assert(is_read(3));
	hears(3, "TIMEOUT *");
	ck_assert_uint_eq(ignores(3), 256);
	ck_assert_uint_eq(unanswered(3), 0);
}

/* Many that wait, and send on and on. */
TEST(all_sessions_together_are_read_ahead_so_far)
{
	char much[READ_AHEAD_BYTES - 2000];

	cluster_open(1);
	cluster.conf.limits.output = READ_AHEAD_BYTES;
	cluster.conf.limits.line = READ_AHEAD_BYTES;
	daemon_starts(0);
	passes(SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	memset(much, ' ', sizeof(much));
	memcpy(much, "PING", 4);
	for (unsigned k = 2; k < 2 + READ_AHEAD_WHOLE + 1; k++) {
		says(k, "LOCK a wait=10s");
		says_bytes(k, much, sizeof(much));
		ck_assert(is_read(k) == (k < 2 + READ_AHEAD_WHOLE));
		says(k, "PING");
	}
	says(40, "LOCK a wait=10s");
	says(40, "PING");
	ck_assert(!is_read(40));
	says(41, "PING");
	ck_assert(is_read(41));
	passes(11 * SEC);
	for (unsigned k = 2; k < 2 + READ_AHEAD_WHOLE + 1; k++) {
		ck_assert(is_read(k));
		ck_assert_uint_eq(ignores(k), 3);
	}
	says(40, "LOCK a wait=10s");
	says(40, "PING");
	ck_assert(is_read(40));
	ignores(40);
	ignores(41);
}

/* Sessions without number may each have one line, and each may be long. */
TEST(who_has_most_read_ahead_is_cut_off_when_all_have_too_much)
{
	char much[READ_AHEAD_BYTES - 2000];
	const unsigned last = 2 + READ_AHEAD_MOST / 2 + 1;

	cluster_open(1);
	cluster.conf.limits.output = READ_AHEAD_BYTES / 2;
	cluster.conf.limits.line = READ_AHEAD_BYTES;
	daemon_starts(0);
	passes(SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	memset(much, ' ', sizeof(much));
	memcpy(much, "PING", 4);
	for (unsigned k = 2; k < last; k++) {
		says(k, "LOCK a wait=10s");
		says_bytes(k, much, sizeof(much));
		if (k == 5)
			says(k, "PING");
		ck_assert(!hung_up(k));
	}
	says(last, "LOCK a wait=10s");
	says_bytes(last, much, sizeof(much));
	for (unsigned k = 2; k <= last; k++)
		ck_assert_msg(hung_up(k) == (k == 5), "%u", k);
	passes(11 * SEC);
	for (unsigned k = 2; k <= last; k++)
		ck_assert_uint_eq(ignores(k), k == 5 ? 0 : 2);
}

/* What a peer had read ahead, and was served or went with its connection, counts no more. */
TEST(of_the_peers_the_one_that_has_most_read_ahead_is_cut_off)
{
	const struct peer many = {.is_unix = true, .is_local = true, .uid = 1000, .pid = 7, .address = "unix"},
			  one = {.is_unix = true, .is_local = true, .uid = 1001, .pid = 8, .address = "unix"};
	char much[READ_AHEAD_BYTES - 2000];
	const unsigned last = 3 + READ_AHEAD_MOST / 2;

	cluster_open(1);
	cluster.conf.limits.output = READ_AHEAD_BYTES / 2;
	cluster.conf.limits.line = READ_AHEAD_BYTES;
	daemon_starts(0);
	passes(SEC);
	memset(much, ' ', sizeof(much));
	memcpy(much, "PING", 4);
	says(1, "LOCK a");
	hears(1, GRANT);
	session_opens_from(2, 0, &one);
	for (unsigned i = 0; i < READ_AHEAD_MOST; i++) {
		says(2, "LOCK a wait=1ms");
		says_bytes(2, much, sizeof(much));
		passes(SEC);
		ck_assert_uint_eq(ignores(2), 2);
	}
	for (unsigned i = 0; i < READ_AHEAD_MOST; i++) {
		session_opens_from(3, 0, &one);
		says(3, "LOCK a wait=1h");
		says_bytes(3, much, sizeof(much));
		goes(3, GONE_HANGUP);
	}
	says(2, "LOCK a wait=10s");
	says_bytes(2, much, sizeof(much));
	says(2, "PING");
	for (unsigned k = 3; k <= last; k++) {
		session_opens_from(k, 0, &many);
		says(k, "LOCK a wait=10s");
		says_bytes(k, much, sizeof(much));
		if (k == 5)
			says_bytes(k, "", 0);
	}
	for (unsigned k = 2; k <= last; k++)
		ck_assert_msg(hung_up(k) == (k == 5), "%u", k);
	passes(11 * SEC);
	for (unsigned k = 2; k <= last; k++)
		ignores(k);
}

TEST(reading_goes_on_when_half_of_what_was_read_ahead_is_served)
{
	held_and_waited_for();
	for (unsigned i = 0; i < 257; i++)
		says(3, "LOCK a wait=10ms");
	ck_assert(!is_read(3));
	passes(1270 * MSEC);
	ck_assert(!is_read(3));
	passes(30 * MSEC);
	ck_assert(is_read(3));
	passes(2 * SEC);
	ck_assert_uint_eq(ignores(3), 257);
}

/* A request of n bytes: spaces follow its words. */
static void says_padded(unsigned k, const char *words, int n)
{
	char line[128 * 1024];

	ck_assert_int_lt(n, (int)sizeof(line));
	says_bytes(k, line, (size_t)snprintf(line, sizeof(line), "%-*s", n, words));
}

/* With its length each takes 4 KiB: sixteen are kept, and the first is under way. */
TEST(reading_stops_at_64_KiB_and_goes_on_when_half_of_them_are_served)
{
	held_and_waited_for();
	for (unsigned i = 0; i < 16; i++)
		says_padded(3, "LOCK a wait=10ms", 4092);
	ck_assert(is_read(3));
	says_padded(3, "LOCK a wait=10ms", 4092);
	ck_assert(!is_read(3));
	passes(75 * MSEC);
	ck_assert(!is_read(3));
	passes(10 * MSEC);
	ck_assert(is_read(3));
	passes(SEC);
	ck_assert_uint_eq(ignores(3), 17);
}

TEST(a_request_of_more_than_64_KiB_is_kept_whole)
{
	held_and_waited_for();
	says(3, "LOCK a wait=10ms");
	says(3, "PING");
	says_padded(3, "@p PING", 100000);
	hears(3, "@p OK");
	ck_assert(is_read(3));
	says_padded(3, "LOCK a wait=10ms", 100000);
	ck_assert(!is_read(3));
	passes(11 * MSEC);
	hears(3, "TIMEOUT *");
	hears(3, "OK");
	ck_assert(is_read(3));
	passes(10 * MSEC);
	hears(3, "TIMEOUT *");
}

TEST(lines_that_were_too_long_keep_their_place_among_the_others)
{
	held_and_waited_for();
	says(3, "LOCK a wait=2s");
	says(3, "PING");
	says_too_much(3);
	says(3, "PING");
	passes(2 * SEC);
	hears(3, "TIMEOUT *");
	hears(3, "OK");
	hears(3, "ERR TOOLONG *");
	hears(3, "OK");
}

TEST(a_quit_that_was_read_ahead_takes_its_turn)
{
	held_and_waited_for();
	says(3, "LOCK a wait=2s");
	says(3, "QUIT");
	says(3, "PING");
	passes(SEC);
	ck_assert(!hung_up(3));
	passes(SEC);
	hears(3, "TIMEOUT *");
	hears(3, "OK");
	hears_nothing(3);
	ck_assert(hung_up(3));
}
