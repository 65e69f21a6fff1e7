/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/break.c: BREAK of what another daemon holds, or nobody that is known. Session 9 is an administrator's. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <string.h>

#define ADMIN 9

/* Session 2 holds a at daemon 1. Returns its valid_ms. */
static int64_t held_elsewhere(unsigned nodes)
{
	two_daemons(nodes);
	session_opens_as_admin(ADMIN, 0);
	says(2, "LOCK a");
	return number_in(hears(2, GRANT), "valid_ms");
}

FIXTURE(.teardown = cluster_close)

RANGE_TEST(the_daemon_of_the_holder_tells_it_at_its_next_renewal, 1, 6)
{
	int64_t valid_ms = held_elsewhere(_i), free_in_ms;

	says(1, "LOCK a wait=1m");
	passes(100 * MSEC);
	says(ADMIN, "BREAK a");
	free_in_ms = number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms");
	ck_assert_int_ge(free_in_ms, valid_ms - 100);
	hears_nothing(2);
	passes(3400 * MSEC);
	hears(2, "! LOST name=a fence=* reason=broken");
	passes((valid_ms - 3500) * MSEC);
	hears_nothing(1);
	passes(SEC);
	hears(1, GRANT);
}

TEST(a_message_makes_the_daemon_of_the_holder_look_at_once)
{
	held_elsewhere(3);
	is_broken_elsewhere(1, 0, "a");
	is_broken_elsewhere(1, 0, "b");
	passes(MSEC);
	hears_nothing(2);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(2, "! LOST name=a fence=* reason=broken");
}

/* The renewal was carried out before the lock was broken, and its answers come behind the message. */
TEST(a_message_during_a_renewal_makes_the_daemon_of_the_holder_look_behind_it)
{
	unsigned renewals;

	held_elsewhere(3);
	passes(3200 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_TARDY);
	renewals = asked(CALL_EXTEND);
	for (unsigned i = 0; i < 50 && asked(CALL_EXTEND) == renewals; i++)
		passes(10 * MSEC);
	ck_assert_uint_gt(asked(CALL_EXTEND), renewals);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(cluster.node[i].mood, MOOD_TARDY);
	says(ADMIN, "BREAK a");
	for (unsigned i = 0; i < 3; i++)
		serves(i, waiting_at(i));
	for (unsigned i = 0; i < 3; i++)
		serves(i, waiting_at(i));
	hears(ADMIN, "OK *");
	is_broken_elsewhere(1, 0, "a");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	passes(10 * MSEC);
	hears(2, "! RISK *"); /* the third store has not answered the renewal before */
	hears(2, "! LOST name=a fence=* reason=broken");
}

TEST(what_was_broken_is_free_when_the_holder_says_that_it_has_heard)
{
	held_elsewhere(3);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(2, "! LOST *");
	says(1, "LOCK a");
	hears(1, "BUSY *");
	says(ADMIN, "SHOW a");
	hears(ADMIN, "\\* role=kept pos=0 ttl_ms=*");
	hears(ADMIN, "OK n=1");
	says(2, "UNLOCK a");
	hears(2, "ERR LOST *");
	says(1, "LOCK a");
	hears(1, GRANT);
}

TEST(a_holder_that_unlocks_before_it_has_heard_frees_what_was_broken)
{
	held_elsewhere(3);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(1, "LOCK a");
	hears(1, GRANT);
}

TEST(the_lock_delay_of_what_was_broken_is_kept)
{
	begins_with_delay(3, 5 * SEC);
	passes(SEC);
	daemon_starts(1);
	session_opens(2, 1);
	session_opens_as_admin(ADMIN, 0);
	passes(SEC);
	says(2, "LOCK a delay=5s");
	hears(2, GRANT);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(2, "! LOST *");
	says(2, "UNLOCK a");
	hears(2, "ERR LOST *");
	says(1, "LOCK a wait=1m");
	passes(14800 * MSEC);
	hears_nothing(1);
	passes(1400 * MSEC);
	hears(1, GRANT);
}

TEST(an_EXTEND_of_what_was_broken_is_lost)
{
	held_elsewhere(3);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	says(2, "EXTEND a");
	hears(2, "! LOST name=a fence=* reason=broken");
	hears(2, "ERR LOST *");
}

TEST(a_daemon_that_returns_does_not_adopt_what_was_broken)
{
	char secret[33] = "";
	int64_t valid_ms;

	two_daemons(3);
	session_opens_as_admin(ADMIN, 0);
	says(2, "HELLO 1 grace=20s");
	memcpy(secret, strstr(hears(2, "OK * session=1 secret=* *"), "secret=") + 7, 32);
	says(2, "LOCK a");
	valid_ms = number_in(hears(2, GRANT), "valid_ms");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK *");
	says(1, "LOCK a wait=1m");
	daemon_returns(1);
	passes(MSEC);
	session_opens(3, 1);
	says(3, "RESUME 1 %s", secret);
	hears(3, "OK session=1 n=0");
	hears(3, "! LOST name=a fence=* reason=broken");
	passes((valid_ms - 2) * MSEC);
	hears_nothing(1);
	passes(2 * SEC);
	hears(1, GRANT);
}

LOOP_TEST(a_key_that_no_redlockd_wrote_is_deleted, 2)
{
	cluster_begin(3);
	session_opens_as_admin(ADMIN, 0);
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "somebody", _i ? 5 * SEC : INT64_MAX / 4);
	says(1, "LOCK a wait=1m");
	passes(SEC);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK name=a free_in_ms=0");
	passes(SEC);
	hears(1, GRANT);
}

TEST(a_minority_of_the_stores_breaks_nothing)
{
	held_elsewhere(3);
	falls(1);
	falls(2);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "ERR QUORUM *");
	comes(1);
	comes(2);
	passes(5 * SEC);
	says(2, "CHECK a");
	hears(2, "OK *");
	all_feel(MOOD_SILENT);
	says(ADMIN, "BREAK a");
	passes(60 * MSEC);
	hears(ADMIN, "ERR QUORUM *");
	all_feel(MOOD_WELL);
}

/* A minority was broken, and nothing came of it. What the lock is lost for later is something else. */
TEST(a_break_in_vain_is_no_reason_of_a_later_loss)
{
	held_elsewhere(3);
	all_feel(MOOD_SILENT);
	says(ADMIN, "BREAK a");
	serves(0, 1);
	serves(1, 1);
	serves(0, 1);
	loses(1, waiting_at(1));
	loses(2, waiting_at(2));
	hears(ADMIN, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	passes(25 * SEC);
	says(2, "CHECK a");
	hears(2, "OK *");
	ignores(2);
	all_feel(MOOD_SILENT);
	passes(12 * SEC);
	hears(2, "! RISK *");
	hears(2, "! LOST name=a fence=* reason=quorum");
	all_feel(MOOD_WELL);
}

/* Stores 0 and 2 have the value of the former holder, when store 2 is looked at; then it goes to session 1, by stores 0 and 1. */
TEST(a_lock_that_has_gone_to_a_session_here_meanwhile_is_left_alone)
{
	held_elsewhere(3);
	feels(1, MOOD_SILENT);
	feels(2, MOOD_TARDY);
	says(ADMIN, "BREAK a");
	hears_nothing(ADMIN);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	says(1, "LOCK a wait=1m");
	serves_daemon(1, 1, 1);
	serves_daemon(0, 1, 2);
	hears(1, GRANT);
	hears_nothing(ADMIN);
	feels(2, MOOD_WELL);
	hears(ADMIN, "ERR NOTFOUND *");
	hears_nothing(1);
	feels(1, MOOD_WELL);
	says(1, "CHECK a");
	hears(1, "OK *");
}

/* Its value stands at one store still when that is broken, and the others have the value of its next holder. */
TEST(a_lock_that_has_gone_elsewhere_meanwhile_is_left_alone)
{
	held_elsewhere(3);
	all_feel(MOOD_SILENT);
	says(ADMIN, "BREAK a");
	serves(0, 1);
	serves(1, 1);
	for (unsigned i = 0; i < 2; i++)
		key_is_overwritten(i, "a", "d.host:1:00112233445566778899aabbccddeeff", 10 * SEC);
	serves(2, 2);
	serves(0, 1);
	serves(1, 1);
	hears(ADMIN, "ERR NOTFOUND *");
	all_feel(MOOD_WELL);
	ignores(2);
}

/* The holder's daemon may put the key back where it is missing, and renew it where nobody could break it: together these are a quorum. */
TEST(a_store_without_the_key_has_broken_nothing)
{
	held_elsewhere(3);
	key_is_overwritten(1, "a", "x", MSEC);
	passes(3 * MSEC);
	all_feel(MOOD_SILENT);
	says(ADMIN, "BREAK a");
	serves(0, 1);
	serves(2, 1);
	serves(0, 1);
	serves(1, 2);
	loses(2, waiting_at(2));
	hears(ADMIN, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	ignores(2);
}

TEST(what_is_unlocked_meanwhile_is_not_found)
{
	held_elsewhere(3);
	all_feel(MOOD_SILENT);
	says(ADMIN, "BREAK a");
	serves(0, 1);
	serves(1, 1);
	says(2, "UNLOCK a");
	hears(2, "OK *");
	for (unsigned i = 0; i < 3; i++)
		serves_daemon(1, i, 1);
	all_feel(MOOD_WELL);
	hears(ADMIN, "ERR NOTFOUND *");
}

/* Somebody has made the key persistent, and its daemon is gone: then it stays. */
TEST(a_key_that_never_expires_is_not_said_to_be_free)
{
	cluster_begin(3);
	session_opens_as_admin(ADMIN, 0);
	for (unsigned i = 0; i < 3; i++)
		key_is_overwritten(i, "a", "d.host:1:00112233445566778899aabbccddeeff", -1);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK name=a free_in_ms=-1");
}

/* Whoever asks the stores about it would renew it. */
TEST(what_is_said_about_a_break_renews_no_hold_that_nobody_renews)
{
	two_daemons(3);
	says(2, "LOCK a renew=no");
	hears(2, GRANT);
	passes(4 * SEC);
	is_broken_elsewhere(1, 0, "a");
	passes(100 * MSEC);
	says(2, "CHECK a");
	ck_assert_int_lt(number_in(hears(2, "OK name=a *"), "valid_ms"), 6000);
}
