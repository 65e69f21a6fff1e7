/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/waittable.c: deadlocks among readers and writers of several daemons. */
#include "tests/fixture/cluster.h"

#include <check.h>

#define FOUND_US (10 * SEC) /* a deadlock is found by then */

static void reads(unsigned k, const char *name)
{
	says(k, "LOCK %s mode=shared wait=5s", name);
	passes(2 * SEC);
	hears(k, "OK name=*");
}

TEST(of_two_readers_of_two_hosts_that_wait_to_write_what_the_other_reads_one_is_refused)
{
	two_daemons(3);
	session_opens(1, 0);
	reads(1, "a");
	reads(2, "b");
	says(1, "LOCK b wait=100s");
	passes(SEC / 10);
	says(2, "LOCK a wait=100s");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK *");
	hears_nothing(1);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	passes(3 * SEC);
	hears(1, "OK name=b *");
	cluster_close();
}

TEST(readers_that_hold_a_lock_together_and_wait_for_others_are_in_no_deadlock)
{
	two_daemons(3);
	session_opens(1, 0);
	session_opens(3, 1);
	reads(1, "a");
	reads(2, "a");
	says(3, "LOCK b");
	hears(3, "OK *");
	says(1, "LOCK b wait=100s");
	says(2, "LOCK b wait=100s");
	passes(2 * FOUND_US);
	hears_nothing(1);
	hears_nothing(2);
	cluster_close();
}
