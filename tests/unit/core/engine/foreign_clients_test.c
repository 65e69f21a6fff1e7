/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/engine/hold.c: redis.foreign: names for which clients without redlockd poll. */
#include "tests/fixture/cluster.h"

#include <check.h>

static void stores_are_polled(void)
{
	cluster_open(3);
	cluster.conf.foreign = true;
	daemon_starts(0);
	passes(2 * SEC);
}

/* A client that polls finds the name free for as long as the daemon leaves it alone, and not for longer. */
static void is_left_alone(void)
{
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	passes(140 * MSEC);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!key_is_there(i, "a"));
	passes(20 * MSEC);
	ck_assert(key_is_there(0, "a"));
}

FIXTURE(.teardown = cluster_close)

/* A client that ends without UNLOCK frees the name as well. */
LOOP_TEST(a_foreign_name_is_left_alone_however_its_last_holder_ends, 2)
{
	static const enum gone how[] = {GONE_HANGUP, GONE_RESET};

	stores_are_polled();
	key_is_overwritten(0, "a", "d1:1:00", MSEC);
	key_is_overwritten(1, "a", "d2:2:00", MSEC);
	for (unsigned k = 1; k < 4; k++)
		says(k, "LOCK a wait=1m"); /* all wait when the stores grant it: there is a token for each */
	passes(100 * MSEC);
	hears(1, GRANT);
	says(1, "UNLOCK a");
	hears(1, "OK *");
	hears(2, GRANT);
	passes(110 * MSEC);
	goes(2, how[_i]);
	is_left_alone();
	hears(3, GRANT);
}

/* Each finds the other in the queue. They take turns by hand-overs; or, where they ask on different terms, by rounds of their own. */
LOOP_TEST(two_sessions_that_take_turns_leave_a_foreign_name_alone_as_well, 2)
{
	static const char *const terms[2][3] = {{"", "", ""}, {"", " ttl=10s", " ttl=20s"}};
	unsigned has = 1, free = 0;

	stores_are_polled();
	for (unsigned k = 1; k < 3; k++)
		session_opens(k, 0);
	says(1, "LOCK a wait=1m%s", terms[_i][1]);
	hears(1, "OK name=a fence=*");
	for (unsigned i = 0; i < 60; i++) {
		says(3 - has, "LOCK a wait=1m%s", terms[_i][3 - has]);
		passes(5 * MSEC);
		says(has, "UNLOCK a");
		hears(has, "OK *");
		if (!key_is_there(0, "a")) {
			free++;
			is_left_alone();
		}
		has = 3 - has;
		hears(has, "OK name=a fence=*");
	}
	ck_assert_int_eq(figure(0, METRIC_HANDOFFS) > 0, _i == 0);
	ck_assert_uint_ge(free, 2);
	ck_assert_uint_le(free, 3);
}
