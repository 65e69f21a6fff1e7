/* SPDX-License-Identifier: BSD-2-Clause */
/* What redlockd(8) promises when the clocks of servers are set back: which names last longer for it, and which do not. */
#include "tests/fixture/cluster.h"

#include <check.h>

#define HOUR (3600 * SEC)

static const unsigned sizes[] = {1, 3};

/* 1 asks daemon 0, and 2 asks daemon 1. */
static void two_daemons_with_delay(unsigned nodes)
{
	begins_with_delay(nodes, 10 * SEC);
	passes(2 * SEC);
	daemon_starts(1);
	passes(2 * SEC);
	session_opens(2, 1);
}

static void an_hour_back(unsigned nodes)
{
	for (unsigned i = 0; i < nodes; i++)
		cluster.node[i].clock_us -= HOUR;
	passes(3 * SEC);
}

static void granted_within(int64_t us)
{
	hears_nothing(2);
	passes(us);
	hears(2, "OK name=a *");
}

FIXTURE(.teardown = cluster_close, .seconds = 30)

LOOP_TEST(a_name_that_its_holder_releases_is_free_at_once, 2)
{
	two_daemons_with_delay(sizes[_i]);
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "LOCK a wait=1m");
	an_hour_back(sizes[_i]);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	granted_within(1100 * MSEC);
}

/* Also where the lease was renewed since. No key ends sooner than before, but a lock delay is set anew. */
LOOP_TEST(a_lock_delay_that_begins_after_it_lasts_no_longer, 2)
{
	two_daemons_with_delay(sizes[_i]);
	says(1, "LOCK a delay=3s");
	hears(1, "OK *");
	says(1, "LOCK b");
	hears(1, "OK *");
	an_hour_back(sizes[_i]);
	passes(5 * SEC);
	says(2, "LOCK a wait=1m");
	goes(1, GONE_HANGUP);
	passes(1500 * MSEC);
	granted_within(3 * SEC);
}

LOOP_TEST(a_grant_after_it_lasts_no_longer, 2)
{
	two_daemons_with_delay(sizes[_i]);
	an_hour_back(sizes[_i]);
	says(1, "LOCK a ttl=5s");
	hears(1, "OK *");
	daemon_ends(0);
	says(2, "LOCK a wait=1m");
	passes(4 * SEC);
	granted_within(2 * SEC);
}

/* No daemon is left that knows better. */
LOOP_TEST(the_locks_of_a_daemon_that_dies_last_longer_by_the_step_back, 2)
{
	two_daemons_with_delay(sizes[_i]);
	says(1, "LOCK a ttl=5s");
	hears(1, "OK *");
	an_hour_back(sizes[_i]);
	daemon_ends(0);
	says(2, "LOCK a wait=2h");
	passes(HOUR - 2 * SEC);
	granted_within(10 * SEC);
}
