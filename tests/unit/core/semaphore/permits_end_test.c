/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/semaphore/permits.c: sessions that end while some of their permits are asked for. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(what_one_permit_gives_back_at_the_end_of_its_session_is_not_granted_to_another_of_it)
{
	unsigned calls;

	cluster_begin(1);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(1, "@w ACQUIRE a limit=1 wait=1m");
	passes(SEC);
	hears_nothing(1);
	calls = asked(CALL_ACQUIRE);
	says(1, "@q QUIT");
	passes(SEC);
	ck_assert_uint_eq(asked(CALL_ACQUIRE), calls);
	says(2, "ACQUIRE a limit=1");
	hears(2, "OK *");
}

/* Timers of the stores are stopped after those of the permits: sanitizers show one that is left. */
TEST(a_daemon_that_ends_stops_the_timers_of_permits)
{
	cluster_begin(3);
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	for (unsigned i = 0; i < 8; i++)
		says(2, "@%u ACQUIRE a limit=1 wait=%us", i, i + 1);
	daemon_ends(0);
}
