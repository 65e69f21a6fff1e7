/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/renew.c, grant.c: a renewal that somebody wants who is not the watchdog. */
#include "tests/fixture/full_window.h"
#include "tests/fixture/readers.h"

#include <check.h>

/* What waits at the one store takes all of its room. */
static void store_is_silent_and_full(void)
{
	feels(0, MOOD_SILENT);
	says(4, "@1 LOCK other-1");
	says(4, "@2 LOCK other-2");
}

FIXTURE(.teardown = cluster_close)

TEST(the_renewal_for_a_downgrade_waits_for_room)
{
	begins_with_window(1, 1);
	says(1, "LOCK a ttl=30s");
	hears(1, "OK *");
	passes(5 * SEC);
	store_is_silent_and_full();
	says(2, "LOCK a mode=shared wait=1m");
	says(1, "LOCK a mode=shared");
	hears(1, "OK name=a *");
	passes(100 * MSEC);
	hears(1, "! RISK *");
	feels(0, MOOD_WELL);
	passes(3 * SEC);
	hears(1, "! SAFE *");
	hears(2, "OK name=a *");
	ignores(4);
}

TEST(the_renewal_is_asked_for_again_when_a_quorum_is_back)
{
	stores_have_room(3);
	says(1, "LOCK a ttl=30s");
	hears(1, "OK *");
	passes(20 * SEC);
	for (unsigned i = 0; i < 3; i++)
		falls(i);
	says(1, "LOCK a mode=shared");
	hears(1, "OK name=a *");
	says(2, "LOCK a mode=shared wait=1m");
	passes(100 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		comes(i);
	passes(12 * SEC);
	hears(2, "OK name=a *");
}

/* The store has just joined: its fence is ahead of its clock. */
TEST(readers_wait_until_stores_would_take_the_floor)
{
	cluster_begin(1);
	says(1, "LOCK a ttl=30s");
	hears(1, "OK *");
	says(1, "LOCK a mode=shared");
	hears(1, "OK *");
	says(2, "LOCK a mode=shared wait=25s");
	passes(3 * SEC);
	hears_nothing(2);
	passes(17 * SEC);
	hears(2, "OK *");
}
