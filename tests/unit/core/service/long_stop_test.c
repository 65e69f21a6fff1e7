/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/service/service.c: the daemon was stopped for longer than its leases last, and goes on. */
#include "tests/fixture/cluster_part.h"
#include "tests/fixture/held_lock.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

LOOP_TEST(after_a_long_stop_a_loss_is_told_before_any_answer, 4)
{
	static const char *const request[] = {"CHECK a", "UNLOCK a", "EXTEND a", "LOCK a"};

	cluster_begin(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	jumps(20 * SEC);
	says(1, "%s", request[_i]);
	hears(1, "! LOST name=a fence=* reason=quorum");
	if (_i < 3)
		hears(1, "ERR LOST *");
	else
		ck_assert_int_lt(number_in(hears(1, GRANT), "valid_ms"), 9898);
}

TEST(after_a_long_stop_an_answer_that_lay_in_a_socket_is_no_vote)
{
	cluster_begin(3);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_TARDY);
	says(1, "LOCK a wait=1m");
	jumps(20 * SEC);
	for (unsigned i = 0; i < 3; i++)
		serves(i, 1);
	hears_nothing(1);
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_WELL);
	passes(2 * SEC);
	hears(1, "OK name=a fence=* valid_ms=98* ttl_ms=10000 count=1");
}

TEST(after_a_long_stop_a_renewal_that_lay_in_a_socket_does_not_save_the_lease)
{
	held_after_lock(3, "LOCK a");
	for (unsigned i = 0; i < 3; i++)
		feels(i, MOOD_TARDY);
	says(1, "EXTEND a");
	jumps(20 * SEC);
	feels(0, MOOD_WELL);
	hears(1, "! LOST name=a *");
	hears(1, "ERR LOST *");
	feels(1, MOOD_WELL);
	feels(2, MOOD_WELL);
	hears_nothing(1);
}

TEST(after_a_long_stop_another_daemon_may_hold_what_this_one_held)
{
	two_daemons(3);
	says(1, "LOCK a");
	hears(1, GRANT);
	cluster.daemon[0].stopped = true;
	passes(4 * SEC);
	says(2, "LOCK a wait=1m");
	hears_nothing(2);
	passes(10 * SEC);
	hears(2, GRANT);
	cluster.daemon[0].stopped = false;
	says(1, "CHECK a");
	hears(1, "! LOST *");
	hears(1, "ERR LOST *");
	runs();
	says(2, "CHECK a");
	hears(2, "OK name=a *");
}

TEST(a_client_that_spoke_in_time_is_not_blamed_for_the_daemons_own_stop)
{
	cluster_begin(3);
	says(1, "HELLO 1 heartbeat=2s");
	hears(1, "OK *");
	says(1, "LOCK a");
	hears(1, GRANT);
	jumps(5 * SEC);
	says(1, "CHECK a");
	hears(1, "OK name=a fence=* valid_ms=* count=1");
	ck_assert(!hung_up(1));
	passes(3 * SEC);
	hears(1, "! LOST name=a fence=* reason=idle");
	ck_assert(hung_up(1));
}
