/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/lock/claim.h, lease.c, wait.c: LOCK priority=, which counts as a minute of waiting for each level. */
#include "tests/fixture/cluster.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Session 1 holds a; each of these sessions waits for it with this priority. */
static void wait_behind(unsigned k, unsigned priority)
{
	says(k, "LOCK a wait=20m priority=%u", priority);
	hears_nothing(k);
}

static void are_served(const unsigned *order, unsigned n)
{
	unsigned holder = 1;

	for (unsigned i = 0; i < n; i++) {
		says(holder, "UNLOCK a");
		hears(holder, "OK name=a count=0");
		hears(order[i], "OK name=a *");
		holder = order[i];
	}
}

static void holds_a(unsigned nodes)
{
	cluster_begin(nodes);
	says(1, "LOCK a");
	hears(1, "OK *");
}

FIXTURE(.teardown = cluster_close)

TEST(a_waiter_of_higher_priority_stands_before_all_lower_ones_and_behind_its_equals)
{
	holds_a(3);
	wait_behind(2, 0);
	wait_behind(3, 5);
	wait_behind(4, 9);
	wait_behind(5, 5);
	wait_behind(6, 0);
	says(7, "SHOW a");
	hears(7, "\\* role=holder *");
	hears(7, "\\* role=waiter pos=1 session=4 * priority=9");
	hears(7, "\\* role=waiter pos=2 session=3 * priority=5");
	hears(7, "\\* role=waiter pos=3 session=5 * priority=5");
	ck_assert_ptr_null(strstr(hears(7, "\\* role=waiter pos=4 session=2 *"), "priority"));
	hears(7, "\\* role=waiter pos=5 session=6 *");
	hears(7, "OK n=6");
	are_served((const unsigned[]){4, 3, 5, 2, 6}, 5);
}

TEST(a_level_counts_as_a_minute_of_waiting)
{
	holds_a(1);
	wait_behind(2, 0);
	wait_behind(3, 1);
	passes(59 * SEC);
	wait_behind(4, 1);
	wait_behind(5, 2);
	passes(2 * SEC);
	wait_behind(6, 1);
	wait_behind(7, 9);
	are_served((const unsigned[]){7, 5, 3, 4, 2, 6}, 6);
}

TEST(a_held_lock_is_not_taken_from_its_holder)
{
	holds_a(3);
	wait_behind(2, 9);
	says(3, "LOCK a priority=9");
	hears(3, "BUSY *");
	passes(20 * SEC);
	hears_nothing(1);
	are_served((const unsigned[]){2}, 1);
}

TEST(a_priority_is_a_digit)
{
	cluster_begin(1);
	says(1, "LOCK a priority=10");
	hears(1, "ERR ARG priority='10': priority is a whole number from 0 to 9");
	says(1, "LOCK a priority=-1");
	hears(1, "ERR ARG *");
	says(1, "UNLOCK a priority=1");
	hears(1, "ERR ARG *");
}

/* --- among daemons --- */

static int64_t ticket_us(void)
{
	struct span ticket = cluster.node[0].last[CALL_ACQUIRE].call.ticket;

	ck_assert_uint_gt(ticket.n, 17);
	return strtoll(ticket.p, NULL, 10);
}

/* Session 2 holds a at another daemon. */
static void another_daemon_holds_a(void)
{
	two_daemons(3);
	says(2, "LOCK a");
	hears(2, "OK *");
}

TEST(a_ticket_is_a_minute_older_for_each_level)
{
	int64_t now_us;

	another_daemon_holds_a();
	now_us = CLUSTER_WALL_US + cluster.now.us;
	wait_behind(1, 3);
	ck_assert_int_lt(llabs(ticket_us() - (now_us - 180 * SEC)), SEC);
	ignores(2);
}

/* The stores are shown the ticket of the first one at once, and the ticket of the other one again when the first one has left. */
TEST(the_ticket_is_that_of_the_first_waiter)
{
	unsigned left[2];
	int64_t low, high;

	another_daemon_holds_a();
	wait_behind(1, 0);
	low = ticket_us();
	left[0] = cluster.node[0].count[CALL_WITHDRAW];
	says(3, "@high LOCK a wait=1m priority=2");
	high = ticket_us();
	ck_assert_int_lt(llabs(low - high - 120 * SEC), SEC);
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], left[0] + 1);
	wait_behind(4, 1);
	passes(5 * SEC);
	ck_assert_int_eq(ticket_us(), high);
	left[1] = cluster.node[0].count[CALL_WITHDRAW];
	says(3, "CANCEL @high");
	hears(3, "OK");
	passes(2 * SEC);
	ck_assert_int_lt(llabs(low - ticket_us() - 60 * SEC), SEC);
	ck_assert_uint_eq(cluster.node[0].count[CALL_WITHDRAW], left[1] + 1);
	goes(4, GONE_HANGUP);
	passes(2 * SEC);
	ck_assert_int_lt(llabs(low - ticket_us()), 10 * MSEC);
	ignores(2);
}

/* It came while a round was under way that showed the ticket of another. */
TEST(a_first_waiter_that_comes_during_a_round_is_queued_at_once)
{
	int64_t low;

	another_daemon_holds_a();
	all_feel(MOOD_SILENT);
	says(1, "LOCK a wait=1m");
	low = ticket_us();
	says(3, "LOCK a wait=1m priority=9");
	ck_assert_int_eq(ticket_us(), low);
	all_feel(MOOD_WELL);
	ck_assert_int_lt(llabs(low - ticket_us() - 540 * SEC), SEC);
	ignores(2);
}

/* The votes of the first round are split. The second is of a request that does not wait, and came behind a waiter that has left. */
TEST(a_waiter_that_has_left_leaves_no_ticket_to_a_request_that_does_not_wait)
{
	unsigned before[3], asked = 0;

	cluster_begin(3);
	key_is_overwritten(0, "a", "0123456789abcdef.x:1:00", 200 * MSEC);
	key_is_overwritten(1, "a", "0123456789abcdef.y:1:00", 200 * MSEC);
	all_feel(MOOD_SILENT);
	says(1, "@high LOCK a wait=1m priority=8");
	says(2, "LOCK a");
	says(1, "CANCEL @high");
	all_feel(MOOD_WELL);
	hears(1, "OK");
	hears(1, "@high ERR CANCELLED *");
	for (unsigned i = 0; i < 3; i++)
		before[i] = cluster.node[i].count[CALL_ACQUIRE];
	all_feel(MOOD_SILENT);
	passes(20 * MSEC);
	for (unsigned i = 0; i < 3; i++) {
		if (cluster.node[i].count[CALL_ACQUIRE] == before[i])
			continue;
		asked++;
		ck_assert_uint_eq(cluster.node[i].last[CALL_ACQUIRE].call.ticket.n, 0);
	}
	ck_assert_uint_gt(asked, 0);
	all_feel(MOOD_WELL);
	ignores(2);
}
