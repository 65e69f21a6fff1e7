/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/deadlock/deadlock.c: cycles that lead through a LOCKALL. */
#include "tests/fixture/groups.h"

#include <check.h>

FIXTURE(.teardown = cluster_close)

TEST(a_lock_that_a_waiting_lockall_waits_for_is_a_deadlock)
{
	cluster_begin(1);
	takes(1, "x");
	takes(2, "a");
	takes(3, "b");
	says(1, "@w LOCKALL a b wait=1m"); /* it stands in the queue of a */
	says(3, "LOCK x wait=1m");
	hears(3, "ERR DEADLOCK cycle=x<-b<-x");
	gives_back(3, "b");
	gives_back(2, "a");
	passes(10 * MSEC);
	hears_all(1, "@w ", "ab");
}

TEST(a_lockall_that_another_lockall_waits_for_is_a_deadlock)
{
	cluster_begin(1);
	takes(1, "x");
	takes(2, "a");
	takes(3, "b");
	says(1, "@w LOCKALL a b wait=1m");
	says(3, "LOCKALL c x wait=1m");
	hears(3, "ERR DEADLOCK cycle=x<-b<-x");
	ignores(1);
}

TEST(a_cycle_through_two_lockalls_is_told_in_full)
{
	cluster_begin(1);
	takes(1, "x");
	takes(2, "y");
	takes(3, "z");
	takes(4, "h");
	says(1, "@w LOCKALL h y wait=1m");
	says(2, "@w LOCKALL h z wait=1m");
	says(3, "LOCK x wait=1m");
	hears(3, "ERR DEADLOCK cycle=x<-y<-z<-x");
	ignores(1);
	ignores(2);
}

TEST(what_a_lockall_has_closes_a_cycle)
{
	cluster_begin(1);
	takes(2, "b");
	says(3, "@w LOCKALL a b wait=1m");
	passes(MSEC);
	says(2, "@a LOCK a wait=1m");
	hears(2, "@a ERR DEADLOCK cycle=a<-b<-a");
	says(3, "@own LOCK a wait=1m"); /* its own LOCKALL is not in its way */
	hears_nothing(3);
	gives_back(2, "b");
	passes(10 * MSEC);
	hears_all(3, "@w ", "ab");
	hears(3, "@own OK name=a *");
}

TEST(what_a_lockall_has_closes_a_cycle_over_daemons)
{
	two_daemons(3);
	session_opens(3, 1);
	takes(3, "b");
	says(1, "@w LOCKALL a b wait=1h");
	passes(10 * MSEC);
	says(3, "@a LOCK a wait=1h");
	passes(FOUND_US);
	hears(3, "@a ERR DEADLOCK *");
	hears_nothing(1);
	gives_back(3, "b");
	passes(SEC);
	hears_all(1, "@w ", "ab");
}

/* 2 waits for h behind the LOCKALL of 3, which waits for y of 2. */
TEST(a_lock_behind_a_lockall_is_in_a_deadlock_as_soon_as_that_has_its_names)
{
	cluster_begin(1);
	takes(1, "h");
	takes(2, "y");
	says(3, "@w LOCKALL h b wait=1m");
	says(3, "@y LOCK y wait=1m");
	passes(SEC / 10);
	says(2, "LOCK h wait=1m");
	hears_nothing(2);
	gives_back(1, "h");
	passes(10 * MSEC);
	hears_all(3, "@w ", "hb");
	passes(10 * SEC);
	hears(2, "ERR DEADLOCK cycle=h@h0<-y@h0<-h@h0");
	hears_nothing(3);
}

TEST(a_reader_does_not_wait_for_the_readers_that_have_the_name)
{
	cluster_begin(1);
	takes(1, "y");
	says(2, "LOCK x mode=shared");
	hears(2, "OK *");
	says(2, "@y LOCK y wait=1m");
	says(1, "LOCKALL x mode=shared wait=5s");
	hears_all(1, "", "x");
	gives_back(1, "y");
	hears(2, "@y OK *");
}

TEST(a_lockall_of_readers_is_in_nobodys_way_where_readers_have_its_next_name)
{
	cluster_begin(1);
	says(1, "LOCK y mode=shared");
	hears(1, "OK *");
	takes(2, "x");
	takes(3, "q");
	says(2, "@w LOCKALL q y mode=shared wait=20s");
	says(1, "@x LOCK x wait=20s");
	hears_nothing(1);
	gives_back(3, "q");
	passes(10 * MSEC);
	hears_all(2, "@w ", "qy");
	gives_back(2, "x");
	hears(1, "@x OK *");
}

TEST(a_lockany_that_waits_is_in_nobodys_way)
{
	cluster_begin(1);
	takes(1, "x");
	takes(2, "a");
	takes(3, "b");
	says(1, "@w LOCKANY a b wait=1m");
	says(3, "@x LOCK x wait=1m");
	gives_back(2, "a");
	hears(1, "@w OK name=a *");
	gives_back(1, "x");
	hears(3, "@x OK name=x *");
}

TEST(a_lockany_is_a_deadlock_if_it_is_with_each_of_its_names)
{
	cluster_begin(1);
	takes(1, "x");
	takes(2, "a");
	takes(3, "b");
	says(2, "@x LOCK x wait=1m");
	says(1, "@1 LOCKANY a b wait=1m");
	passes(FOUND_US);
	hears_nothing(1); /* the holder of b goes on */
	says(1, "CANCEL @1");
	ignores(1);
	says(3, "@x LOCK x wait=1m");
	passes(SEC / 10);
	says(1, "@2 LOCKANY a b wait=1m");
	passes(FOUND_US);
	hears(1, "@2 ERR DEADLOCK cycle=b@h0<-x@h0<-b@h0");
	says(1, "@3 LOCKANY a b c wait=1m");
	hears(1, "@3 OK name=c *");
	ignores(2);
	ignores(3);
}
