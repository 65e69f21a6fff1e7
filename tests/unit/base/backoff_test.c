/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/rng.c: back-off. */
#include "daemon/base/rng.h"

#include <check.h>

static const uint64_t key[2] = {1, 2};

TEST(each_pause_lies_between_half_and_all_of_the_doubled_one)
{
	struct backoff b;
	struct rng r;
	int64_t ceiling = 1000, pause;
	int n;

	rng_init(&r, key);
	backoff_init(&b, 1000, 1000000);
	for (n = 0; n < 40; n++) {
		pause = backoff_next(&b, &r);
		ck_assert_int_ge(pause, ceiling / 2);
		ck_assert_int_le(pause, ceiling);
		ceiling = ceiling * 2 < 1000000 ? ceiling * 2 : 1000000;
	}
}

TEST(both_ends_of_the_range_are_reached)
{
	struct backoff b;
	struct rng r;
	int n, low = 0, high = 0;

	rng_init(&r, key);
	backoff_init(&b, 3, 3);
	for (n = 0; n < 200; n++) {
		int64_t pause = backoff_next(&b, &r);

		low += pause == 2;
		high += pause == 3;
	}
	ck_assert_int_gt(low, 50);
	ck_assert_int_gt(high, 50);
	ck_assert_int_eq(low + high, 200);
}

TEST(a_reset_starts_again_from_the_base)
{
	struct backoff b;
	struct rng r;
	int n;

	rng_init(&r, key);
	backoff_init(&b, 1000, 1000000);
	for (n = 0; n < 20; n++)
		backoff_next(&b, &r);
	ck_assert_int_ge(backoff_next(&b, &r), 500000);
	backoff_reset(&b);
	ck_assert_int_le(backoff_next(&b, &r), 1000);
}

TEST(the_largest_cap_does_not_overflow)
{
	struct backoff b;
	struct rng r;
	int n;

	rng_init(&r, key);
	backoff_init(&b, 1, INT64_MAX);
	for (n = 0; n < 200; n++)
		ck_assert_int_ge(backoff_next(&b, &r), 0);
	ck_assert_int_ge(backoff_next(&b, &r), INT64_MAX / 2);
}
