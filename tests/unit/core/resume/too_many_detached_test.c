/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/resume.c: which sessions are kept for RESUME when limits.detached is reached. */
#include "tests/fixture/resumable.h"

#include <check.h>

static struct secret s1;

FIXTURE(.teardown = cluster_close)

TEST(more_detached_sessions_than_the_limit_are_not_kept)
{
	cluster_open(1);
	cluster.conf.limits.detached = 1;
	daemon_starts(0);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=20s");
	says_hello(2, "grace=20s");
	says(1, "LOCK a");
	says(2, "LOCK b");
	ignores(1), ignores(2);
	goes(1, GONE_HANGUP);
	goes(2, GONE_HANGUP);
	ck_assert(was_logged("hang-up * reason=too-many-detached *"));
	says(3, "LOCK a");
	hears(3, "BUSY *");
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_DETACHED), 1);
	passes(12 * SEC);
	says(3, "LOCK a");
	hears(3, "BUSY name=a *");
	says(3, "LOCK b");
	hears(3, "OK name=b *");
}

/* limits.detached is 2. Sessions 1 and 2 have grace and drop, session 2 while it holds b. */
static void two_have_dropped(void)
{
	cluster_open(1);
	cluster.conf.limits.detached = 2;
	cluster.conf.own_uid = 1000; /* that of the sessions: they may have all places */
	daemon_starts(0);
	passes(2 * SEC);
	s1 = says_hello(1, "grace=20s");
	says_hello(2, "grace=20s");
	says(2, "LOCK b");
	ignores(2);
	goes(1, GONE_HANGUP);
	goes(2, GONE_HANGUP);
	says_hello(3, "grace=20s");
}

TEST(a_session_that_holds_something_is_kept_instead_of_the_oldest_that_holds_nothing)
{
	two_have_dropped();
	says(3, "LOCK c");
	ignores(3);
	goes(3, GONE_HANGUP);
	ck_assert(was_logged("hang-up * reason=too-many-detached *"));
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_DETACHED), 2);
	says(4, "LOCK b");
	hears(4, "BUSY name=b *");
	says(4, "LOCK c");
	hears(4, "BUSY name=c *");
	resumes(5, &s1);
	hears(5, "ERR NOTFOUND *");
}

TEST(a_session_that_holds_nothing_takes_no_place_of_another)
{
	two_have_dropped();
	goes(3, GONE_HANGUP);
	ck_assert_int_eq(figure(0, METRIC_SESSIONS_DETACHED), 2);
	says(4, "LOCK b");
	hears(4, "BUSY name=b *");
	is_resumed_with_nothing(5, &s1);
}

TEST(a_session_whose_wait_ended_while_it_was_detached_holds_nothing)
{
	cluster_open(1);
	cluster.conf.limits.detached = 1;
	daemon_starts(0);
	passes(2 * SEC);
	says(1, "LOCK a");
	hears(1, GRANT);
	s1 = says_hello(2, "grace=60s");
	says(2, "LOCK a wait=5s");
	goes(2, GONE_HANGUP);
	says_hello(3, "grace=60s");
	says(3, "LOCK c");
	ignores(3);
	passes(6 * SEC);
	goes(3, GONE_HANGUP);
	says(4, "LOCK c");
	hears(4, "BUSY name=c *");
	resumes(5, &s1);
	hears(5, "ERR NOTFOUND *");
}

TEST(a_restored_session_that_holds_nothing_gives_its_place_up)
{
	two_have_dropped();
	goes(3, GONE_HANGUP);
	daemon_returns(0);
	passes(2 * SEC);
	says_hello(4, "grace=20s");
	says(4, "LOCK c");
	ignores(4);
	goes(4, GONE_HANGUP);
	says(5, "LOCK b");
	hears(5, "BUSY name=b *");
	says(5, "LOCK c");
	hears(5, "BUSY name=c *");
	resumes(6, &s1);
	hears(6, "ERR NOTFOUND *");
}

/* How sessions drop that say they are gone, though a proxy or a reconnecting client may be all that went. */
static const enum gone gone_surely[] = {GONE_HANGUP, GONE_RESET};

LOOP_TEST(a_session_with_grace_that_is_not_kept_keeps_its_locks_until_its_client_stops_relying_on_them, 2)
{
	cluster_open(1);
	cluster.conf.limits.detached = 1;
	daemon_starts(0);
	passes(2 * SEC);
	says_hello(1, "grace=60s");
	says_hello(2, "grace=60s");
	says(1, "LOCK a");
	says(2, "LOCK b ttl=10s");
	says(2, "ACQUIRE c limit=1 ttl=10s");
	ignores(1), ignores(2);
	goes(1, GONE_HANGUP);
	goes(2, gone_surely[_i]);
	ck_assert(was_logged("hang-up * reason=too-many-detached *"));
	says(3, "LOCK b");
	hears(3, "BUSY name=b *");
	says(3, "ACQUIRE c limit=1");
	hears(3, "BUSY name=c *");
	passes(12 * SEC);
	says(3, "LOCK b");
	hears(3, "OK name=b *");
	says(3, "ACQUIRE c limit=1");
	hears(3, "OK name=c *");
}
