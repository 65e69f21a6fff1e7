/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/member/admission.c: how many calls one store may owe answers to at a time. */
#include "daemon/core/member/admission.h"

#include <check.h>
#include <string.h>

#define TIMEOUT_US (50 * MSEC)
#define ALONE_US   (2 * MSEC) /* a call that waits behind no other */

static struct flow flow;
static struct instant now;

static void begins(unsigned most)
{
	memset(&flow, 0, sizeof(flow));
	now = (struct instant){SEC};
	flow_begin(&flow, most);
}

/* Sends so many calls together, and answers them together. */
static void are_answered(unsigned calls, int64_t took_us, bool executed)
{
	struct instant sent = now;

	for (unsigned i = 0; i < calls; i++)
		flow_sent(&flow, now);
	now = instant_add(now, took_us);
	for (unsigned i = 0; i < calls; i++)
		flow_answered(&flow, sent, now, executed, TIMEOUT_US);
}

TEST(a_store_that_answers_in_time_is_asked_more_and_more_up_to_the_most)
{
	unsigned first;

	begins(0);
	first = flow.window;
	are_answered(1, ALONE_US, true);
	for (int i = 0; i < 2000; i++)
		are_answered(flow.window, 5 * MSEC, true);
	ck_assert_uint_gt(flow.window, first);
	ck_assert_uint_eq(flow.window, flow.most);
	ck_assert_uint_eq(flow.open, 0);
}

TEST(a_window_that_is_not_used_does_not_grow)
{
	unsigned first;

	begins(0);
	first = flow.window;
	for (int i = 0; i < 10000; i++)
		are_answered(3, ALONE_US, true);
	ck_assert_uint_eq(flow.window, first);
}

TEST(slow_calls_that_were_under_way_together_halve_the_window_once)
{
	struct instant sent;
	unsigned before;

	begins(0);
	are_answered(1, ALONE_US, true);
	before = flow.window;
	sent = now;
	for (unsigned i = 0; i < before; i++)
		flow_sent(&flow, now);
	for (unsigned i = 0; i < before - 1; i++) {
		now = instant_add(sent, 30 * MSEC + i);
		flow_answered(&flow, sent, now, true, TIMEOUT_US);
	}
	ck_assert_uint_eq(flow.window, before / 2);
}

TEST(the_window_never_closes)
{
	/* A few calls may take long, up to the timeout. A store always gets at least one call at a time. */
	begins(0);
	are_answered(1, ALONE_US, true);
	for (int i = 0; i < 100; i++) {
		flow_sent(&flow, now); /* something is always under way */
		are_answered(flow.window, 45 * MSEC, true);
	}
	ck_assert_uint_ge(flow.window, 16);
	for (int i = 0; i < 10; i++)
		are_answered(flow.window, 55 * MSEC, true);
	ck_assert_uint_eq(flow.window, 1);
	for (int i = 0; i < 200; i++)
		are_answered(flow.window, 45 * MSEC, true);
	ck_assert_uint_ge(flow.window, 16);
	begins(1);
	ck_assert(flow_has_room(&flow));
	are_answered(1, ALONE_US, true);
	for (int i = 0; i < 10; i++)
		are_answered(2, 45 * MSEC, true);
	ck_assert_uint_eq(flow.window, 1);
}

TEST(a_long_round_trip_is_not_taken_for_a_queue)
{
	begins(0);
	for (int i = 0; i < 200; i++)
		are_answered(flow.window, 30 * MSEC, true);
	ck_assert_uint_ge(flow.window, 256);
	/* The network has become slower: a call that nothing waits behind shows that. */
	for (int i = 0; i < 20; i++)
		are_answered(1, 45 * MSEC, true);
	for (int i = 0; i < 200; i++)
		are_answered(flow.window, 45 * MSEC, true);
	ck_assert_uint_ge(flow.window, 256);
}

TEST(a_call_that_was_not_carried_out_says_nothing_about_the_store)
{
	unsigned before;

	begins(0);
	are_answered(1, ALONE_US, true);
	before = flow.window;
	flow_sent(&flow, now);
	are_answered(before, 2 * SEC, false);
	ck_assert_uint_eq(flow.window, before);
}

TEST(room_is_the_window_and_full_is_twice_that)
{
	begins(2);
	for (unsigned open = 0; open < 6; open++) {
		ck_assert_int_eq(flow_has_room(&flow), open < 2);
		ck_assert_int_eq(flow_is_overdrawn(&flow), open >= 4);
		flow_sent(&flow, now);
	}
}

TEST(a_store_is_stuck_when_it_owes_answers_and_is_silent_for_a_timeout)
{
	struct instant sent;

	begins(0);
	now = instant_add(now, SEC);
	ck_assert(!flow_is_stuck(&flow, now, TIMEOUT_US));
	sent = now;
	flow_sent(&flow, now);
	flow_sent(&flow, now);
	ck_assert(!flow_is_stuck(&flow, instant_add(now, TIMEOUT_US - 1), TIMEOUT_US));
	ck_assert(flow_is_stuck(&flow, instant_add(now, TIMEOUT_US), TIMEOUT_US));
	now = instant_add(now, TIMEOUT_US);
	flow_answered(&flow, sent, now, true, TIMEOUT_US);
	ck_assert(!flow_is_stuck(&flow, instant_add(now, TIMEOUT_US - 1), TIMEOUT_US));
	ck_assert(flow_is_stuck(&flow, instant_add(now, TIMEOUT_US), TIMEOUT_US));
}
