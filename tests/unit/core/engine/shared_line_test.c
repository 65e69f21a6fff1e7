/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/grant.c, grant.c, locks.c: readers and writers stand in one line, and in cycles. */
#include "tests/fixture/readers.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_writer_that_waits_is_not_overtaken_by_later_readers)
{
	readers_hold(3, 2);
	says(3, "LOCK a wait=1m");
	says(4, "LOCK a mode=shared wait=1m");
	says(5, "LOCK a mode=shared wait=1m");
	says(6, "LOCK a mode=shared");
	hears(6, "BUSY *");
	hears_nothing(3);
	says(1, "UNLOCK a");
	hears_nothing(3);
	hears_nothing(4);
	says(2, "UNLOCK a");
	hears(3, GRANT);
	hears_nothing(4);
	says(3, "UNLOCK a");
	hears(4, READER);
	hears(5, READER);
}

TEST(readers_behind_a_writer_that_gives_up_join_at_once)
{
	readers_hold(3, 1);
	says(2, "@w LOCK a wait=1m");
	says(3, "LOCK a mode=shared wait=1m");
	says(4, "LOCK a wait=1s");
	says(5, "LOCK a mode=shared wait=1m");
	hears_nothing(3);
	says(2, "CANCEL @w");
	hears(2, "OK");
	hears(2, "@w ERR CANCELLED *");
	hears(3, READER);
	hears_nothing(5);
	passes(SEC);
	hears(4, "TIMEOUT *");
	hears(5, READER);
}

TEST(readers_behind_a_writer_that_goes_join_at_once)
{
	readers_hold(3, 1);
	says(2, "LOCK a wait=1m");
	says(2, "LOCK a mode=shared wait=1m owner=x");
	says(3, "LOCK a mode=shared wait=1m");
	hears_nothing(3);
	goes(2, GONE_HANGUP);
	hears(3, READER);
	says(1, "UNLOCK a");
	says(3, "UNLOCK a");
	ck_assert(is_free());
}

TEST(a_round_that_is_won_for_a_reader_is_shared_by_all_that_wait_behind_it)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a mode=shared");
	says(2, "LOCK a mode=shared wait=1m");
	says(3, "LOCK a mode=shared");
	says(4, "LOCK a wait=1m");
	says(5, "LOCK a mode=shared wait=1m");
	all_feel(MOOD_WELL);
	hears(1, READER);
	hears(2, READER);
	hears(3, READER);
	hears_nothing(4);
	hears_nothing(5);
}

TEST(readers_of_two_daemons_hold_a_lock_together_and_a_writer_waits_for_both)
{
	two_daemons(3);
	reads(1);
	says(2, "LOCK a mode=shared");
	hears(2, READER);
	says(1, "UNLOCK a");
	hears(1, "OK name=a count=0");
	says(1, "LOCK a");
	hears(1, "BUSY *");
	says(1, "LOCK a wait=1m");
	passes(20 * SEC);
	hears_nothing(1);
	says(2, "UNLOCK a");
	passes(2 * SEC);
	hears(1, GRANT);
	says(2, "LOCK a mode=shared");
	hears(2, "OK name=a count=0");
	hears(2, "BUSY *");
}

TEST(a_reader_that_may_join_at_once_is_in_no_deadlock)
{
	readers_hold(3, 1);
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "LOCK b wait=1m");
	says(2, "LOCK a mode=shared wait=1m");
	hears(2, READER);
	says(2, "UNLOCK b");
	hears(2, "OK *");
	hears(1, "OK name=b *");
}

TEST(a_reader_behind_a_writer_that_waits_for_it_is_in_a_deadlock)
{
	readers_hold(3, 1);
	says(2, "LOCK b");
	hears(2, "OK *");
	says(1, "LOCK b wait=1m");
	says(3, "LOCK a wait=1m");
	says(2, "LOCK a mode=shared wait=1m");
	hears(2, "ERR DEADLOCK cycle=a<-b<-a");
}

TEST(any_of_several_readers_may_close_a_cycle)
{
	readers_hold(3, 3);
	says(4, "LOCK b");
	hears(4, "OK *");
	says(2, "LOCK b wait=1m");
	says(4, "LOCK a wait=1m");
	hears(4, "ERR DEADLOCK cycle=a<-b<-a");
}

TEST(an_owner_does_not_wait_in_both_modes)
{
	readers_hold(3, 0);
	says(1, "LOCK a");
	hears(1, "OK *");
	says(2, "@1 LOCK a wait=1m");
	says(2, "@2 LOCK a mode=shared wait=1m");
	hears(2, "@2 ERR ARG *other mode*");
	says(2, "@3 LOCK a mode=shared wait=1m owner=x");
	hears_nothing(2);
}

TEST(readers_behind_a_writer_that_does_not_wait_hold_with_the_first)
{
	cluster_begin(3);
	all_feel(MOOD_SILENT);
	says(1, "LOCK a mode=shared");
	says(2, "LOCK a");
	says(3, "LOCK a mode=shared wait=1m");
	all_feel(MOOD_WELL);
	hears(1, READER);
	hears(2, "BUSY *");
	hears(3, READER);
}
