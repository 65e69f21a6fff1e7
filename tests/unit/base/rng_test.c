/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/rng.c. */
#include "daemon/base/rng.h"

#include <check.h>
#include <string.h>

static const uint64_t key[2] = {11, 12};

TEST(the_same_key_repeats_the_same_numbers)
{
	const uint64_t other_key[2] = {11, 13};
	struct rng a, b, other;
	int i;

	rng_init(&a, key);
	rng_init(&b, key);
	rng_init(&other, other_key);
	for (i = 0; i < 100; i++) {
		uint64_t n = rng_next(&a);

		ck_assert_uint_eq(n, rng_next(&b));
		ck_assert_uint_ne(n, rng_next(&other));
	}
}

TEST(numbers_below_a_bound_are_spread_evenly)
{
	unsigned hit[10] = {0}, beyond = 0;
	struct rng r;
	int i;

	rng_init(&r, key);
	for (i = 0; i < 100000; i++) {
		uint64_t n = rng_below(&r, 10);

		beyond += n >= 10;
		hit[n % 10]++;
	}
	ck_assert_uint_eq(beyond, 0);
	for (i = 0; i < 10; i++) {
		ck_assert_uint_gt(hit[i], 9500);
		ck_assert_uint_lt(hit[i], 10500);
	}
}

/* With a bound of three quarters of the range, a plain remainder would favour the lowest third two to one, and a plain product every third number. */
TEST(a_large_bound_is_not_biased)
{
	const uint64_t bound = UINT64_C(3) << 62, third = UINT64_C(1) << 62;
	unsigned hit[3] = {0}, rest[3] = {0}, beyond = 0;
	struct rng r;
	int i;

	rng_init(&r, key);
	for (i = 0; i < 30000; i++) {
		uint64_t n = rng_below(&r, bound);

		beyond += n >= bound;
		hit[n / third < 3 ? n / third : 2]++;
		rest[n % 3]++;
	}
	ck_assert_uint_eq(beyond, 0);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_gt(hit[i], 9500);
		ck_assert_uint_lt(hit[i], 10500);
		ck_assert_uint_gt(rest[i], 9500);
		ck_assert_uint_lt(rest[i], 10500);
	}
}

TEST(a_bound_of_one_gives_zero)
{
	struct rng r;
	int i;

	rng_init(&r, key);
	for (i = 0; i < 100; i++)
		ck_assert_uint_eq(rng_below(&r, 1), 0);
}

TEST(hex_writes_exactly_n_lower_case_digits)
{
	char out[64];
	struct rng r;
	size_t n;

	rng_init(&r, key);
	for (n = 0; n < 60; n++) {
		memset(out, '#', sizeof(out));
		rng_hex(&r, out, n);
		out[n + 1] = '\0';
		ck_assert_uint_eq(strspn(out, "0123456789abcdef"), n);
		ck_assert_int_eq(out[n], '#');
	}
}

TEST(hex_digits_are_the_nibbles_of_the_numbers_the_lowest_first)
{
	struct rng r, same;
	char out[40];
	size_t n, i;

	rng_init(&r, key);
	rng_init(&same, key);
	for (n = 0; n <= sizeof(out); n++) {
		uint64_t bits = 0;

		rng_hex(&r, out, n);
		for (i = 0; i < n; i++, bits >>= 4) {
			if (i % 16 == 0)
				bits = rng_next(&same);
			ck_assert_int_eq(out[i], "0123456789abcdef"[bits & 15]);
		}
	}
}

TEST(the_system_gives_another_key_each_time)
{
	uint64_t a[2] = {0, 0}, b[2] = {0, 0};

	rng_seed_from_system(a);
	rng_seed_from_system(b);
	ck_assert(a[0] != b[0] || a[1] != b[1]);
	ck_assert(a[0] && a[1]);
}
