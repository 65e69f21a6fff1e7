/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/service/command.c, locks.c, locks.c and command.c: requests, their limits, and their answers. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdio.h>

static void cluster_limited(unsigned locks, unsigned waiting)
{
	cluster_open(1);
	cluster.conf.limits.locks = locks;
	cluster.conf.limits.waiting = waiting;
	daemon_starts(0);
}

FIXTURE(.teardown = cluster_close)

TEST(hello_says_what_it_speaks_to)
{
	cluster_begin(3);
	says(1, "HELLO 1 name=worker");
	hears(1, "OK proto=1 server=redlockd/* session=1 secret=* store=redis nodes=3 quorum=2 "
	         "lease_ms=10000 max_lease_ms=30000 max_keep_ms=3600000 max_grace_ms=*");
	says(1, "HELLO 1 name=other");
	hears(1, "OK proto=1 *");
	says(2, "HELLO 1");
	hears(2, "OK proto=1 * session=2 *");
	says(1, "HELLO 2");
	hears(1, "ERR ARG *");
}

TEST(the_secret_of_a_session_stays_and_is_its_own)
{
	char first[256];

	cluster_begin(1);
	says(1, "HELLO 1");
	snprintf(first, sizeof(first), "%s", hears(1, "OK *"));
	says(1, "HELLO 1");
	ck_assert_str_eq(hears(1, "OK *"), first);
	says(2, "HELLO 1");
	ck_assert_str_ne(strstr(hears(2, "OK *"), "secret="), strstr(first, "secret="));
}

TEST(empty_lines_and_comments_are_not_answered)
{
	cluster_begin(1);
	says(1, "%s", "");
	says(1, "   ");
	says(1, "# a comment");
	hears_nothing(1);
	says(1, "PING\r");
	hears(1, "OK");
}

TEST(mistakes_are_answered_and_end_nothing)
{
	cluster_begin(1);
	says(1, "LOKC a");
	hears(1, "ERR UNKNOWN *LOCK*");
	says(1, "LOCK");
	hears(1, "ERR ARG *");
	says(1, "LOCK a wait=soon");
	hears(1, "ERR ARG *");
	says(1, "LOCK \"a");
	hears(1, "ERR SYNTAX *");
	says(1, "@t LOCK a colour=red");
	hears(1, "@t ERR ARG *");
	says_too_much(1);
	hears(1, "ERR TOOLONG *");
	says(1, "LOCK a mode=together");
	hears(1, "ERR *");
	says(1, "PING");
	hears(1, "OK");
	ck_assert(!hung_up(1));
}

TEST(a_hundred_mistakes_in_a_row_end_the_session_and_its_locks_at_their_deadline)
{
	cluster_begin(1);
	says(1, "LOCK a");
	hears(1, GRANT);
	for (unsigned i = 0; i < 99; i++)
		says(1, "WHAT");
	ck_assert_uint_eq(ignores(1), 99);
	says(1, "PING");
	hears(1, "OK");
	for (unsigned i = 0; i < 99; i++)
		says(1, "WHAT");
	ck_assert(!hung_up(1));
	ignores(1);
	says(1, "WHAT");
	hears(1, "ERR UNKNOWN *");
	hears(1, "ERR LIMIT *");
	ck_assert(hung_up(1));
	says(2, "LOCK a wait=1m");
	passes(9 * SEC);
	hears_nothing(2);
	passes(SEC);
	hears(2, GRANT);
}

TEST(lines_read_ahead_of_a_flood_of_mistakes_are_not_served)
{
	cluster_begin(1);
	says(1, "LOCK a");
	says(2, "LOCK a wait=1s");
	for (unsigned i = 0; i < 120; i++)
		says(2, "WHAT");
	passes(SEC);
	ck_assert(hung_up(2));
	ck_assert_uint_eq(ignores(2), 102);
	ignores(1);
}

TEST(http_is_hung_up_on_without_a_line_of_this_protocol)
{
	cluster_begin(1);
	says(1, "GET / HTTP/1.1");
	hears_nothing(1);
	ck_assert(hung_up(1));
}

static const char *const greeting[] = {"POST / HTTP/1.1", "delete /x", "Host: localhost:7420", "\x16\x03\x01", "SSH-2.0-x", "*1", "$4", "PROXY TCP4 a b 1 2"};
#define GREETINGS ((int)(sizeof(greeting) / sizeof(greeting[0])))

/* Of another protocol: at the beginning, or after a request. In HTTP another layer answers. */
LOOP_TEST(over_a_network_a_greeting_is_answered_once_and_nothing_after_it_is_carried_out, 2 * GREETINGS)
{
	cluster_begin(1);
	session_opens_from_afar(1, 0);
	if (_i >= GREETINGS)
		says(1, "PING");
	ignores(1);
	says(1, "%s", greeting[_i % GREETINGS]);
	ck_assert_uint_eq(ignores(1), _i % GREETINGS > 1);
	ck_assert(hung_up(1));
}

TEST(a_line_that_is_too_long_is_known_by_its_beginning)
{
	cluster_begin(1);
	session_opens_from_afar(1, 0);
	says_too_much_from(1, "POST /aaaaaaaaa");
	hears_nothing(1);
	ck_assert(hung_up(1));
	session_opens_from_afar(2, 0);
	says_too_much_from(2, "xxxxxxxxxx");
	hears(2, "ERR TOOLONG *hanging up");
	ck_assert(hung_up(2));
	session_opens_from_afar(3, 0);
	says_too_much_from(3, "# a comment");
	hears(3, "ERR TOOLONG *");
	says_too_much_from(3, "@t DEFER q xxx");
	hears(3, "@t ERR TOOLONG *");
	ck_assert(!hung_up(3));
	says_too_much_from(3, "Cookie: xxx");
	hears(3, "ERR SYNTAX * not HTTP*");
	ck_assert(hung_up(3));
}

TEST(over_a_network_the_first_line_must_be_a_request)
{
	cluster_begin(1);
	session_opens_from_afar(1, 0);
	says(1, "%s", "");
	says(1, "# a comment");
	says(1, "@t LOKC a");
	hears(1, "@t ERR UNKNOWN *did you mean LOCK*hanging up");
	ck_assert(hung_up(1));
	session_opens_from_afar(2, 0);
	says(2, "LOCK \"a");
	hears(2, "ERR SYNTAX *hanging up");
	ck_assert(hung_up(2));
	session_opens_from_afar(3, 0);
	says(3, "LOCK");
	hears(3, "ERR ARG *");
	says(3, "LOKC a");
	hears(3, "ERR UNKNOWN *");
	ck_assert(!hung_up(3));
}

TEST(at_the_unix_socket_only_a_request_line_of_http_ends_a_session)
{
	cluster_begin(1);
	says(1, "Host: localhost");
	hears(1, "ERR UNKNOWN *");
	says(1, "*1");
	hears(1, "ERR UNKNOWN *");
	says(1, "what");
	hears(1, "ERR UNKNOWN *");
	ck_assert(!hung_up(1));
	says(1, "DELETE /x HTTP/1.1");
	ck_assert(hung_up(1));
}

/* Of a comment that reads like a request line of HTTP. */
TEST(over_a_network_the_first_line_speaks_http_even_in_a_comment)
{
	cluster_begin(1);
	session_opens_from_afar(1, 0);
	says(1, "# GET / HTTP/1.1");
	hears_nothing(1);
	ck_assert(hung_up(1));
	session_opens_from_afar(2, 0);
	says(2, "PING");
	hears(2, "OK");
	says(2, "# GET / HTTP/1.1");
	says(3, "# GET / HTTP/1.1"); /* at the Unix socket */
	hears_nothing(2);
	ck_assert(!hung_up(2) && !hung_up(3));
}

/* Its client may be alive, and trust the lock until then. */
TEST(a_lock_whose_session_speaks_http_is_free_at_its_deadline)
{
	cluster_begin(1);
	says(1, "LOCK a ttl=1s");
	hears(1, "OK name=a *");
	says(2, "LOCK a wait=1m");
	says(1, "GET / HTTP/1.1");
	ck_assert(hung_up(1));
	passes(950 * MSEC);
	hears_nothing(2);
	passes(100 * MSEC);
	hears(2, "OK name=a *");
}

TEST(bounds_are_named)
{
	cluster_begin(1);
	says(1, "LOCK a ttl=99ms");
	hears(1, "ERR LIMIT *100ms*30000ms*");
	says(1, "LOCK a ttl=30001ms");
	hears(1, "ERR LIMIT *");
	says(1, "LOCK a ttl=100ms");
	hears(1, "OK name=a fence=* valid_ms=96 ttl_ms=100 count=1");
	says(1, "EXTEND a ttl=99ms");
	hears(1, "ERR LIMIT *");
	says(1, "LOCK b delay=1s");
	hears(1, "ERR LIMIT *");
}

TEST(a_name_is_no_longer_than_the_configuration_allows)
{
	cluster_open(1);
	cluster.conf.limits.name = 4;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "LOCK abcd");
	hears(1, "OK name=abcd *");
	says(1, "LOCK abcde");
	hears(1, "ERR LIMIT *at most 4 bytes*");
}

TEST(options_that_say_the_default_are_accepted)
{
	cluster_begin(1);
	says(1, "LOCK a renew=yes mode=exclusive");
	hears(1, GRANT);
}

TEST(a_session_holds_no_more_locks_than_its_limit)
{
	cluster_limited(2, 10);
	says(1, "LOCK a");
	says(1, "LOCK b");
	says(1, "LOCK c");
	hears(1, "OK *");
	hears(1, "OK *");
	hears(1, "ERR LIMIT *2*");
	says(1, "LOCK a");
	hears(1, "OK name=a * count=2");
	says(1, "UNLOCK b");
	says(1, "LOCK c");
	hears(1, "OK name=b count=0");
	hears(1, "OK name=c *");
}

TEST(a_session_holds_no_more_locks_than_its_limit_however_it_pipelines_them)
{
	unsigned granted = 0;

	cluster_limited(2, 10);
	feels(0, MOOD_SILENT);
	for (unsigned i = 0; i < 6; i++)
		says(1, "@%u LOCK name-%u", i, i);
	feels(0, MOOD_WELL);
	for (unsigned i = 0; i < 6; i++) {
		char name[16];

		snprintf(name, sizeof(name), "name-%u", i);
		granted += key_is_there(0, name);
	}
	ck_assert_uint_eq(granted, 2);
	ck_assert_uint_eq(ignores(1), 6);
}

TEST(a_session_waits_for_no_more_than_its_limit)
{
	cluster_limited(100, 2);
	says(1, "LOCK a");
	for (unsigned i = 0; i < 3; i++)
		says(2, "@%u LOCK a wait=1m", i);
	hears(2, "@2 ERR LIMIT *2*");
	says(2, "@3 LOCK b");
	hears(2, "@3 OK name=b *");
	ignores(1);
}

TEST(requests_without_wait_that_are_under_way_do_not_count_as_waiting)
{
	cluster_limited(100, 2);
	passes(2 * SEC);
	feels(0, MOOD_SILENT);
	says(1, "@1 LOCK a");
	says(1, "@2 LOCK b");
	says(1, "@3 LOCK c wait=1m");
	says(1, "@4 LOCK d wait=1m");
	hears_nothing(1);
	says(1, "@5 LOCK e wait=1m");
	hears(1, "@5 ERR LIMIT *2*(limits.waiting)");
	feels(0, MOOD_WELL);
	ck_assert_uint_eq(ignores(1), 4);
}

TEST(a_loss_is_remembered_until_an_unlock_said_so_once)
{
	cluster_begin(1);
	says(1, "LOCK a renew=no ttl=1s");
	passes(2 * SEC);
	hears(1, "OK *");
	hears(1, "! LOST *");
	for (unsigned i = 0; i < 2; i++) {
		says(1, "CHECK a");
		hears(1, "ERR LOST *reason=expired*");
		says(1, "EXTEND a");
		hears(1, "ERR LOST *");
	}
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
	says(1, "CHECK a");
	hears(1, "ERR NOTHELD *");
}

TEST(a_loss_is_forgotten_when_a_lock_takes_the_name_anew)
{
	cluster_begin(1);
	says(1, "LOCK a renew=no ttl=1s");
	passes(2 * SEC);
	ignores(1);
	says(2, "LOCK a");
	says(1, "LOCK a");
	hears(1, "BUSY *");
	says(1, "CHECK a");
	hears(1, "ERR LOST *");
	says(2, "UNLOCK a");
	ignores(2);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "CHECK a");
	hears(1, "OK name=a *");
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
}

TEST(a_loss_counts_as_lost_whatever_the_count_was)
{
	cluster_begin(1);
	says(1, "LOCK a renew=no ttl=1s");
	says(1, "LOCK a");
	passes(2 * SEC);
	ignores(1);
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
}

TEST(names_are_any_bytes_and_come_back_as_they_can_be_sent)
{
	cluster_begin(1);
	says(1, "LOCK \"a b\\x00\\n\\\"=\\\\\"");
	hears(1, "OK name=\"a b\\\\x00\\\\n\\\\\"=\\\\\\\\\" fence=* count=1");
	says(1, "CHECK 'a b\x01'");
	hears(1, "ERR SYNTAX *");
	says(1, "UNLOCK \"a b\\x00\\x0a\\\"=\\\\\"");
	hears(1, "OK name=* count=0");
}
