/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/waitowners.c, waittable.c: deadlocks within one daemon, and which of several owners of a session is refused. */
#include "tests/fixture/groups.h"

#include <check.h>

#define FOUND_US (10 * SEC) /* a deadlock is found by then */

FIXTURE(.teardown = cluster_close)

/* Session 1 has a, and waits for b or c, which 2 and 3 have. Both of them wait for a, in this daemon. */
LOOP_TEST(a_LOCK_is_refused_at_once_that_would_block_the_last_name_of_a_LOCKANY, 2)
{
	cluster_open(1);
	if (_i == 1) {
		cluster.conf.store = "memory";
		cluster.conf.shared = false;
	}
	daemon_starts(0);
	passes(SEC);
	takes(1, "a");
	takes(2, "b");
	takes(3, "c");
	says(1, "LOCKANY b c wait=100s");
	passes(SEC / 10);
	says(2, "LOCK a wait=100s");
	passes(SEC / 10);
	says(3, "LOCK a wait=100s");
	hears(3, "ERR DEADLOCK cycle=a<-c<-a");
	hears_nothing(1);
	hears_nothing(2);
	gives_back(3, "c");
	hears(1, "OK name=c *");
}

/* Session 1 has a, and waits for b, which 2 has, by a LOCKALL. Another owner of that session waits for b as well, and holds nothing. */
TEST(of_several_owners_of_a_session_the_one_that_holds_is_refused)
{
	two_daemons(3);
	takes(1, "a");
	takes(2, "b");
	says(2, "LOCK a wait=100s");
	passes(SEC / 10);
	says(1, "@y LOCKALL c b wait=100s");
	says(1, "@x LOCKALL d b owner=x wait=100s");
	passes(FOUND_US);
	hears(1, "@y ERR DEADLOCK *");
	hears_nothing(1);
	hears_nothing(2);
}
