/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/resume/resume.c: a turn that the client does not know yet, and the request that tells it. */
#include "tests/fixture/groups.h"
#include "tests/fixture/resumable.h"

#include <check.h>

#define CONTENDED_A "! CONTENDED name=a fence=* waiters=*"

static struct secret s2;

/* Session 2 waits for a, which session 1 holds, and loses its connection. */
static void waits_for_a(const char *mode)
{
	cluster_begin(1);
	takes(1, "a");
	s2 = says_hello(2, "grace=15s");
	says(2, "LOCK a wait=1m%s", mode);
	goes(2, GONE_RESET);
}

/* It is resumed as session 4, which has subscribed. Then its turn comes, and session 3 waits behind it. */
static void gets_its_turn(const char *mode)
{
	waits_for_a(mode);
	is_resumed_with_nothing(4, &s2);
	says(4, "SUBSCRIBE");
	hears(4, "OK");
	says(3, "LOCK a wait=1m");
	gives_back(1, "a");
	passes(10 * MSEC);
	hears_nothing(4);
}

FIXTURE(.teardown = cluster_close)

TEST(who_hears_of_its_turn_by_the_lock_repeated_hears_who_waits)
{
	gets_its_turn("");
	says(4, "LOCK a wait=1m");
	hears(4, "OK name=a * count=1");
	hears(4, CONTENDED_A);
	hears_nothing(4);
}

TEST(who_hears_of_its_turn_by_a_row_hears_who_waits)
{
	waits_for_a("");
	says(3, "LOCK a wait=1m");
	gives_back(1, "a");
	passes(10 * MSEC);
	says(4, "SUBSCRIBE");
	hears(4, "OK");
	resumes(4, &s2);
	hears(4, "\\* name=a *");
	hears(4, "OK session=* n=1");
	hears(4, CONTENDED_A);
	hears_nothing(4);
}

TEST(a_turn_that_is_asked_for_to_share_is_told_by_the_answer)
{
	gets_its_turn("");
	says(4, "LOCK a wait=1m mode=shared");
	passes(5 * SEC);
	hears(4, "OK name=a * count=1*");
	hears(4, CONTENDED_A);
	hears_nothing(4);
}

/* Its client has never heard of it. */
LOOP_TEST(a_turn_to_read_lapses_when_its_owner_asks_for_the_name_alone, 2)
{
	waits_for_a(" mode=shared");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "a");
	passes(10 * MSEC);
	says(5, "LOCK a mode=shared");
	hears(5, "OK name=a *");
	says(4, _i ? "LOCK a count=1" : "LOCK a");
	hears(4, "BUSY name=a *");
	gives_back(5, "a");
	says(5, "LOCK a");
	hears(5, "OK name=a * count=1");
}

LOOP_TEST(a_turn_to_read_lapses_when_its_owner_asks_for_the_name_alone_among_others, 4)
{
	waits_for_a(" mode=shared");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "a");
	passes(10 * MSEC);
	says(4, "LOCKA%s a b%s", _i & 1 ? "NY" : "LL", _i & 2 ? " count=1" : "");
	if (_i & 1)
		hears(4, "OK name=a * count=1");
	else
		hears_all(4, "", "ab");
	says(5, "LOCK a mode=shared");
	hears(5, "BUSY name=a *");
}

/* It asks for what it does not have yet. */
LOOP_TEST(a_turn_to_read_is_not_counted_up_when_its_owner_asks_for_the_name_alone, 3)
{
	static const char *const request[] = {"LOCK a count=2", "LOCKALL a b count=2", "LOCKANY a b count=2"};

	waits_for_a(" mode=shared");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "a");
	passes(10 * MSEC);
	says(4, "%s", request[_i]);
	hears(4, "ERR ARG count=2, but this owner holds *");
}

LOOP_TEST(in_a_drain_who_asks_for_the_name_alone_behind_its_turn_to_read_is_refused, 5)
{
	static const char *const request[] = {"LOCK a wait=1m", "LOCK a", "LOCK a wait=1m count=1", "LOCKALL a b wait=1m count=1",
	                                      "LOCKANY a b wait=1m count=1"};

	waits_for_a(" mode=shared");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "a");
	passes(10 * MSEC);
	session_opens_as_admin(9, 0);
	says(9, "DRAIN");
	hears(9, "OK locks=1 *");
	says(4, "%s", request[_i]);
	passes(SEC);
	hears(4, "ERR DRAINING *");
	ck_assert(service_is_drained(cluster.daemon[0].service));
}

TEST(who_asks_for_the_name_alone_behind_its_turn_to_read_waits_as_any_other)
{
	waits_for_a(" mode=shared");
	is_resumed_with_nothing(4, &s2);
	gives_back(1, "a");
	passes(10 * MSEC);
	says(5, "LOCK a mode=shared");
	hears(5, "OK name=a *");
	says(3, "LOCK a wait=1m");
	says(4, "LOCK a wait=1m");
	gives_back(5, "a");
	passes(10 * MSEC);
	hears_nothing(4);
	hears(3, "OK name=a *");
	gives_back(3, "a");
	hears(4, "OK name=a * count=1");
}
