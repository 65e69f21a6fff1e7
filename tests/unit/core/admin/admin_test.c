/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/admin/admin.c: KILL and BREAK, and what becomes of the locks that they take from their holders. Session 9 is an administrator's. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <string.h>

#define ADMIN 9

static void begins(void)
{
	cluster_begin(3);
	session_opens_as_admin(ADMIN, 0);
}

FIXTURE(.teardown = cluster_close)

TEST(only_administrators_may)
{
	begins();
	says(1, "LOCK a");
	hears(1, GRANT);
	says(2, "KILL session=2");
	hears(2, "ERR DENIED KILL is for root, the user of the daemon and the group redlock-admin, over the Unix socket");
	says(2, "BREAK a");
	hears(2, "ERR DENIED BREAK is for root, *");
	session_opens_from_afar(3, 0);
	says(3, "BREAK a");
	hears(3, "ERR DENIED *");
	says(1, "CHECK a");
	hears(1, "OK *");
	says(ADMIN, "KILL");
	hears(ADMIN, "ERR ARG session= is missing: KILL session=N");
}

TEST(what_is_not_there_is_not_found)
{
	begins();
	says(ADMIN, "KILL session=77");
	hears(ADMIN, "ERR NOTFOUND *");
	says(ADMIN, "BREAK a");
	hears(ADMIN, "ERR NOTFOUND *");
}

/* --- KILL --- */

TEST(a_killed_session_is_told_what_it_lost_and_hung_up_on)
{
	begins();
	says(1, "LOCK a");
	hears(1, GRANT);
	says(1, "LOCK b owner=o");
	hears(1, "OK *");
	says(2, "LOCK c");
	hears(2, "OK *");
	says(1, "@w LOCK c wait=1m");
	says(ADMIN, "@k KILL session=2");
	hears(ADMIN, "@k OK session=2 n=2");
	hears(1, "! LOST name=a fence=* reason=broken");
	hears(1, "! LOST name=b fence=* reason=broken owner=o");
	ck_assert(hung_up(1));
	hears_nothing(1);
	ck_assert(was_logged("kill session=2 by=*"));
	says(ADMIN, "SHOW c");
	hears(ADMIN, "\\* role=holder *");
	hears(ADMIN, "OK n=1");
}

TEST(what_a_killed_session_held_goes_to_nobody_before_its_validity_is_over)
{
	int64_t valid_ms;

	begins();
	says(1, "LOCK a");
	valid_ms = number_in(hears(1, GRANT), "valid_ms");
	says(2, "LOCK a wait=1m");
	says(ADMIN, "KILL session=2");
	hears(ADMIN, "OK *");
	hears(1, "! LOST *");
	passes(valid_ms * MSEC);
	hears_nothing(2);
	passes(300 * MSEC);
	hears(2, GRANT);
}

TEST(lines_of_a_killed_session_are_not_served)
{
	begins();
	says(2, "LOCK a");
	hears(2, GRANT);
	says(1, "LOCK a wait=1m");
	says(1, "LOCK b");
	says(ADMIN, "KILL session=3");
	ck_assert(hung_up(1));
	hears(ADMIN, "OK session=3 n=0");
	says(ADMIN, "SHOW b");
	hears(ADMIN, "OK n=0 free=yes");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(SEC);
	says(ADMIN, "LOCK a");
	hears(ADMIN, GRANT);
}

LOOP_TEST(nobody_resumes_a_killed_session, 2)
{
	char secret[33] = "";
	const char *said;

	begins();
	says(1, "HELLO 1 grace=20s");
	said = hears(1, "OK * session=2 secret=* *");
	memcpy(secret, strstr(said, "secret=") + 7, 32);
	says(1, "LOCK a");
	hears(1, GRANT);
	if (_i)
		goes(1, GONE_HANGUP);
	says(ADMIN, "KILL session=2");
	hears(ADMIN, "OK session=2 n=1");
	if (!_i)
		ignores(1);
	ck_assert(journal_ends_with(0, JOURNAL_OVER, ""));
	says(3, "RESUME 2 %s", secret);
	hears(3, "ERR NOTFOUND *");
	says(4, "LOCK a wait=1m");
	passes(9 * SEC);
	hears_nothing(4);
	passes(1500 * MSEC);
	hears(4, GRANT);
	daemon_returns(0);
	says(5, "RESUME 2 %s", secret);
	hears(5, "ERR NOTFOUND *");
}

TEST(a_session_may_kill_itself)
{
	begins();
	says(ADMIN, "LOCK a");
	hears(ADMIN, GRANT);
	says(ADMIN, "KILL session=1");
	hears(ADMIN, "OK session=1 n=1");
	hears(ADMIN, "! LOST name=a *");
	ck_assert(hung_up(ADMIN));
}

TEST(a_killed_reader_leaves_the_others_and_its_EXTEND_is_lost)
{
	begins();
	says(1, "LOCK a mode=shared");
	says(2, "LOCK a mode=shared");
	ignores(1);
	ignores(2);
	all_feel(MOOD_SILENT);
	says(1, "@e EXTEND a");
	says(2, "@e EXTEND a");
	says(ADMIN, "KILL session=2");
	hears(ADMIN, "OK session=2 n=1");
	hears(1, "! LOST name=a fence=* reason=broken");
	hears(1, "@e ERR LOST *");
	hears_nothing(1);
	all_feel(MOOD_WELL);
	hears(2, "@e OK *");
	says(3, "LOCK a wait=1m");
	says(2, "UNLOCK a");
	hears(2, "OK *");
	passes(9 * SEC);
	hears_nothing(3);
	passes(1500 * MSEC);
	hears(3, GRANT);
}

/* --- BREAK --- */

TEST(a_lock_that_was_broken_is_granted_when_its_validity_is_over)
{
	int64_t valid_ms, free_in_ms;

	begins();
	says(1, "LOCK a");
	valid_ms = number_in(hears(1, GRANT), "valid_ms");
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	free_in_ms = number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms");
	hears(1, "! LOST name=a fence=* reason=broken");
	ck_assert_int_ge(free_in_ms, valid_ms);
	ck_assert_int_le(free_in_ms, valid_ms + 300);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK name=a free_in_ms=*");
	passes((free_in_ms - 1) * MSEC);
	hears_nothing(2);
	passes(MSEC);
	hears(2, GRANT);
	ck_assert(was_logged("break name=a by=*"));
}

/* Jobs that it has are lost with their locks, and go to nobody before their leases are over. 1: it misses its heartbeat. */
LOOP_TEST(a_killed_session_is_told_which_jobs_it_lost, 2)
{
	begins();
	says(1, "HELLO 1 heartbeat=1s");
	hears(1, "OK *");
	says(1, "DEFER mail hello id=j lock=l");
	hears(1, "OK *");
	says(1, "TAKE mail");
	hears(1, "OK queue=mail job=j *");
	says(2, "TAKE mail wait=1m");
	if (_i) {
		passes(1500 * MSEC);
	} else {
		says(ADMIN, "KILL session=2");
		hears(ADMIN, "OK session=2 n=2");
	}
	hears(1, _i ? "! LOST queue=mail job=j reason=idle" : "! LOST queue=mail job=j reason=broken");
	hears(1, _i ? "! LOST name=l fence=* reason=idle *" : "! LOST name=l fence=* reason=broken *");
	ck_assert(hung_up(1));
	passes(7 * SEC);
	hears_nothing(2);
	passes(5 * SEC);
	hears(2, "OK queue=mail job=j attempt=2 *");
}

/* The daemon is back, and the stores have not answered yet whether the lock of its previous run still stands. 1: readers; 2: the session is killed. */
LOOP_TEST(what_is_being_adopted_can_be_broken, 3)
{
	char secret[33] = "";
	int64_t valid_ms;

	begins();
	says(1, "HELLO 1 grace=30s");
	memcpy(secret, strstr(hears(1, "OK * session=2 secret=* *"), "secret=") + 7, 32);
	says(1, "LOCK a%s", _i == 1 ? " mode=shared" : "");
	valid_ms = number_in(hears(1, "OK *"), "valid_ms");
	says(1, "LOCK a owner=o%s", _i == 1 ? " mode=shared" : "");
	ignores(1);
	all_feel(MOOD_TARDY);
	daemon_returns(0);
	session_opens_as_admin(8, 0);
	says(4, "LOCK a wait=1m");
	says(8, _i == 2 ? "KILL session=2" : "BREAK a");
	hears(8, _i == 2 ? "OK session=2 n=1" : "OK name=a free_in_ms=*");
	all_feel(MOOD_WELL);
	says(1, "RESUME 2 %s", secret);
	hears(1, _i == 2 ? "ERR NOTFOUND *" : "OK session=2 n=0");
	for (int i = 0; i <= _i && _i < 2; i++)
		hears(1, "! LOST name=a fence=* reason=broken*");
	hears_nothing(5);
	if (!_i)
		says(1, "UNLOCK a"), hears(1, "ERR LOST *");
	else
		passes((valid_ms - 200) * MSEC), hears_nothing(4);
	passes(11 * SEC);
	hears(4, GRANT);
}

TEST(the_answer_to_BREAK_reckons_with_a_lock_delay)
{
	int64_t valid_ms;

	begins_with_delay(3, 5 * SEC);
	session_opens_as_admin(ADMIN, 0);
	says(1, "LOCK a delay=5s");
	valid_ms = number_in(hears(1, GRANT), "valid_ms");
	says(2, "LOCK a wait=1m");
	says(ADMIN, "BREAK a");
	ck_assert_int_ge(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), valid_ms + 5000);
	passes((valid_ms + 5000) * MSEC);
	hears_nothing(2);
	passes(1500 * MSEC);
	hears(2, GRANT);
	ignores(1);
}

TEST(breaks_in_flight_are_bounded)
{
	cluster_open(3);
	cluster.conf.limits.waiting = 2;
	daemon_starts(0);
	passes(SEC);
	session_opens_as_admin(1, 0);
	all_feel(MOOD_SILENT);
	says(1, "@1 BREAK a");
	says(1, "@2 BREAK b");
	says(1, "@3 BREAK c");
	hears(1, "@3 ERR LIMIT *2 requests in flight*");
	all_feel(MOOD_WELL);
	hears(1, "@1 ERR NOTFOUND *");
	hears(1, "@2 ERR NOTFOUND *");
}
