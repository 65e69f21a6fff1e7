/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/adopt.c and resume.c: RESUME is answered before the stores have decided an adoption. The session goes on, and hears what becomes of the
 * lock. */
#include "tests/fixture/adopting.h"

#include <check.h>

static struct secret s1;
static int64_t fence;

/* Session 2 resumes session 1, and its a is still open. */
static void is_resumed_undecided(void)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(2010 * MSEC);
	hears(2, "@r OK session=* n=0 open=1");
}

FIXTURE(.teardown = cluster_close)

TEST(RESUME_answers_in_bounded_time_and_the_open_locks_follow)
{
	is_resumed_undecided();
	says(2, "CHECK a");
	hears(2, "ERR QUORUM *");
	says(2, "EXTEND a");
	hears(2, "ERR QUORUM *");
	says(3, "LOCK a");
	hears(3, "BUSY name=a *");
	all_come();
	hears(2, "! SAFE name=a fence=* valid_ms=*");
	says(2, "CHECK a");
	ck_assert_int_eq(number_in(hears(2, "OK name=a * count=1"), "fence"), fence);
}

TEST(a_grant_that_was_not_notified_is_kept_no_longer_because_it_was_adopted_late)
{
	cluster_begin(3);
	passes(2 * SEC);
	says(3, "LOCK a");
	ignores(3);
	s1 = says_hello(1, "grace=30s");
	says(1, "LOCK a wait=1m");
	goes(1, GONE_HANGUP);
	says(3, "UNLOCK a");
	ignores(3);
	daemon_is_back();
	resumes(2, &s1);
	passes(2010 * MSEC);
	hears(2, "OK session=* n=0 open=1");
	all_come();
	hears_nothing(2);
	says(4, "LOCK a wait=2m");
	passes(29 * SEC);
	hears_nothing(4);
	passes(2 * SEC);
	hears(4, GRANT);
	says(2, "CHECK a");
	hears(2, "ERR NOTHELD *");
}

TEST(a_lock_that_no_quorum_confirms_is_lost_when_it_must_have_expired)
{
	fence = adoption_is_under_way(&s1);
	says(2, "@r RESUME %lld %s", (long long)s1.serial, s1.text);
	passes(10 * SEC);
	hears(2, "@r OK session=* n=0 open=1");
	hears_nothing(2);
	passes(SEC + 210 * MSEC);
	hears(2, "! LOST name=a fence=* reason=quorum");
	all_come();
	passes(SEC);
	says(2, "CHECK a");
	hears(2, "ERR LOST *");
	says(3, "LOCK a wait=1m");
	ck_assert_int_gt(number_in(hears(3, GRANT), "fence"), fence);
}

TEST(unlock_before_the_adoption_is_decided_releases_the_old_value)
{
	is_resumed_undecided();
	says(2, "UNLOCK a");
	hears(2, "OK name=a count=0");
	all_come();
	passes(SEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	passes(8 * SEC); /* the cluster does not know that 1 and 2 are one client */
	says(3, "LOCK a");
	hears(3, GRANT);
}

TEST(a_lock_of_the_same_owner_meanwhile_is_reentrant_when_it_is_adopted)
{
	is_resumed_undecided();
	says(2, "@l LOCK a");
	says(2, "@w LOCK a wait=1m");
	all_come();
	hears(2, "! SAFE *");
	ck_assert_int_eq(number_in(hears(2, "@l OK name=a * count=2"), "fence"), fence);
	hears(2, "@w OK name=a * count=3");
}

/* Without a quorum there is no decision. A LOCK without wait= hears so, and does not wait until the lease must have expired. */
TEST(a_lock_of_the_same_owner_that_does_not_wait_is_answered_meanwhile)
{
	is_resumed_undecided();
	says(2, "@l LOCK a");
	says(2, "@w LOCK a wait=1m");
	passes(3 * cluster.conf.timeout_us);
	hears(2, "@l ERR QUORUM *");
	hears_nothing(2);
	all_come();
	hears(2, "! SAFE *");
	hears(2, "@w OK name=a * count=2");
}
