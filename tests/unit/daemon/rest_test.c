/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/rest.c: when the loop polls and yields, and when it sleeps. */
#include "daemon/main/rest.h"

#include <check.h>

static struct rest rest;
static struct instant now;

static void begin(void)
{
	rest_init(&rest);
	now = (struct instant){5 * SEC};
}

/* Passes of 20 us, each so long after the one before. */
static void passes(unsigned n, int64_t gap_us)
{
	while (n--) {
		struct instant begun = instant_add(now, gap_us);

		now = instant_add(begun, 20);
		rest_note_pass(&rest, begun, now);
	}
}

static bool polls_after(int64_t us)
{
	now = instant_add(now, us);
	return rest_polls(&rest, now);
}

FIXTURE(.setup = begin)

TEST(the_loop_sleeps_at_first)
{
	ck_assert(!polls_after(0));
	passes(1, 0);
	ck_assert(!polls_after(0));
}

TEST(the_loop_polls_once_sixteen_passes_came_at_once)
{
	passes(1, 5000);
	passes(15, 99);
	ck_assert(!polls_after(0));
	passes(1, 99);
	ck_assert(polls_after(0));
	ck_assert(polls_after(49));
}

TEST(an_event_that_comes_later_ends_the_habit)
{
	passes(1, 5000);
	passes(15, 99);
	passes(1, 100);
	ck_assert(!polls_after(0));
	passes(15, 10);
	ck_assert(!polls_after(0));
	passes(1, 10);
	ck_assert(polls_after(0));
}

TEST(a_poll_without_an_event_ends_after_50_us_and_sixteen_passes_begin_the_next)
{
	passes(17, 10);
	ck_assert(polls_after(0));
	ck_assert(!polls_after(50));
	passes(15, 10);
	ck_assert(!polls_after(0));
	passes(1, 10);
	ck_assert(polls_after(0));
}

TEST(an_event_in_time_goes_on_polling)
{
	passes(17, 10);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert(polls_after(40));
		passes(1, 8);
	}
}

TEST(who_computes_beside_the_loop_has_the_processor_for_a_second)
{
	struct instant yielded;

	passes(17, 10);
	ck_assert(rest_may_yield(&rest, now));
	rest_note_yield(&rest, now, instant_add(now, 1000));
	ck_assert(rest_may_yield(&rest, now));
	yielded = instant_add(now, 1001);
	rest_note_yield(&rest, now, yielded);
	now = yielded;
	ck_assert(!rest_may_yield(&rest, now));
	passes(30, 10);
	ck_assert(!polls_after(0));
	now = instant_add(yielded, SEC - 1);
	ck_assert(!rest_may_yield(&rest, now));
	now = instant_add(yielded, SEC);
	ck_assert(rest_may_yield(&rest, now));
}
