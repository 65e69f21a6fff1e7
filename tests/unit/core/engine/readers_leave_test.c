/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/hold.c, engine_data.c, admin.c: readers of daemon 0 leave, and what they leave behind holds for other daemons, too. */
#include "tests/fixture/readers.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define ADMIN 6

FIXTURE(.teardown = cluster_close)

/* The stores are silent since the daemon was started again. Its lease is not confirmed yet. */
TEST(keep_counts_while_the_lease_is_being_adopted)
{
	struct secret s;

	stores_have_room(3);
	s = says_hello(1, "grace=1m");
	says(1, "LOCK a");
	hears(1, "OK *");
	all_feel(MOOD_SILENT);
	daemon_returns(0);
	passes(100 * MSEC);
	session_opens(3, 0);
	resumes(3, &s);
	passes(2100 * MSEC);
	hears(3, "OK session=* n=0 open=1");
	says(3, "UNLOCK a keep=30s");
	hears(3, "OK *count=0");
	all_feel(MOOD_WELL);
	passes(29 * SEC);
	session_opens(4, 0);
	says(4, "LOCK a");
	hears(4, "BUSY *");
	passes(2 * SEC);
	says(4, "LOCK a");
	hears(4, GRANT);
}

TEST(a_break_while_a_reader_that_has_gone_may_believe_ends_the_holds_of_other_daemons)
{
	two_daemons(3);
	reads(1);
	reads(2);
	goes(1, GONE_KEEPALIVE);
	session_opens_as_admin(ADMIN, 0);
	says(ADMIN, "BREAK a");
	hears(ADMIN, "OK name=a free_in_ms=*");
	is_broken_elsewhere(1, 0, "a");
	passes(MSEC);
	hears(2, "! LOST name=a fence=* reason=broken");
	passes(11 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}

/* Somebody has deleted the keys, but the reader has not heard of that. */
TEST(a_break_that_ends_a_hold_here_says_so_whatever_the_stores_have)
{
	two_daemons(3);
	reads(1);
	for (unsigned i = 0; i < 3; i++)
		memory_remove(cluster.node[i].memory, SPAN("a"));
	session_opens_as_admin(ADMIN, 0);
	says(ADMIN, "BREAK a");
	hears(1, "! LOST name=a fence=* reason=broken");
	ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 9000);
	passes(SEC);
	says(ADMIN, "BREAK a");
	ck_assert_int_gt(number_in(hears(ADMIN, "OK name=a free_in_ms=*"), "free_in_ms"), 8000);
	says(ADMIN, "BREAK b");
	hears(ADMIN, "ERR NOTFOUND *");
}

/* Another one leaves last. */
TEST(a_reader_that_missed_its_heartbeat_counts_until_its_client_can_rely_on_nothing)
{
	two_daemons(3);
	says(1, "HELLO 1 heartbeat=1s");
	hears(1, "OK *");
	reads(1);
	reads(3);
	passes(1500 * MSEC);
	hears(1, "! LOST name=a fence=* reason=idle");
	says(3, "UNLOCK a");
	hears(3, "OK name=a count=0");
	passes(7 * SEC);
	says(2, "LOCK a");
	hears(2, "BUSY *");
	passes(4 * SEC);
	says(2, "LOCK a");
	hears(2, GRANT);
}
