/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/send.c: how many renewals a second short leases may need. */
#include "tests/fixture/cluster.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define OTHER 5  /* the session of another user than the rest */
#define ROOT  50 /* may BREAK */

static void begins(void)
{
	const struct peer other = {.is_unix = true, .is_local = true, .uid = 33, .pid = 7, .address = "unix"};

	cluster_open(3);
	cluster.conf.limits.renewals = 2000;
	cluster.conf.own_uid = 999;
	daemon_starts(0);
	passes(SEC);
	session_opens_from(OTHER, 0, &other);
}

/* Locks with a lease of 100 ms until one is refused. Returns how many were granted. */
static unsigned locks_until_refused(unsigned k)
{
	unsigned n = 0;

	do
		says(k, "LOCK s%u-%u ttl=100ms", k, n++);
	while (span_starts(span_of(next_line(k)), SPAN("OK")));
	return n - 1;
}

FIXTURE(.teardown = cluster_close)

TEST(a_session_has_short_leases_up_to_its_share_and_longer_ones_beyond)
{
	begins();
	ck_assert_uint_eq(locks_until_refused(1), 3); /* 30 renewals a second each, of 100 */
	says(1, "LOCK x ttl=100ms");
	hears(1, "ERR LIMIT a lease of 100ms is renewed every 33ms, and the leases below 10000ms of one session may have at most 100 renewals a second "
	         "(limits.renewals): a ttl of 301ms or more is right now");
	says(1, "LOCK x ttl=301ms");
	hears(1, "OK *");
	says(1, "LOCK y ttl=10s");
	hears(1, "OK *");
	says(1, "UNLOCK s1-0");
	hears(1, "OK *");
	says(1, "UNLOCK x");
	hears(1, "OK *");
	says(1, "LOCK z ttl=100ms");
	hears(1, "OK *");
	says(1, "ACQUIRE p limit=3 ttl=100ms");
	hears(1, "ERR LIMIT *limits.renewals*");
	says(1, "TAKE q ttl=100ms");
	hears(1, "ERR LIMIT *limits.renewals*");
	says(1, "LOCKALL a b c ttl=100ms");
	hears(1, "ERR LIMIT *limits.renewals*");
}

TEST(the_sessions_of_a_peer_share_half_and_another_peer_is_still_served)
{
	const struct peer crowd = {.is_unix = true, .is_local = true, .uid = 1000, .pid = 7, .address = "unix"};
	unsigned n = 0;

	begins();
	cluster.conf.limits.renewals = 2000;
	for (unsigned k = 6; k < 24; k++) {
		session_opens_from(k, 0, &crowd);
		n += locks_until_refused(k);
	}
	ck_assert_uint_le(n, 1000 / 30);
	ck_assert_uint_ge(n, 30);
	says(OTHER, "LOCK x ttl=100ms");
	hears(OTHER, "OK *");
	goes(6, GONE_HANGUP);
	passes(200 * MSEC);
	ignores(23);
	says(23, "LOCK again ttl=100ms");
	hears(23, "OK *");
}

TEST(all_sessions_have_the_whole_and_no_more)
{
	unsigned n = 0;

	begins();
	for (unsigned k = 6; k < 40; k++) {
		const struct peer peer = {.is_unix = true, .is_local = true, .uid = 1000 + k, .pid = 7, .address = "unix"};

		session_opens_from(k, 0, &peer);
		n += locks_until_refused(k);
	}
	ck_assert_uint_eq(n, 2000 / 30);
	says(OTHER, "LOCK x ttl=100ms");
	hears(OTHER, "ERR LIMIT * of all sessions may have at most 2000 renewals a second (limits.renewals): *");
	says(OTHER, "LOCK x ttl=10s");
	hears(OTHER, "OK *");
}

TEST(leases_that_have_ended_count_no_more_though_their_sessions_ask_for_nothing)
{
	unsigned n[40], first = 0, again = 0;

	begins();
	session_opens_as_admin(ROOT, 0);
	for (unsigned k = 6; k < 40; k++) {
		const struct peer peer = {.is_unix = true, .is_local = true, .uid = 1000 + k, .pid = 7, .address = "unix"};

		session_opens_from(k, 0, &peer);
		first += n[k] = locks_until_refused(k);
	}
	for (unsigned k = 6; k < 40; k++)
		for (unsigned i = 0; i < n[k]; i++) {
			says(k % 2 ? k : ROOT, k % 2 ? "UNLOCK s%u-%u" : "BREAK s%u-%u", k, i);
			hears(k % 2 ? k : ROOT, "OK *");
			if (k % 2 == 0)
				hears(k, "! LOST *");
		}
	passes(200 * MSEC);
	for (unsigned k = 6; k < 40; k++)
		again += locks_until_refused(k);
	ck_assert_uint_eq(again, first);
}

/* Session 2 has all permits of s. */
static void fills(unsigned limit)
{
	for (unsigned i = 0; i < limit; i++) {
		says(2, "ACQUIRE s limit=%u", limit);
		hears(2, "OK *");
	}
}

TEST(a_permit_that_is_waited_for_is_two_leases_whatever_lines_it_stands_in)
{
	begins();
	fills(100);
	says(1, "@w ACQUIRE s limit=100 ttl=100ms wait=forever");
	passes(200 * MSEC);
	says(OTHER, "LOCK x ttl=5s");
	hears(OTHER, "OK *");
	ck_assert_uint_eq(locks_until_refused(1), 1);
	says(2, "RELEASE s");
	hears(2, "OK *");
	hears(1, "@w OK *");
	passes(200 * MSEC);
	says(1, "LOCK y ttl=100ms");
	hears(1, "ERR LIMIT *");
	says(1, "RELEASE s");
	hears(1, "OK *");
	says(1, "LOCK y ttl=100ms");
	hears(1, "OK *");
	says(1, "LOCK z ttl=100ms");
	hears(1, "OK *");
}

TEST(permits_that_are_waited_for_behind_another_count)
{
	begins();
	fills(3);
	says(3, "@f ACQUIRE s limit=3 wait=forever");
	says(1, "@1 ACQUIRE s limit=3 ttl=100ms wait=forever");
	says(1, "@2 ACQUIRE s limit=3 ttl=100ms wait=forever");
	hears(1, "@2 ERR LIMIT *limits.renewals*");
	ck_assert_uint_eq(locks_until_refused(1), 1);
	says(1, "CANCEL @1");
	hears(1, "OK");
	hears(1, "@1 ERR CANCELLED *");
	says(1, "@2 ACQUIRE s limit=3 ttl=100ms wait=forever");
	hears_nothing(1);
}

TEST(the_names_of_a_group_that_waits_count)
{
	begins();
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "@1 LOCKALL b c d ttl=100ms wait=forever");
	says(1, "@2 LOCKALL b e ttl=100ms wait=forever");
	hears(1, "@2 ERR LIMIT *limits.renewals*");
	says(1, "LOCK x ttl=100ms");
	hears(1, "ERR LIMIT *limits.renewals*");
	says(2, "UNLOCK b");
	hears(2, "OK *");
	for (unsigned i = 0; i < 3; i++)
		hears(1, "@1 \\* *");
	hears(1, "@1 OK *");
	says(1, "LOCK x ttl=100ms");
	hears(1, "ERR LIMIT *limits.renewals*");
}

TEST(of_names_of_which_one_is_wanted_one_counts)
{
	begins();
	says(2, "LOCK b");
	hears(2, "OK *");
	says(2, "LOCK c");
	hears(2, "OK *");
	says(1, "@1 LOCKANY b c ttl=100ms wait=forever");
	says(1, "LOCKANY d e f g ttl=100ms");
	hears(1, "OK *");
	ck_assert_uint_eq(locks_until_refused(1), 1);
}

TEST(leases_that_nobody_renews_count_for_nothing)
{
	begins();
	ck_assert_uint_eq(locks_until_refused(1), 3);
	says(1, "LOCK x ttl=100ms renew=no");
	hears(1, "OK *");
	says(1, "LOCKALL y z ttl=100ms renew=no");
	for (unsigned i = 0; i < 2; i++)
		hears(1, "\\* *");
	hears(1, "OK *");
}

TEST(what_is_repeated_after_a_resumption_counts_once)
{
	struct secret secret;

	begins();
	secret = says_hello(1, "grace=1m");
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "@1 LOCKALL b c d ttl=100ms wait=forever");
	goes(1, GONE_HANGUP);
	is_resumed_with_nothing(4, &secret);
	says(4, "@1 LOCKALL b c d ttl=100ms wait=forever");
	hears_nothing(4);
	says(4, "@2 LOCK e ttl=100ms");
	hears(4, "@2 ERR LIMIT *limits.renewals*");
}
