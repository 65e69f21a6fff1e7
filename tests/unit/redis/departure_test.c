/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/departure.c: when releases wait for one more pass, and when they do not. */
#include "daemon/redis/departure.h"

#include <check.h>

static struct departure departure;
static struct instant now;

static void begin(void)
{
	departure_init(&departure);
	now = (struct instant){1000000};
}

static bool leaves_after(int64_t us, bool release)
{
	now = instant_add(now, us);
	departure_collect(&departure, release);
	return departure_is_due(&departure, now);
}

static bool release_leaves_after(int64_t us)
{
	return leaves_after(us, true);
}

static bool acquire_leaves_after(int64_t us)
{
	return leaves_after(us, false);
}

static void pairs(unsigned n, int64_t us)
{
	while (n--) {
		ck_assert(release_leaves_after(5000));
		ck_assert(acquire_leaves_after(us));
	}
}

FIXTURE(.setup = begin)

TEST(releases_wait_for_a_pass_once_eight_in_a_row_were_followed_at_once)
{
	pairs(8, 99);
	ck_assert(!release_leaves_after(5000));
	ck_assert(acquire_leaves_after(50));
	ck_assert(!release_leaves_after(5000));
}

TEST(releases_followed_later_do_not_wait)
{
	pairs(7, 99);
	pairs(1, 100);
	pairs(7, 99);
	ck_assert(release_leaves_after(5000));
}

TEST(a_release_that_nobody_follows_waits_one_pass_and_ends_the_habit)
{
	pairs(8, 10);
	ck_assert(!release_leaves_after(5000));
	ck_assert(departure_is_due(&departure, now));
	pairs(8, 10); /* a new habit takes eight again */
	ck_assert(!release_leaves_after(5000));
}

TEST(a_pass_that_took_long_ends_the_habit)
{
	pairs(8, 10);
	ck_assert(!release_leaves_after(5000));
	ck_assert(acquire_leaves_after(100));
	ck_assert(release_leaves_after(5000));
}

TEST(a_second_release_does_not_prolong_the_wait)
{
	pairs(8, 10);
	ck_assert(!release_leaves_after(5000));
	ck_assert(release_leaves_after(10));
}

TEST(a_release_beside_another_call_leaves_with_it)
{
	pairs(8, 10);
	departure_collect(&departure, false);
	ck_assert(release_leaves_after(5000));
}

TEST(releases_that_follow_each_other_count_as_well)
{
	ck_assert(release_leaves_after(5000));
	for (unsigned i = 0; i < 7; i++)
		ck_assert(release_leaves_after(20));
	ck_assert(!release_leaves_after(20));
}
