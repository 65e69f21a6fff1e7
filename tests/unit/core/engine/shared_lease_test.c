/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/engine/wait.c, grant.c: readers of several daemons hold a lock together. The cluster sees to it that nobody relies on it alone
 * meanwhile.
 */
#include "tests/fixture/readers.h"

#include <check.h>

#define ADMIN 6
#define ALONE "OK name=a fence=* valid_ms=* ttl_ms=10000 count=1"

/* Session 1 of daemon 0 and session 2 of daemon 1 hold a. */
static int64_t both_read(unsigned nodes)
{
	int64_t first, second;

	two_daemons(nodes);
	says(1, "LOCK a mode=shared");
	first = number_in(hears(1, READER), "fence");
	says(2, "LOCK a mode=shared");
	second = number_in(hears(2, READER), "fence");
	return first > second ? first : second;
}

FIXTURE(.teardown = cluster_close)

TEST(a_request_that_is_refused_for_readers_of_another_daemon_is_told_so)
{
	two_daemons(3);
	reads(2);
	says(1, "LOCK a");
	hears(1, "BUSY name=a holder=@h1 held_ms=* mode=shared waiters=0 retry_ms=*");
	says(1, "SHOW a");
	hears(1, "\\* role=holder pos=0 * ttl_ms=* mode=shared");
	hears(1, "OK n=1");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(2, "LOCK a");
	hears(2, GRANT);
	says(1, "LOCK a");
	hears(1, "BUSY name=a holder=@h1 held_ms=0 waiters=0 retry_ms=*");
}

/* A waiter of its daemon gives up meanwhile. */
RANGE_TEST(a_writer_keeps_its_place_while_a_reader_that_has_gone_may_believe, 1, 4)
{
	unsigned before;

	two_daemons(_i);
	says(1, "LOCK a mode=shared");
	hears(1, READER);
	says(3, "LOCK a wait=1m");
	says(4, "LOCK a wait=1s");
	passes(100 * MSEC);
	ck_assert_uint_gt(cluster.node[0].last[CALL_EXTEND].call.ticket.n, 0);
	goes(1, GONE_KEEPALIVE);
	before = cluster.node[0].count[CALL_WITHDRAW];
	passes(1500 * MSEC);
	hears(4, "TIMEOUT *");
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], before);
	goes(3, GONE_HANGUP);
	passes(SEC);
	ck_assert_uint_gt(cluster.node[0].count[CALL_WITHDRAW], before);
}

TEST(a_share_is_not_handed_on_to_a_writer)
{
	both_read(3);
	says(3, "LOCK a wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK *count=0");
	passes(5 * SEC);
	hears_nothing(3);
	says(2, "UNLOCK a");
	passes(2 * SEC);
	hears(3, GRANT);
}

TEST(a_writer_that_becomes_a_reader_lets_readers_of_other_daemons_in)
{
	two_daemons(3);
	passes(SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a mode=shared wait=1m");
	passes(SEC);
	hears_nothing(2);
	says(1, "LOCK a mode=shared");
	hears(1, READER);
	hears_nothing(2);
	passes(2 * SEC);
	hears(2, READER);
}

/* A lease that is handed on stands alone at the stores until somebody elsewhere waits. */
TEST(a_reader_to_whom_a_writer_handed_on_lets_readers_of_other_daemons_in)
{
	unsigned rounds;

	two_daemons(3);
	passes(SEC);
	says(1, "LOCK a");
	says(3, "LOCK a wait=1m");
	says(1, "UNLOCK a");
	says(1, "LOCK a wait=1m");
	says(3, "UNLOCK a");
	ck_assert_uint_eq(ignores(1) + ignores(3), 5);
	rounds = asked(CALL_ACQUIRE);
	says(3, "LOCK a mode=shared wait=1m");
	says(1, "UNLOCK a");
	hears(1, "OK *count=0");
	hears(3, READER);
	ck_assert_uint_eq(asked(CALL_ACQUIRE), rounds);
	says(2, "LOCK a mode=shared wait=1m");
	hears_nothing(2);
	is_wanted(0, 0, "a");
	passes(2 * SEC);
	hears(2, READER);
}

/* Daemon 0 renews, and hands its lease to a reader while a reader elsewhere wants it. It is shared as soon as that renewal has ended. */
TEST(a_lease_that_goes_to_a_reader_during_its_renewal_is_shared_right_behind_that)
{
	unsigned asked_before;

	two_daemons(3);
	passes(SEC);
	says(4, "LOCK a");
	hears(4, GRANT);
	says(1, "LOCK a wait=1m"); /* since somebody waits, the grant has tokens for hand-overs */
	says(4, "UNLOCK a");
	hears(4, "OK *");
	passes(SEC);
	hears(1, GRANT);
	says(3, "@r LOCK a mode=shared wait=1m");
	passes(SEC);
	all_feel(MOOD_SILENT);
	says(1, "@e EXTEND a");
	is_wanted(0, 0, "a");
	says(1, "@u UNLOCK a");
	hears(3, "@r OK name=a *");
	asked_before = asked(CALL_EXTEND);
	all_feel(MOOD_WELL);
	passes(MSEC);
	ck_assert_uint_ge(asked(CALL_EXTEND), asked_before + 2);
	ck_assert_int_eq(cluster.node[0].last[CALL_EXTEND].call.form, FORM_SHARED);
	ignores(1);
}

TEST(the_share_of_a_daemon_that_died_ends_with_its_lease)
{
	both_read(3);
	says(1, "UNLOCK a");
	hears(1, "OK *count=0");
	says(1, "LOCK a wait=1m");
	daemon_ends(1);
	passes(9 * SEC);
	hears_nothing(1);
	passes(3 * SEC);
	hears(1, ALONE);
}

TEST(a_daemon_that_returns_adopts_its_share_beside_others)
{
	two_daemons(3);
	reads(1);
	says(2, "HELLO 1 grace=30s");
	hears(2, "OK *");
	reads(2);
	says(1, "UNLOCK a");
	hears(1, "OK *count=0");
	says(1, "LOCK a wait=1m");
	daemon_returns(1);
	passes(20 * SEC);
	hears_nothing(1);
	passes(30 * SEC);
	hears(1, ALONE);
}

TEST(a_break_ends_the_holds_of_all_daemons)
{
	both_read(3);
	daemon_starts(2);
	passes(2 * SEC);
	session_opens_as_admin(ADMIN, 2);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK name=a free_in_ms=*");
	is_broken_elsewhere(0, 0, "a");
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(1, "! LOST name=a fence=* reason=broken");
	hears(2, "! LOST name=a fence=* reason=broken");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	says(ADMIN, "LOCK a mode=shared");
	hears(ADMIN, "BUSY *");
	passes(11 * SEC);
	says(ADMIN, "LOCK a");
	hears(ADMIN, GRANT);
}

TEST(a_break_by_a_daemon_that_has_a_share_ends_the_others_as_well)
{
	both_read(3);
	session_opens_as_admin(ADMIN, 0);
	says(ADMIN, "BREAK a");
	hears(1, "! LOST name=a fence=* reason=broken");
	ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 9000);
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(2, "! LOST name=a fence=* reason=broken");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	passes(11 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
}

/* No store tells a share that the ticket of the writer is withdrawn, and nobody waits who would ask for it. */
RANGE_TEST(a_reader_that_does_not_wait_joins_soon_after_a_writer_of_another_daemon_has_given_up, 1, 4)
{
	unsigned asked;

	two_daemons(_i);
	reads(1);
	says(2, "LOCK a wait=1500ms");
	is_wanted(0, 0, "a");
	passes(1600 * MSEC);
	hears(2, "TIMEOUT *");
	asked = cluster.node[0].count[CALL_EXTEND];
	says(3, "LOCK a mode=shared");
	hears(3, "BUSY *");
	passes(MSEC);
	reads(3);
	is_wanted(0, 0, "a");
	for (int tries = 0; tries < 10; tries++) {
		says(4, "LOCKALL b a mode=shared");
		hears(4, "BUSY *");
		passes(50 * MSEC);
	}
	ck_assert_uint_eq(cluster.node[0].count[CALL_EXTEND], asked + 1);
	passes(SEC);
	reads(4);
}
