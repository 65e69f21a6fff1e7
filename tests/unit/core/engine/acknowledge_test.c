/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/hold.c: a loss is over when its client has acknowledged it, or is gone. Session 9 is an administrator's. */
#include "tests/fixture/resumable.h"

#include <check.h>

#define ADMIN 9
#define READS "OK name=a fence=* valid_ms=* mode=shared"

static void begins(void)
{
	cluster_begin(3);
	session_opens_as_admin(ADMIN, 0);
}

FIXTURE(.teardown = cluster_close)

TEST(a_lock_that_was_broken_is_granted_when_its_holder_has_acknowledged_that)
{
	int64_t fence;

	begins();
	says(1, "LOCK a");
	fence = number_in(hears(1, GRANT), "fence");
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	hears(1, "! LOST *");
	passes(SEC);
	says(1, "CHECK a");
	hears(1, "ERR LOST fence=* reason=broken*");
	hears_nothing(2);
	says(1, "UNLOCK a");
	hears(1, "ERR LOST fence=* reason=broken*");
	ck_assert_int_gt(number_in(hears(2, GRANT), "fence"), fence);
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
}

LOOP_TEST(a_lock_that_was_broken_is_free_when_its_holder_is_gone, 4)
{
	begins();
	if (_i >= 2)
		session_opens_from_afar(1, 0);
	if (_i == 3)
		says(1, "HELLO 1 grace=1s"), ignores(1);
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	ignores(1);
	if (_i == 0)
		says(1, "QUIT"), ignores(1);
	else
		goes(1, _i == 1 ? GONE_HANGUP : GONE_RESET);
	if (_i >= 2) {
		passes(9 * SEC);
		hears_nothing(2);
		passes(1500 * MSEC);
	}
	hears(2, GRANT);
}

/* The client may not have read LOST when it sent the UNLOCK: then it relies on the hold that is left. */
LOOP_TEST(an_UNLOCK_that_leaves_a_hold_acknowledges_nothing, 3)
{
	begins();
	says(1, "LOCK a");
	if (_i == 0)
		says(1, "LOCK a");
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	if (_i == 1)
		says(1, "LOCK a");
	if (_i == 2)
		says(1, "@t LOCK a wait=1m");
	ignores(1);
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	passes(9 * SEC);
	hears_nothing(2);
	passes(1500 * MSEC);
	hears(2, GRANT);
	ignores(ADMIN);
}

/* Its LOCK was on its way beside the UNLOCK: as long as it has not read the refusal, it counts on a hold that is left. */
TEST(a_LOCK_that_is_refused_keeps_an_UNLOCK_from_acknowledging_as_well)
{
	begins();
	says(1, "LOCK a");
	says(2, "@a LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	ignores(ADMIN);
	ignores(1);
	says(1, "LOCK a wait=1ms");
	passes(2 * MSEC);
	hears(1, "TIMEOUT *");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	passes(9 * SEC);
	hears_nothing(2);
	passes(1500 * MSEC);
	hears(2, "@a OK *");
}

/* The loss of session 1 is over and was not acknowledged yet: session 2 has lost its own hold since. */
TEST(an_acknowledgement_is_for_one_hold_alone)
{
	begins();
	says(1, "LOCK a");
	says(ADMIN, "BREAK a");
	passes(11 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
	says(ADMIN, "BREAK a");
	says(3, "LOCK a wait=1m");
	ignores(2);
	says(1, "UNLOCK a");
	ignores(1);
	passes(SEC);
	hears_nothing(3);
	says(2, "UNLOCK a");
	hears(2, "ERR LOST *");
	hears(3, GRANT);
	ignores(ADMIN);
}

TEST(a_lock_that_is_lost_for_another_reason_is_free_when_that_is_acknowledged)
{
	begins();
	says(1, "LOCK a ttl=5s renew=no");
	hears(1, "OK *");
	passes(4900 * MSEC);
	hears(1, "! LOST *");
	says(2, "LOCK a");
	hears(2, "BUSY *");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	says(2, "LOCK a");
	hears(2, GRANT);
}

LOOP_TEST(a_reader_that_was_alone_frees_the_lock_as_it_acknowledges, 3)
{
	begins();
	says(1, "LOCK a mode=shared");
	hears(1, READS);
	if (_i == 1) {
		says(3, "LOCK a mode=shared");
		hears(3, READS);
		says(3, "UNLOCK a");
		hears(3, "OK *");
	}
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	hears(1, "! LOST *");
	passes(SEC);
	hears_nothing(2);
	if (_i == 2)
		says(1, "QUIT"), ignores(1);
	else
		says(1, "UNLOCK a"), hears(1, "ERR LOST *");
	hears(2, GRANT);
	passes(SEC);
	says(2, "CHECK a");
	hears(2, "OK *");
}

/* The acknowledgement comes before the stores have answered BREAK, and some of them have nothing to break any more. */
TEST(BREAK_of_a_reader_that_acknowledges_at_once_is_OK)
{
	begins();
	says(1, "LOCK a mode=shared");
	hears(1, READS);
	all_feel(MOOD_SILENT);
	says(ADMIN, "BREAK a");
	hears(1, "! LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	all_feel(MOOD_WELL);
	passes(SEC);
	hears(ADMIN, "OK name=a free_in_ms=0");
	says(2, "LOCK a");
	hears(2, GRANT);
}

/* 3 relies on the lease as well: it held it with 1 when it was broken, or has gone before without a word. */
LOOP_TEST(a_reader_that_was_not_alone_acknowledges_for_itself, 2)
{
	begins();
	if (_i >= 1)
		session_opens_from_afar(3, 0);
	says(3, "LOCK a mode=shared");
	says(1, "LOCK a mode=shared");
	ignores(3);
	hears(1, READS);
	if (_i == 1)
		goes(3, GONE_RESET);
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	ignores(3);
	hears(1, "! LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	passes(8 * SEC);
	hears_nothing(2);
	passes(2500 * MSEC);
	hears(2, GRANT);
}

/* Its own daemon has nothing to wait for any more; the reader of the other one may believe. */
TEST(a_reader_acknowledges_for_its_own_daemon)
{
	two_daemons(3);
	session_opens_as_admin(ADMIN, 0);
	says(1, "LOCK a mode=shared");
	hears(1, READS);
	says(2, "LOCK a mode=shared");
	hears(2, READS);
	says(3, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	hears(1, "! LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	is_broken_elsewhere(1, 0, "a");
	passes(SEC);
	hears(2, "! LOST *");
	hears_nothing(3);
	says(2, "UNLOCK a");
	hears(2, "ERR LOST *");
	passes(SEC);
	hears(3, GRANT);
}

/* Of a lock or a semaphore all who lost it at this daemon have to acknowledge that. */
TEST(readers_who_were_not_alone_free_the_lock_when_all_have_acknowledged)
{
	begins();
	says(1, "LOCK a mode=shared");
	hears(1, READS);
	says(3, "LOCK a mode=shared");
	hears(3, READS);
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	hears(1, "! LOST *");
	hears(3, "! LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	says(1, "UNLOCK a");
	hears(1, "ERR NOTHELD *");
	passes(SEC);
	hears_nothing(2);
	says(3, "UNLOCK a");
	hears(3, "ERR LOST *");
	hears(2, GRANT);
}

/* The readers of the first loss acknowledge it while the second one is open. */
LOOP_TEST(readers_acknowledge_their_own_loss_alone, 2)
{
	begins();
	session_opens_from_afar(4, 0);
	says(1, "LOCK a mode=shared");
	says(3, "LOCK a mode=shared");
	says(ADMIN, "BREAK a");
	passes(11 * SEC);
	says(4, "LOCK a mode=shared");
	if (_i == 1)
		says(ADMIN, "BREAK a");
	else
		goes(4, GONE_RESET);
	says(2, "LOCK a wait=1m");
	ignores(1), ignores(3), ignores(4), ignores(ADMIN);
	says(1, "UNLOCK a");
	hears(1, "ERR LOST *");
	says(3, "UNLOCK a");
	hears(3, "ERR LOST *");
	passes(SEC);
	hears_nothing(2);
	passes(10 * SEC);
	hears(2, GRANT);
}

static void loses_a_permit(int session)
{
	hears(session, "! LOST name=a permit=* reason=broken*");
}

static void releases_a_lost_permit(int session)
{
	says(session, "RELEASE a");
	hears(session, "ERR LOST fence=* reason=broken*");
}

TEST(a_permit_that_was_broken_is_free_when_its_holder_has_acknowledged_that)
{
	begins();
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK name=a *");
	says(2, "ACQUIRE a limit=1 wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	loses_a_permit(1);
	passes(SEC);
	hears_nothing(2);
	releases_a_lost_permit(1);
	hears(2, "OK name=a permit=? *");
	says(1, "RELEASE a");
	hears(1, "ERR NOTHELD *");
	says(1, "ACQUIRE a limit=1");
	hears(1, "BUSY *");
}

/* The mark of the semaphore is open again when all permits of this daemon are acknowledged; a later one may have another limit. */
TEST(permits_that_were_broken_are_free_when_all_of_their_daemon_are_acknowledged)
{
	begins();
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK name=a *");
	says(3, "ACQUIRE a limit=2");
	hears(3, "OK name=a *");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	loses_a_permit(1);
	loses_a_permit(3);
	releases_a_lost_permit(1);
	passes(SEC);
	says(2, "LOCK a");
	hears(2, "ERR KIND *");
	says(2, "ACQUIRE a limit=2");
	hears(2, "BUSY *");
	releases_a_lost_permit(3);
	says(2, "LOCK a");
	hears(2, GRANT);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK name=a permit=0 *");
}

/* 0: it may not have read LOST; 1: it said that it goes; 2: its connection ended on this host; 3: count=0, which may be repeated. */
LOOP_TEST(the_end_of_a_session_acknowledges_its_permits_where_its_client_is_surely_gone, 4)
{
	begins();
	if (_i == 0)
		session_opens_from_afar(1, 0);
	if (_i == 3)
		says_hello(1, "grace=10s");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK name=a *");
	says(2, "ACQUIRE a limit=1 wait=1m");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	loses_a_permit(1);
	if (_i == 0)
		goes(1, GONE_RESET);
	if (_i == 1)
		says(1, "QUIT"), ignores(1);
	if (_i == 2)
		goes(1, GONE_HANGUP);
	for (int n = 0; n < 2 && _i == 3; n++) {
		says(1, "RELEASE a count=0");
		hears(1, "ERR LOST *");
	}
	if (_i == 0) {
		passes(9 * SEC);
		hears_nothing(2);
		passes(1500 * MSEC);
	}
	hears(2, "OK name=a permit=0 *");
}

/* The mark of the other one is broken at the stores as long as its client may believe. */
TEST(a_permit_is_acknowledged_for_its_own_daemon)
{
	two_daemons(3);
	session_opens_as_admin(ADMIN, 0);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=2");
	hears(2, "OK *");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	loses_a_permit(1);
	is_broken_elsewhere(1, 0, "a");
	passes(SEC);
	loses_a_permit(2);
	releases_a_lost_permit(1);
	says(1, "ACQUIRE a limit=2");
	hears(1, "BUSY *");
	releases_a_lost_permit(2);
	says(1, "ACQUIRE a limit=2");
	hears(1, "OK name=a permit=? *");
	says(3, "ACQUIRE a limit=2");
	hears(3, "OK name=a permit=? *");
	says(3, "ACQUIRE a limit=2");
	hears(3, "BUSY *");
}
