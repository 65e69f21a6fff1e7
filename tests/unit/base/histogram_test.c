/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/histogram.h: a duration belongs to the first bound that is not below it. */
#include "daemon/base/histogram.h"

#include <check.h>

static unsigned place_of(int64_t us)
{
	struct histogram h = {0};
	unsigned found = HISTOGRAM_BOUNDS + 1;

	histogram_add(&h, us);
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		if (h.count[i] == 0)
			continue;
		ck_assert_uint_eq(h.count[i], 1);
		ck_assert_uint_gt(found, HISTOGRAM_BOUNDS);
		found = i;
	}
	return found;
}

TEST(bounds_are_1_2_5_in_each_decade)
{
	int64_t decade = 1;

	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		ck_assert_int_eq(histogram_bound_us[i], decade * (i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 5));
		decade *= i % 3 == 2 ? 10 : 1;
	}
}

TEST(a_bound_is_included_and_one_more_is_not)
{
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		ck_assert_uint_eq(place_of(histogram_bound_us[i]), i);
		ck_assert_uint_eq(place_of(histogram_bound_us[i] + 1), i + 1);
	}
}

TEST(nothing_is_outside)
{
	ck_assert_uint_eq(place_of(0), 0);
	ck_assert_uint_eq(place_of(INT64_MAX), HISTOGRAM_BOUNDS);
	ck_assert_uint_eq(place_of(-1), HISTOGRAM_BOUNDS);
	for (unsigned bit = 0; bit < 63; bit++)
		ck_assert_uint_le(place_of(INT64_C(1) << bit), HISTOGRAM_BOUNDS);
}
