/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/resume.c: requests that wait since before a RESUME make way for one in the other mode, which cannot be one of them repeated. */
#include "tests/fixture/groups.h"
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s2; /* of session 2 */

FIXTURE(.teardown = cluster_close)

/* The first name ends the LOCKALL, which has a; the second one ends the LOCKANY, which must not be granted that before. */
TEST(groups_that_make_way_for_one_request_grant_each_other_nothing)
{
	cluster_begin(1);
	takes(1, "b");
	takes(1, "c");
	takes(3, "a");
	s2 = says_hello(2, "grace=20s");
	says(2, "@1 LOCKALL a b wait=1h");
	says(2, "@2 LOCKANY c a wait=1h");
	goes(2, GONE_RESET);
	passes(2 * SEC);
	gives_back(3, "a");
	is_resumed_with_nothing(4, &s2);
	ck_assert(key_is_there(0, "a"));
	says(4, "@x LOCKANY b a c mode=shared wait=1m");
	hears(4, "@x OK name=a * mode=shared");
	gives_back(4, "a");
	passes(10 * MSEC);
	ck_assert(!key_is_there(0, "a"));
}

TEST(a_request_in_the_other_mode_ends_the_lockall_that_was_not_repeated)
{
	static const char *const asks[] = {"LOCK a mode=shared", "LOCKALL a c mode=shared", "LOCKALL a b mode=shared wait=1m", "LOCKANY a c mode=shared"};

	for (unsigned i = 0; i < 4; i++) {
		s2 = waits_and_drops("LOCKALL a b wait=1m", "grace=20s");
		is_resumed_with_nothing(4, &s2);
		says(4, "%s", asks[i]);
		gives_back(1, "b");
		passes(10 * MSEC);
		hears(4, "*name=a *mode=shared");
		if (i < 3)
			cluster_close();
	}
}

/* When the connection breaks, one LOCKALL insists, and keeps a; the other waits for a. */
TEST(what_a_lockall_gives_back_is_not_granted_to_another_that_makes_way_as_well)
{
	static const char *const asks[] = {"LOCK a mode=shared", "LOCKALL a b mode=shared", "LOCKALL a b"};

	for (unsigned i = 0; i < 3; i++) {
		cluster_begin(1);
		takes(1, "a");
		takes(3, "b");
		s2 = says_hello(2, "grace=20s");
		says(2, "@1 LOCKALL a b wait=1m");
		says(2, "@2 LOCKALL a b wait=1m");
		passes(2 * SEC);
		gives_back(1, "a");
		passes(MSEC);
		goes(2, GONE_RESET);
		is_resumed_with_nothing(4, &s2);
		says(4, "%s", asks[i]);
		hears(4, i == 0 ? "OK name=a *mode=shared" : "BUSY name=b *");
		gives_back(3, "b");
		passes(10 * MSEC);
		ck_assert(key_is_there(0, "a") == (i == 0) && !key_is_there(0, "b"));
		if (i < 2)
			cluster_close();
	}
}

TEST(all_locks_that_were_not_repeated_make_way_for_one_in_the_other_mode)
{
	cluster_begin(1);
	takes(1, "b");
	s2 = says_hello(2, "grace=20s");
	says(2, "@1 LOCK b wait=1m");
	says(2, "@2 LOCK b wait=1m");
	says(2, "@3 LOCK b wait=1m");
	goes(2, GONE_RESET);
	is_resumed_with_nothing(4, &s2);
	says(4, "LOCK b mode=shared wait=1m");
	gives_back(1, "b");
	passes(10 * MSEC);
	hears(4, "OK name=b *mode=shared");
}

/* Nobody else of this daemon is concerned with the name. */
TEST(the_only_lock_that_waits_for_another_daemon_makes_way)
{
	two_daemons(1);
	takes(1, "a");
	session_opens(3, 1);
	session_opens(4, 1);
	s2 = says_hello(3, "grace=20s");
	says(3, "LOCK a wait=1m");
	passes(100 * MSEC);
	goes(3, GONE_RESET);
	is_resumed_with_nothing(4, &s2);
	says(4, "LOCK a mode=shared wait=1m");
	gives_back(1, "a");
	passes(5 * SEC);
	hears(4, "OK name=a *mode=shared");
}

TEST(a_lockall_in_the_other_mode_ends_the_lock_that_was_not_repeated)
{
	s2 = waits_and_drops("LOCK b wait=1m", "grace=20s");
	is_resumed_with_nothing(4, &s2);
	says(4, "LOCKALL a b mode=shared wait=1m");
	gives_back(1, "b");
	passes(10 * MSEC);
	hears_all(4, "", "ab");
}
