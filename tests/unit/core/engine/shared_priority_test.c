/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/grant.c, engine.c: readers and writers with priorities stand in one line. */
#include "daemon/core/engine/holding.h"
#include "daemon/core/service/step.h"
#include "tests/fixture/readers.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_reader_of_a_higher_priority_joins_before_a_writer_that_waits)
{
	readers_hold(3, 1);
	says(2, "LOCK a wait=1m");
	says(3, "LOCK a mode=shared wait=1m priority=9");
	hears(3, READER);
	says(4, "LOCK a mode=shared priority=1");
	hears(4, READER);
	says(5, "LOCK a mode=shared wait=1m");
	hears_nothing(5);
	hears_nothing(2);
	for (unsigned k = 1; k <= 4; k += k == 1 ? 2 : 1)
		says(k, "UNLOCK a");
	hears(2, GRANT);
	hears_nothing(5);
}

TEST(a_reader_waits_behind_a_writer_of_a_higher_priority)
{
	readers_hold(3, 1);
	says(2, "LOCK a wait=1m priority=5");
	says(3, "LOCK a mode=shared wait=1m priority=4");
	says(4, "LOCK a mode=shared wait=1m priority=5");
	says(5, "LOCK a mode=shared priority=4");
	hears(5, "BUSY *");
	says(6, "LOCK a mode=shared priority=6");
	hears(6, READER);
	hears_nothing(3);
	hears_nothing(4);
	says(1, "UNLOCK a");
	says(6, "UNLOCK a");
	hears(2, GRANT);
	says(2, "UNLOCK a");
	hears(4, READER);
	hears(3, READER);
}

/* A minute of waiting counts as a level. */
TEST(readers_of_a_higher_priority_do_not_pass_a_writer_for_ever)
{
	readers_hold(3, 1);
	says(2, "LOCK a wait=1h");
	passes(9 * 60 * SEC - SEC);
	says(3, "LOCK a mode=shared wait=1m priority=9");
	hears(3, READER);
	passes(2 * SEC);
	says(4, "LOCK a mode=shared wait=1m priority=9");
	hears_nothing(4);
	says(1, "UNLOCK a");
	says(3, "UNLOCK a");
	hears(2, GRANT);
}

/* 1 reads a and waits for b, which 2 holds. */
TEST(a_reader_whose_priority_lets_it_join_at_once_is_in_no_deadlock)
{
	readers_hold(3, 1);
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "LOCK b wait=1m");
	says(3, "LOCK a wait=1m");
	says(2, "LOCK a mode=shared wait=1m");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK *");
	says(2, "LOCK a mode=shared wait=1m priority=1");
	hears(2, READER);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(1, "OK name=b *");
}

/* It would hold the lock with others, and wait for itself. */
TEST(a_reader_that_waits_for_the_lock_alone_does_not_pass_itself)
{
	readers_hold(3, 1);
	says(2, "@w LOCK a wait=1m");
	says(2, "@1 LOCK a mode=shared priority=9");
	hears(2, "@1 ERR ARG *other mode*");
	says(2, "@2 LOCK a mode=shared wait=1m priority=9");
	hears(2, "@2 ERR ARG *other mode*");
	says(1, "UNLOCK a");
	hears(2, "@w " GRANT);
	says(2, "UNLOCK a");
	all_feel(MOOD_SILENT);
	says(3, "@w LOCK a wait=1m");
	says(3, "@1 LOCK a mode=shared priority=9");
	hears(3, "@1 ERR ARG *other mode*");
	all_feel(MOOD_WELL);
	hears(3, "@w " GRANT);
}

/* The memory stores of tests know no tickets: this is what the renewal of a share tells of one. The writer has asked a second ago. */
static void a_writer_waits_elsewhere(void)
{
	struct engine *e;

	two_daemons(3);
	e = &cluster.daemon[0].service->engine;
	passes(SEC);
	reads(1);
	reads(2);
	is_wanted(0, 0, "a");
	passes(MSEC);
	grant_barred(e, lock_find(&e->table, SPAN("a")), members_clock_us(&e->members, cluster.now) - SEC);
}

TEST(a_writer_of_another_daemon_is_passed_as_one_of_this_daemon)
{
	a_writer_waits_elsewhere();
	says(3, "LOCK a mode=shared");
	hears(3, "BUSY *");
	says(4, "LOCK a mode=shared wait=1m");
	hears_nothing(4);
	says(5, "LOCK a mode=shared wait=1m priority=1");
	hears(5, READER);
	says(6, "LOCK a mode=shared priority=1");
	hears(6, READER);
	hears_nothing(4);
}

/* It does not give back b, which it has got, since a writer waits for a. */
TEST(a_group_of_a_higher_priority_passes_it_as_well)
{
	a_writer_waits_elsewhere();
	says(3, "LOCKALL b a mode=shared wait=1m");
	hears_nothing(3);
	says(4, "LOCKALL b a mode=shared wait=1m priority=1");
	hears(4, "\\* name=b *");
	hears(4, "\\* name=a *");
	hears(4, "OK n=2");
}
