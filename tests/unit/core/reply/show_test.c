/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/show.c, break.c: SHOW of names that this daemon does not hold. */
#include "tests/fixture/cluster.h"

#include <check.h>

/* Three stores, a holder at daemon 0, a session at daemon 1 that says SHOW. */
static void two_hosts(void)
{
	two_daemons(3);
}

FIXTURE(.teardown = cluster_close)

TEST(a_holder_on_another_host_is_found_at_the_stores)
{
	two_hosts();
	says(1, "LOCK a");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=0 ttl_ms=10000");
	hears(2, "OK n=1");
	ck_assert_uint_eq(asked(CALL_LOOK), 3);
	/* Nothing is left of the look. */
	says(2, "LIST");
	hears(2, "OK n=0 more=0");
	says(1, "UNLOCK a");
	says(2, "@t SHOW a");
	hears(2, "@t OK n=0 free=yes");
	ck_assert_int_eq(figure(1, METRIC_NAMES), 0);
	ignores(1);
}

TEST(SHOW_does_not_ask_the_stores_for_what_the_daemon_knows)
{
	two_hosts();
	says(1, "LOCK a");
	says(2, "@w LOCK a wait=1m");
	says(1, "SHOW a");
	hears(1, "OK name=a *");
	hears(1, "\\* role=holder pos=0 session=1 *");
	hears(1, "OK n=1");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* seen_ms=* ttl_ms=10000");
	hears(2, "\\* role=waiter pos=1 session=1 *");
	hears(2, "OK n=2");
	ck_assert_uint_eq(asked(CALL_LOOK), 0);
	ignores(2);
}

TEST(a_name_with_keep_has_no_holder)
{
	two_hosts();
	says(1, "LOCK a");
	says(1, "UNLOCK a keep=5s");
	ignores(1);
	passes(SEC);
	says(1, "SHOW a");
	hears(1, "\\* role=kept pos=0 kept_ms=1000 ttl_ms=4000");
	hears(1, "OK n=1");
	says(2, "SHOW a");
	hears(2, "\\* role=kept pos=0 kept_by=@h0 kept_ms=1000 ttl_ms=4000");
	hears(2, "OK n=1");
	says(2, "LOCK a");
	hears(2, "BUSY name=a kept_by=@h0 kept_ms=1000 waiters=0 retry_ms=*");
	says(1, "LOCK a");
	hears(1, "BUSY name=a kept_ms=1000 waiters=0 retry_ms=*");
	says(1, "@w LOCK a wait=1m");
	says(1, "SHOW a");
	hears(1, "\\* role=kept pos=0 * ttl_ms=*");
	hears(1, "\\* role=waiter pos=1 *");
	hears(1, "OK n=2");
	passes(4100 * MSEC);
	hears(1, "@w OK name=a *");
}

TEST(a_daemon_with_waiters_knows_how_long_the_holder_elsewhere_was_seen)
{
	two_hosts();
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=0 ttl_ms=*");
	hears(2, "OK n=1");
	passes(3 * SEC);
	says(2, "@w LOCK a wait=1h");
	passes(5 * SEC);
	says(2, "SHOW a");
	ck_assert_int_eq(number_in(hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* seen_ms=* ttl_ms=*"), "seen_ms"), 5000);
	hears(2, "\\* role=waiter *");
	hears(2, "OK n=2");
	/* Another lease. */
	says(1, "UNLOCK a");
	says(3, "LOCK a");
	hears(1, "OK *");
	hears(3, "OK *");
	passes(3 * SEC);
	says(2, "SHOW a");
	ck_assert_int_lt(number_in(hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* seen_ms=* ttl_ms=*"), "seen_ms"), 3000);
	ignores(2);
}

TEST(a_key_of_another_program_is_foreign)
{
	two_hosts();
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "somebody", -1);
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=foreign ttl_ms=-1");
	hears(2, "OK n=1");
	for (unsigned i = 0; i < 2; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	says(2, "SHOW a");
	hears(2, "OK n=0 free=yes");
}

TEST(a_lost_lock_is_shown_until_its_validity_has_passed)
{
	cluster_begin(3);
	says(1, "LOCK a renew=no ttl=1s");
	ignores(1);
	passes(960 * MSEC);
	hears(1, "! LOST name=a *");
	says(2, "SHOW a");
	ck_assert_int_le(number_in(hears(2, "\\* role=kept pos=0 ttl_ms=*"), "ttl_ms"), 40);
	hears(2, "OK n=1");
	ck_assert_uint_eq(asked(CALL_LOOK), 0);
	passes(SEC);
	says(2, "SHOW a");
	hears(2, "OK n=0 free=yes");
}

TEST(two_stores_of_three_that_agree_decide_what_SHOW_says)
{
	two_hosts();
	says(1, "LOCK a");
	ignores(1);
	falls(0);
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 *");
	hears(2, "OK n=1");
	memory_remove(cluster.node[1].memory, SPAN("a"));
	says(2, "SHOW a");
	hears(2, "OK n=0 known=no");
	comes(0);
	passes(2 * SEC);
}

TEST(without_a_quorum_SHOW_says_at_once_that_it_does_not_know)
{
	two_hosts();
	says(1, "LOCK a");
	ignores(1);
	falls(1);
	falls(2);
	says(2, "SHOW a");
	hears(2, "OK n=0 known=no");
	ck_assert_uint_eq(asked(CALL_LOOK), 0);
	says(2, "@w LOCK b wait=1m");
	says(2, "SHOW b");
	hears(2, "\\* role=waiter pos=1 *");
	hears(2, "OK n=1 known=no");
	comes(1);
	comes(2);
	passes(2 * SEC);
	ignores(2);
	ignores(1);
}

TEST(a_holder_that_was_seen_before_the_stores_failed_is_no_longer_known)
{
	two_hosts();
	says(1, "LOCK a");
	says(2, "@w LOCK a wait=1m");
	passes(300 * MSEC);
	says(2, "SHOW a");
	hears(2, "\\* role=holder pos=0 holder=@h0 held_ms=* seen_ms=* ttl_ms=9700");
	hears(2, "\\* role=waiter pos=1 *");
	hears(2, "OK n=2");
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	passes(3 * SEC);
	says(2, "SHOW a");
	hears(2, "\\* role=waiter pos=1 *");
	hears(2, "OK n=1 known=no");
	for (unsigned i = 0; i < 3; i++)
		comes(i);
	passes(2 * SEC);
	ignores(1);
	ignores(2);
}

TEST(stores_that_are_silent_are_waited_for_as_long_as_a_command_may_take)
{
	two_hosts();
	says(1, "LOCK a");
	ignores(1);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_SILENT);
	says(2, "SHOW a");
	says(2, "PING");
	passes(49 * MSEC);
	hears_nothing(2);
	passes(2 * MSEC);
	hears(2, "OK n=0 known=no");
	hears(2, "OK");
	all_feel(MOOD_WELL);
	passes(SEC);
}

TEST(SHOW_says_what_is_true_when_the_stores_have_answered)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "SHOW a");
	says(2, "LOCK a");
	all_feel(MOOD_WELL);
	hears(2, "OK name=a *");
	/* The key was not there when they looked. */
	hears(1, "OK n=0 free=yes");
	says(1, "SHOW a");
	hears(1, "\\* role=holder pos=0 session=2 *");
	hears(1, "OK n=1");
}

/* Two stores refuse the LOCK for the sake of a holder whom SHOW has seen at one of them only. */
TEST(SHOW_says_what_a_LOCK_that_came_later_has_found_before)
{
	static const char holder[] = "0123456789abcdef.one:1:00112233445566778899aabbccddeeff";

	cluster_begin(3);
	key_is_overwritten(0, "a", holder, 60 * SEC);
	all_feel(MOOD_SILENT);
	says(1, "SHOW a");
	serves(0, 1);
	serves(1, 1);
	key_is_overwritten(1, "a", holder, 60 * SEC);
	says(2, "LOCK a wait=1m");
	serves(0, 1);
	serves(1, 1);
	hears_nothing(1);
	serves(2, 1);
	hears(1, "\\* role=holder pos=0 holder=@one *");
	hears(1, "\\* role=waiter pos=1 session=2 *");
	hears(1, "OK n=2");
	all_feel(MOOD_WELL);
}

TEST(looks_in_flight_are_bounded_and_end_with_their_session)
{
	cluster_open(3);
	cluster.conf.limits.waiting = 2;
	daemon_starts(0);
	passes(SEC);
	all_feel(MOOD_SILENT);
	says(1, "@1 SHOW a");
	says(1, "@2 SHOW a");
	says(1, "@3 SHOW a");
	hears(1, "@3 ERR LIMIT *2 requests in flight*");
	says(1, "@2 SHOW b");
	hears(1, "@2 ERR TAGINUSE *");
	says(2, "SHOW a");
	half_closes(2);
	says(3, "SHOW a");
	goes(3, GONE_HANGUP);
	all_feel(MOOD_WELL);
	hears(1, "@1 OK n=0 free=yes");
	hears(1, "@2 OK n=0 free=yes");
	hears(2, "OK n=0 free=yes");
	ck_assert(hung_up(2));
	ck_assert_int_eq(figure(0, METRIC_NAMES), 0);
}

/* SHOW takes the room that other requests leave. A renewal that is due goes first. */
TEST(many_SHOWs_cost_nobody_a_lease)
{
	cluster_open(3);
	cluster.conf.window = 4;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "LOCK a ttl=1s");
	ignores(1);
	all_feel(MOOD_SILENT);
	for (unsigned i = 0; i < 400; i++) {
		for (unsigned k = 2; k < 12; k++)
			says(k, "@%u SHOW b%u", i % 32, k);
		passes(5 * MSEC);
		for (unsigned n = 0; n < 3; n++)
			serves(n, 3);
	}
	ck_assert_uint_gt(asked(CALL_LOOK), 1000);
	hears_nothing(1);
	ck_assert_int_eq(figure(0, METRIC_LOSSES), 0);
	all_feel(MOOD_WELL);
	for (unsigned k = 2; k < 12; k++)
		ignores(k);
}

TEST(the_memory_store_shows_what_it_has)
{
	cluster_open(1);
	cluster.conf.store = "memory";
	cluster.conf.shared = false;
	daemon_starts(0);
	passes(SEC);
	says(1, "SHOW a");
	hears(1, "OK n=0 free=yes");
	says(1, "LOCK a");
	says(1, "UNLOCK a keep=5s");
	ignores(1);
	says(1, "SHOW a");
	hears(1, "\\* role=kept pos=0 kept_ms=0 ttl_ms=5000");
	hears(1, "OK n=1");
	/* Promised by an earlier run. */
	memory_put(cluster.node[0].memory, SPAN("b"), SPAN(""), instant_add(cluster.now, 3 * SEC));
	says(1, "SHOW b");
	hears(1, "\\* role=kept pos=0 ttl_ms=*");
	hears(1, "OK n=1");
	passes(6 * SEC);
	says(1, "SHOW a");
	hears(1, "OK n=0 free=yes");
}

TEST(a_lock_is_shown_while_somebody_asks_for_a_permit_of_that_name)
{
	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	all_feel(MOOD_SILENT);
	says(2, "@p ACQUIRE a limit=2");
	says(1, "SHOW a");
	hears(1, "\\* role=holder pos=0 session=1 *");
	hears(1, "OK n=1");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(2, "@p ERR KIND *");
}

TEST(of_many_readers_SHOW_tells_those_whose_rows_fit)
{
	const char *line;
	unsigned rows = 0;

	cluster_open(1);
	cluster.conf.limits.output = 16384;
	daemon_starts(0);
	passes(SEC);
	for (unsigned k = 2; k < 60; k++) {
		says(k, "LOCK a mode=shared owner=%0120u", k);
		hears(k, "OK *");
	}
	says(1, "SHOW a all=no");
	for (line = next_line(1); line && line[0] == '*'; line = next_line(1))
		rows++;
	ck_assert_uint_gt(rows, 2);
	ck_assert_int_eq(number_in(line, "n"), rows);
	ck_assert_int_eq(number_in(line, "more"), 58 - rows);
}
