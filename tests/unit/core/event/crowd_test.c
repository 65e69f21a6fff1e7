/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/origin.c, engine.c, grant.c: how many requests of a peer, and of all, wait or hold names with others. */
#include "daemon/core/event/origin.h"
#include "tests/fixture/resumable.h"

#include <check.h>
#include <string.h>

#define OTHER 30 /* the session of another peer */
#define ROOT  32

static const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};
static const struct peer root = {.is_unix = true, .is_local = true, .uid = 0, .pid = 8, .address = "unix"};

#define WAITS_EACH 2 /* limits.waiting */
#define CROWD      (64 * WAITS_EACH)
#define CROWD_ONE  " ERR LIMIT the sessions of one peer may have at most 32 requests that wait, and holds beside others (16 times limits.waiting)"
#define CROWD_ALL  " ERR LIMIT all sessions together may have at most 128 requests that wait, and holds beside others (64 times limits.waiting)"

static void few_may_wait(void)
{
	cluster_open(1);
	cluster.conf.limits.waiting = WAITS_EACH;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(OTHER, 0, &other);
	session_opens_from(ROOT, 0, &root);
	says(ROOT, "LOCK h");
	hears(ROOT, "OK *");
	says(ROOT, "ACQUIRE s limit=1");
	hears(ROOT, "OK *");
	says(ROOT, "RATE r limit=1 per=1h");
	hears(ROOT, "OK *");
}

/* How many of these requests wait. */
static unsigned waits_of(unsigned from, unsigned sessions, const char *request, const char *refusal)
{
	unsigned n = 0;

	for (unsigned k = from; k < from + sessions; k++) {
		for (unsigned i = 0; i < WAITS_EACH; i++) {
			const char *told;

			says(k, "@%u %s", i, request);
			told = next_line(k);
			n += !told;
			if (told)
				ck_assert_ptr_nonnull(strstr(told, refusal));
		}
	}
	return n;
}

static const char *const waits[] = {"LOCK h wait=1h", "LOCK h wait=1h mode=shared", "LOCKALL h x wait=1h", "LOCKANY h g wait=1h", "ACQUIRE s limit=1 wait=1h",
                                    "TAKE q wait=1h", "RATE r limit=1 per=1h wait=1h"};

FIXTURE(.teardown = cluster_close, .seconds = 60)

LOOP_TEST(requests_of_a_peer_that_wait_have_a_quarter_and_leave_room_when_they_end, sizeof(waits) / sizeof(waits[0]))
{
	unsigned n, again;

	few_may_wait();
	says(ROOT, "LOCK g");
	hears(ROOT, "OK *");
	n = waits_of(1, 20, waits[_i], CROWD_ONE);
	ck_assert_uint_ge(n, CROWD / 4 / 4);
	ck_assert_uint_le(n, CROWD / 4);
	for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		says(25, "@%u %s", i, waits[i]);
		ck_assert_ptr_nonnull(strstr(next_line(25), CROWD_ONE));
	}
	says(OTHER, "@a %s", waits[_i]);
	ck_assert_ptr_null(next_line(OTHER));
	for (unsigned k = 1; k <= 20; k++)
		goes(k, GONE_HANGUP);
	passes(SEC);
	again = waits_of(33, 20, waits[_i], CROWD_ONE);
	ck_assert_uint_ge(again, n); /* the first permit in line has claims besides; this time it is the other peer's */
	ck_assert_uint_le(again, CROWD / 4);
}

#define UNDER_WAY_ONE " ERR LIMIT the sessions of one peer may have at most 32 requests in flight (16 times limits.waiting)"

static const char *const asks[] = {"SHOW a", "RATE r limit=1 per=1h"};

LOOP_TEST(requests_of_a_peer_under_way_have_a_quarter_and_leave_room_when_they_end, sizeof(asks) / sizeof(asks[0]))
{
	few_may_wait();
	feels(0, MOOD_SILENT);
	ck_assert_uint_eq(waits_of(1, 20, asks[_i], UNDER_WAY_ONE), CROWD / 4);
	for (unsigned i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		says(25, "@%u %s", i, asks[i]);
		ck_assert_ptr_nonnull(strstr(next_line(25), UNDER_WAY_ONE));
	}
	says(OTHER, "@a %s", asks[_i]);
	ck_assert_ptr_null(next_line(OTHER));
	for (unsigned k = 1; k <= 20; k++)
		goes(k, GONE_HANGUP);
	feels(0, MOOD_WELL);
	passes(10 * SEC);
	feels(0, MOOD_SILENT);
	ck_assert_uint_eq(waits_of(33, 20, asks[_i], UNDER_WAY_ONE), CROWD / 4);
	feels(0, MOOD_WELL);
}

TEST(requests_of_all_that_wait_have_a_bound)
{
	few_may_wait();
	ck_assert_uint_eq(waits_of(1, 17, waits[0], CROWD_ONE), CROWD / 4);
	session_opens_from(OTHER + 1, 0, &other);
	for (unsigned k = 33; k < 64; k++)
		session_opens_from(k, 0, &root);
	ck_assert_uint_eq(waits_of(33, 31, waits[0], CROWD_ALL), 62);
	for (unsigned i = 0; i < CROWD - CROWD / 4 - 62; i++) {
		says(ROOT, "LOCK read%u mode=shared", i);
		hears(ROOT, "OK *");
		says(33, "LOCK read%u mode=shared", i);
		hears(33, "OK *");
	}
	says(ROOT, "@a %s owner=other", waits[0]);
	hears(ROOT, "@a" CROWD_ALL);
	says(OTHER, "@a %s", waits[0]);
	hears(OTHER, "@a" CROWD_ALL);
	says(OTHER, "LOCK h"); /* it does not wait */
	hears(OTHER, "BUSY *");
	says(OTHER, "LOCK own");
	hears(OTHER, "OK *");
	says(ROOT, "LOCK h");
	hears(ROOT, "OK * count=2");
}

/* As many as it has, and one. */
static unsigned readers_of(unsigned k)
{
	const char *told = "OK";
	unsigned n;

	for (n = 0; told[0] == 'O' && n <= CROWD; n++) {
		says(k, "LOCK together mode=shared owner=%u", n);
		told = next_line(k);
	}
	ck_assert_ptr_nonnull(strstr(told, &CROWD_ONE[1]));
	return n - 1;
}

TEST(readers_beside_the_first_count_as_well)
{
	few_may_wait();
	ck_assert_uint_eq(readers_of(1), CROWD / 4 + 1);
	says(2, "@a LOCK h wait=1h");
	hears(2, "@a" CROWD_ONE);
	says(1, "LOCK together mode=shared owner=7");
	hears(1, "OK * count=2*");
	says(1, "UNLOCK together owner=5 count=0");
	hears(1, "OK *");
	says(2, "LOCK together mode=shared");
	hears(2, "OK *");
	goes(1, GONE_HANGUP);
	passes(SEC);
	says(2, "@a LOCK h wait=1h");
	ck_assert_ptr_null(next_line(2));
}

/* Whoever waited and holds a name alone takes what its former holder took. */
TEST(a_turn_that_came_does_not_count)
{
	few_may_wait();
	for (unsigned i = 0; i < CROWD; i++) {
		says(OTHER, "LOCK turn%u", i);
		hears(OTHER, "OK *");
		says(1, "@a LOCK turn%u wait=1h", i);
		ck_assert_ptr_null(next_line(1));
		says(OTHER, "UNLOCK turn%u", i);
		hears(OTHER, "OK *");
		hears(1, "@a OK *");
	}
}

/* Losses that are remembered: one name could have any number. */
TEST(losses_of_a_name_count)
{
	const char *told = "OK";
	unsigned n;

	few_may_wait();
	for (n = 0; told[0] == 'O' && n <= CROWD; n++) {
		says(1, "LOCK lost renew=no ttl=1s owner=%u", n);
		told = next_line(1);
		passes(2 * SEC);
		ignores(1);
	}
	ck_assert_uint_eq(n - 1, CROWD / 4 + 1);
	says(1, "LOCK lost owner=2");
	hears(1, "OK *");
}

LOOP_TEST(what_a_resumed_session_has_beside_others_still_counts, 2)
{
	struct secret secret;

	few_may_wait();
	secret = says_hello(1, "grace=20s");
	readers_of(1);
	goes(1, GONE_HANGUP);
	if (_i == 1) {
		daemon_returns(0);
		passes(SEC);
	}
	resumes(2, &secret);
	passes(30 * SEC);
	ignores(2);
	says(2, "CHECK together owner=30");
	hears(2, "OK *");
	says(2, "LOCK together mode=shared owner=more");
	hears(2, &CROWD_ONE[1]);
	says(2, "UNLOCK together owner=30");
	hears(2, "OK *");
	says(2, "LOCK together mode=shared owner=more");
	hears(2, "OK *");
}
