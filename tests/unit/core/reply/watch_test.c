/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/watch.c: what sessions are told of the locks of others. */
#include "tests/fixture/cluster.h"

#include <check.h>

#define GRANTED(s, name)  "! EVENT kind=granted name=" name " session=" s " who=* fence=* waiters=0"
#define RELEASED(s, name) "! EVENT kind=released name=" name " session=" s " who=* fence=* held_ms=* waiters=*"

static void watched(const char *request)
{
	cluster_begin(3);
	says(9, "%s", request);
	hears(9, "OK prefixes=1");
}

FIXTURE(.teardown = cluster_close)

TEST(a_watcher_is_told_of_grants_and_releases_of_its_prefix)
{
	watched("WATCH orders/");
	says(1, "LOCK orders/1 owner=o note=\"on hand\"");
	hears(1, "OK *");
	hears(9, "! EVENT kind=granted name=orders/1 session=2 who=\"pid=* uid=*\" fence=* waiters=0 owner=o note=\"on hand\"");
	says(1, "LOCK orders/1 owner=o");
	hears(1, "OK * count=2");
	says(1, "UNLOCK orders/1 owner=o");
	hears(1, "OK * count=1");
	hears_nothing(9);
	passes(1500 * MSEC);
	says(1, "UNLOCK orders/1 owner=o");
	hears(1, "OK * count=0");
	hears(9, "! EVENT kind=released name=orders/1 session=2 who=* fence=* held_ms=1500 waiters=0 owner=o *");
	says(1, "LOCK other");
	hears(1, "OK *");
	hears_nothing(9);
}

TEST(a_watcher_without_a_prefix_is_told_of_all_names_and_of_its_own_locks)
{
	watched("WATCH");
	says(9, "WATCH a");
	hears(9, "OK prefixes=2");
	says(9, "WATCH a");
	hears(9, "OK prefixes=2");
	says(9, "LOCK a");
	hears(9, GRANT);
	hears(9, GRANTED("1", "a"));
	hears_nothing(9);
}

TEST(a_request_that_stays_in_the_queue_is_told_once)
{
	watched("WATCH");
	says(1, "LOCK a");
	hears(1, GRANT);
	ignores(9);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	hears_nothing(9);
	says(2, "LOCK a wait=1m owner=o");
	hears(9, "! EVENT kind=waiting name=a session=3 who=* waited_ms=0 waiters=1 owner=o");
	passes(5 * SEC);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(9, RELEASED("2", "a"));
	hears(2, GRANT);
	hears(9, "! EVENT kind=granted name=a session=3 *");
	hears_nothing(9);
}

TEST(a_request_that_waits_for_another_daemon_is_told_when_a_round_has_found_the_holder)
{
	two_daemons(3);
	says(2, "LOCK a");
	hears(2, GRANT);
	says(1, "WATCH");
	hears(1, "OK *");
	says(3, "LOCK a wait=1m");
	hears(1, "! EVENT kind=waiting name=a session=2 *");
	passes(5 * SEC);
	hears_nothing(1);
	says(2, "UNLOCK a");
	ignores(2);
	passes(SEC);
	hears(3, GRANT);
	hears(1, GRANTED("2", "a"));
}

TEST(a_watcher_is_not_told_who_waited_before_it_watched)
{
	cluster_begin(3);
	says(1, "LOCK a");
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a wait=1m");
	ignores(1);
	passes(SEC);
	says(9, "WATCH");
	hears(9, "OK *");
	says(1, "UNLOCK a");
	ignores(1);
	hears(9, "! EVENT kind=released * waiters=2");
	hears(9, "! EVENT kind=granted * waiters=1");
	hears_nothing(9);
	ignores(2);
}

TEST(a_loss_is_told_to_watchers)
{
	watched("WATCH");
	says(1, "LOCK a ttl=1s renew=no");
	hears(1, "OK *");
	ignores(9);
	passes(SEC);
	hears(1, "! LOST *");
	hears(9, "! EVENT kind=lost name=a session=2 who=* fence=* held_ms=* reason=expired waiters=0");
}

LOOP_TEST(the_end_of_a_session_releases_what_it_held, 2)
{
	watched("WATCH");
	says(1, "LOCK a");
	says(1, "LOCK b");
	ignores(1);
	ignores(9);
	if (_i)
		half_closes(1);
	else
		says(1, "QUIT"), hears(1, "OK");
	hears(9, RELEASED("2", "a"));
	hears(9, RELEASED("2", "b"));
}

/* Two waiters of one session end with it; between them stands a reader, who is let in when the first is gone. Nobody watched when they began to wait. */
TEST(a_request_that_ends_with_its_session_is_not_told_any_more)
{
	cluster_begin(3);
	says(1, "LOCK a mode=shared");
	says(2, "@x LOCK a wait=1m owner=x");
	says(3, "LOCK a mode=shared wait=1m");
	says(2, "@y LOCK a wait=1m owner=y");
	ignores(1);
	says(9, "WATCH");
	hears(9, "OK *");
	goes(2, GONE_HANGUP);
	hears(3, "OK name=a * mode=shared");
	hears(9, "! EVENT kind=granted name=a session=3 *");
	hears_nothing(9);
}

/* Readers that are let in behind one another never waited in the line of a name that was held. */
TEST(a_reader_that_is_let_in_at_once_is_not_told_as_a_waiter)
{
	watched("WATCH");
	all_feel(MOOD_SILENT);
	says(1, "LOCK a mode=shared wait=1m");
	says(2, "LOCK a mode=shared wait=1m");
	all_feel(MOOD_WELL);
	hears(1, "OK *");
	hears(2, "OK *");
	hears(9, "! EVENT kind=granted name=a session=2 *");
	hears(9, "! EVENT kind=granted name=a session=3 *");
	hears_nothing(9);
}

/* Who watches must not take a reader for a second holder of what somebody has alone. */
TEST(a_watcher_is_told_of_modes_and_downgrades)
{
	int64_t fence;

	watched("WATCH");
	passes(SEC);
	says(1, "LOCK a mode=shared");
	hears(1, "OK *");
	hears(9, "! EVENT kind=granted name=a session=2 who=* fence=* mode=shared waiters=0");
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(9, "! EVENT kind=released name=a session=2 who=* fence=* held_ms=* mode=shared waiters=0");
	says(1, "LOCK a");
	fence = number_in(hears(1, "OK name=a fence=* count=1"), "fence");
	ck_assert_int_eq(number_in(hears(9, GRANTED("2", "a")), "fence"), fence);
	says(2, "LOCK a wait=1m mode=shared");
	hears(9, "! EVENT kind=waiting name=a session=3 who=* waited_ms=0 mode=shared waiters=1");
	says(1, "LOCK a mode=shared");
	hears(1, "OK name=a fence=* count=1 mode=shared");
	ck_assert_int_eq(number_in(hears(9, "! EVENT kind=granted name=a session=2 who=* fence=* mode=shared waiters=1"), "fence"), fence);
	passes(MSEC);
	hears(2, "OK *");
	hears(9, "! EVENT kind=granted name=a session=3 who=* fence=* mode=shared waiters=0");
	hears_nothing(9);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	ck_assert_int_eq(number_in(hears(9, "! EVENT kind=released name=a session=2 who=* fence=* held_ms=* mode=shared waiters=0"), "fence"), fence);
}

TEST(UNWATCH_ends_a_watch_and_refuses_a_prefix_that_is_not_watched)
{
	watched("WATCH a");
	says(9, "UNWATCH b");
	hears(9, "ERR NOTFOUND *");
	says(9, "UNWATCH");
	hears(9, "ERR NOTFOUND *");
	says(9, "UNWATCH a");
	hears(9, "OK prefixes=0");
	says(1, "LOCK a");
	hears(1, GRANT);
	hears_nothing(9);
}

TEST(a_session_may_watch_so_many_prefixes_and_no_more)
{
	watched("WATCH p0");
	for (unsigned i = 1; i < 64; i++) {
		says(9, "WATCH p%u", i);
		hears(9, "OK *");
	}
	says(9, "WATCH p64");
	hears(9, "ERR LIMIT a session may watch at most 64 prefixes");
	says(9, "WATCH %0513d", 0);
	hears(9, "ERR LIMIT a prefix may have at most 512 bytes, as a name");
}

TEST(a_watch_ends_with_its_connection)
{
	watched("WATCH");
	says(9, "HELLO 1 grace=10s");
	hears(9, "OK *");
	goes(9, GONE_RESET);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
}
