/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of one holder that are under way together. What the daemon has answered to one of them stays true whatever the others do next. */
#include "tests/fixture/held_lock.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define ASKED_MS 200 /* the shorter lease */

static struct secret s1;

/* 1 has extended a, which is under way, and has asked for a shorter lease behind that. */
static void a_shorter_lease_waits_behind_a_renewal(void)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	all_feel(MOOD_SILENT);
	says(1, "@1 EXTEND a");
	says(1, "@2 EXTEND a ttl=%ums", ASKED_MS);
}

FIXTURE(.teardown = cluster_close)

/* The round that answers the EXTEND lowers the votes. A longer validity that was told before would be taken back then. */
TEST(check_tells_no_more_than_the_shorter_lease_that_was_asked_for)
{
	a_shorter_lease_waits_behind_a_renewal();
	says(1, "@3 CHECK a");
	ck_assert_int_le(number_in(hears(1, "@3 OK name=a *"), "valid_ms"), ASKED_MS);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	ck_assert_int_le(number_in(hears(1, "@1 OK name=a *"), "valid_ms"), ASKED_MS);
	passes(ASKED_MS * MSEC);
	hears(1, "! RISK *");
	hears(1, "@2 ERR QUORUM *");
	hears(1, "! LOST name=a *");
	all_feel(MOOD_WELL);
}

TEST(a_lock_taken_again_is_told_no_more_than_the_shorter_lease_that_was_asked_for)
{
	a_shorter_lease_waits_behind_a_renewal();
	says(1, "@3 LOCK a");
	ck_assert_int_le(number_in(hears(1, "@3 OK name=a *"), "valid_ms"), ASKED_MS);
	all_feel(MOOD_WELL);
	passes(MSEC);
	ignores(1);
}

TEST(resume_tells_no_more_than_the_shorter_lease_that_was_asked_for)
{
	a_shorter_lease_waits_behind_a_renewal();
	resumes(2, &s1);
	ck_assert_int_le(number_in(hears(2, "\\* name=a *"), "valid_ms"), ASKED_MS);
	hears(2, "OK session=* n=1");
	all_feel(MOOD_WELL);
	passes(MSEC);
	ignores(1);
}

/* Only a minority could be asked for the shorter lease, so the deadline is that of the longer one. */
TEST(a_waiter_that_is_handed_a_lease_hears_no_more_than_its_renewals_ask_for)
{
	held_after_lock(3, "LOCK a");
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a wait=1m ttl=%ums", ASKED_MS);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, "OK name=a *");
	falls(1);
	falls(2);
	says(2, "EXTEND a ttl=%ums", ASKED_MS);
	hears(2, "! RISK *");
	hears(2, "ERR QUORUM *");
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	ck_assert_int_le(number_in(hears(3, "OK name=a * ttl_ms=200 *"), "valid_ms"), ASKED_MS);
	comes(1);
	comes(2);
	passes(SEC);
	ignores(3);
}

/* EXTEND was answered ERR, and then its votes came. The clock of the client may be slower by as much as the longer lease allows. */
TEST(a_longer_lease_that_came_late_is_believed_in_by_a_slow_clock)
{
	int64_t valid_us;

	cluster_begin(3);
	passes(2 * SEC);
	session_opens_from_afar(1, 0);
	says(1, "LOCK a ttl=1s renew=no");
	hears(1, "OK name=a *");
	all_feel(MOOD_TARDY);
	says(1, "EXTEND a ttl=30s");
	passes(60 * MSEC);
	hears(1, "ERR QUORUM *");
	all_feel(MOOD_WELL);
	says(1, "CHECK a");
	valid_us = number_in(hears(1, "OK name=a *"), "valid_ms") * MSEC;
	ck_assert_int_gt(valid_us, 29 * SEC);
	says(2, "LOCK a wait=1m");
	goes(1, GONE_RESET);
	passes(valid_us + valid_us / 100);
	hears_nothing(2);
	passes(50 * MSEC);
	hears(2, "OK name=a *");
}

/* The adoption decides whether the owner still has the lock. The request waits for it no longer than for busy stores. */
TEST(a_lock_without_wait_has_a_second_in_all_while_the_lock_of_its_owner_is_adopted)
{
	cluster_open(3);
	cluster.conf.timeout_us = 800 * MSEC;
	daemon_starts(0);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	says(2, "@1 LOCK a");
	passes(950 * MSEC);
	hears_nothing(2);
	passes(100 * MSEC);
	hears(2, "@1 ERR QUORUM *");
	all_feel(MOOD_WELL);
	passes(3 * SEC);
	ignores(2);
}

/*
 * Another daemon has the lock by then. The name stays blocked for as long as the session may trust its old grant, but a LOCK without wait= does not wait for
 * that.
 */
TEST(a_lock_without_wait_is_answered_when_the_adoption_of_its_owners_lock_fails)
{
	cluster_begin(3);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a");
	hears(1, "OK name=a *");
	daemon_ends(0);
	passes(11 * SEC);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(5, 1);
	says(5, "LOCK a");
	hears(5, "OK name=a *");
	all_feel(MOOD_SILENT);
	ck_assert_uint_eq(daemon_inherits(0, 0), 0);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	says(2, "@1 LOCK a");
	hears_nothing(2);
	all_feel(MOOD_WELL);
	passes(0);
	hears(2, "@1 BUSY name=a *");
	hears(2, "@r OK session=* n=0");
	hears(2, "! LOST name=a *");
	hears_nothing(2);
}
