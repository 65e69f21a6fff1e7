/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/permits.c: sessions that end while several of their permits are asked for. */
#include "tests/fixture/cluster.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

/* One has a slot, and its store has not answered about another; the other waits for both. */
TEST(what_one_permit_gives_back_at_the_end_of_its_session_is_not_granted_to_another_of_it)
{
	cluster_begin(1);
	says(2, "ACQUIRE a limit=2 weight=2");
	hears(2, "OK *");
	says(3, "ACQUIRE a limit=2 wait=100ms");
	passes(200 * MSEC);
	hears(3, "TIMEOUT *");
	says(2, "RELEASE a");
	hears(2, "OK *");
	all_feel(MOOD_SILENT);
	says(1, "@1 ACQUIRE a limit=2 weight=2");
	serves(0, 2);
	says(1, "@2 ACQUIRE a limit=2 wait=1m");
	passes(MSEC);
	hears_nothing(1);
	goes(1, GONE_HANGUP);
	all_feel(MOOD_WELL);
	passes(SEC);
	says(2, "ACQUIRE a limit=2 weight=2");
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
