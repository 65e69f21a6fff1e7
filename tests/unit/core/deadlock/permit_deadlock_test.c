/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/deadlock/deadlock.c: owners that wait for each other, some of them for permits. */
#include "tests/fixture/groups.h"

#include <check.h>

/* Sessions 1 to 4, at one daemon: over a store, or on its own memory. */
static void sessions_open(bool memory)
{
	cluster_open(1);
	if (memory) {
		cluster.conf.store = "memory";
		cluster.conf.shared = false;
	}
	daemon_starts(0);
	passes(SEC);
	for (unsigned k = 2; k <= 4; k++)
		session_opens(k, 0);
}

static void acquires(unsigned k, const char *what)
{
	says(k, "ACQUIRE %s", what);
	hears(k, "OK *");
}

static void waits(unsigned k, const char *request)
{
	says(k, "%s wait=100s", request);
	passes(SEC / 10);
	hears_nothing(k);
}

FIXTURE(.teardown = cluster_close)

LOOP_TEST(a_LOCK_that_closes_a_circle_with_an_ACQUIRE_is_refused, 2)
{
	sessions_open(_i == 1);
	takes(1, "a");
	acquires(2, "s limit=1");
	waits(1, "ACQUIRE s limit=1");
	says(2, "LOCK a wait=100s");
	passes(FOUND_US);
	ck_assert_str_eq(hears(2, "ERR DEADLOCK *"), "ERR DEADLOCK cycle=a@h0<-s@h0<-a@h0");
	says(2, "RELEASE s");
	hears(2, "OK *");
	hears(1, "OK name=s *");
}

LOOP_TEST(an_ACQUIRE_that_closes_a_circle_is_refused, 2)
{
	sessions_open(_i == 1);
	takes(1, "a");
	acquires(2, "s limit=1");
	waits(2, "LOCK a");
	says(1, "@w ACQUIRE s limit=1 wait=100s");
	passes(FOUND_US);
	ck_assert_str_eq(hears(1, "@w ERR DEADLOCK *"), "@w ERR DEADLOCK cycle=s@h0<-a@h0<-s@h0");
	gives_back(1, "a");
	hears(2, "OK name=a *");
}

LOOP_TEST(all_of_those_that_have_permits_must_be_stuck, 2)
{
	sessions_open(_i == 1);
	takes(1, "a");
	takes(1, "b");
	acquires(2, "s limit=3");
	acquires(3, "s limit=3");
	acquires(3, "s limit=3");
	waits(2, "LOCK a");
	waits(1, "@n ACQUIRE s limit=3"); /* 3 may go on */
	says(3, "LOCK b wait=100s");
	passes(FOUND_US);
	hears(3, "ERR DEADLOCK cycle=b@h0<-s@h0<-b@h0");
	says(3, "RELEASE s count=0");
	hears(3, "OK *");
	hears(1, "@n OK name=s *");
	acquires(3, "s limit=3");
	waits(1, "@n ACQUIRE s limit=3 owner=x");
	waits(3, "LOCK b"); /* that owner holds nothing that they wait for */
}

LOOP_TEST(sessions_that_each_have_a_permit_and_ask_for_one_more_wait_for_each_other, 2)
{
	sessions_open(_i == 1);
	acquires(1, "s limit=2");
	acquires(2, "s limit=2");
	waits(1, "@w ACQUIRE s limit=2");
	says(2, "@w ACQUIRE s limit=2 wait=100s");
	passes(FOUND_US);
	hears(2, "@w ERR DEADLOCK cycle=s@h0<-s@h0<-s@h0");
	says(2, "RELEASE s");
	hears(2, "OK *");
	hears(1, "@w OK name=s *");
}

LOOP_TEST(a_session_that_waits_for_nobody_but_itself_is_not_refused, 2)
{
	sessions_open(_i == 1);
	acquires(1, "s limit=1");
	waits(1, "@w ACQUIRE s limit=1");
	takes(2, "a");
	waits(1, "@v LOCK a");
	passes(FOUND_US);
	hears_nothing(1);
	says(1, "@r RELEASE s");
	hears(1, "@r OK *");
	hears(1, "@w OK name=s *");
}

LOOP_TEST(a_LOCKALL_waits_for_all_of_its_names_and_a_LOCKANY_for_any, 2)
{
	sessions_open(_i == 1);
	takes(1, "a");
	takes(3, "b");
	acquires(2, "s limit=1");
	waits(1, "ACQUIRE s limit=1");
	says(2, "LOCKALL b a wait=100s");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK cycle=a@h0<-s@h0<-a@h0");
	waits(2, "@y LOCKANY b a");
	waits(3, "@x ACQUIRE s limit=1 owner=x"); /* behind 1, and holds nothing */
	gives_back(3, "b");
	hears(2, "@y OK name=b *");
}

LOOP_TEST(a_LOCKANY_none_of_whose_names_can_be_had_is_refused, 2)
{
	sessions_open(_i == 1);
	takes(1, "a");
	takes(1, "b");
	acquires(2, "s limit=1");
	waits(1, "ACQUIRE s limit=1");
	says(2, "LOCKANY b a wait=100s");
	passes(FOUND_US);
	hears(2, "ERR DEADLOCK cycle=*@h0<-s@h0<-*@h0");
}

/* 1 holds nothing when it asks for b of 2, which waits behind it for s. Then 3 gives s back. */
LOOP_TEST(a_circle_that_a_grant_closes_is_found_soon, 2)
{
	sessions_open(_i == 1);
	takes(2, "b");
	acquires(3, "s limit=1");
	waits(1, "@1 ACQUIRE s limit=1");
	waits(2, "ACQUIRE s limit=1");
	waits(1, "@2 LOCK b"); /* it holds nothing yet */
	says(3, "RELEASE s");
	hears(3, "OK *");
	hears(1, "@1 OK *");
	passes(FOUND_US);
	hears(1, "@2 ERR DEADLOCK cycle=b*<-s*<-b*");
	hears_nothing(2);
}

/* 1 at the first daemon has a and wants one of three; one of those that have some waits for nobody, at whatever daemon. */
TEST(a_holder_of_permits_at_another_daemon_that_waits_for_nobody_is_in_no_circle)
{
	three_daemons(3);
	takes(1, "a");
	acquires(2, "s limit=3");
	acquires(3, "s limit=3");
	acquires(3, "s limit=3");
	waits(2, "LOCK a");
	waits(1, "ACQUIRE s limit=3");
	passes(2 * FOUND_US);
	hears_nothing(1);
	hears_nothing(2);
	says(3, "LOCK a wait=100s");
	passes(FOUND_US);
	hears(3, "ERR DEADLOCK cycle=a@h0<-s@h*");
	hears_nothing(1);
	hears_nothing(2);
}
