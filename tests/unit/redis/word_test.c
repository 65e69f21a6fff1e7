/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/word.c: numbers and texts as the words of a command. */
#include "daemon/redis/word.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>

/* Writes among bytes that must stay as they are, and compares with what printf would have written. */
static void check_number(int64_t n)
{
	char digits[32], expected[64], out[2 + NUMBER_MOST + 2];
	int length = snprintf(digits, sizeof(digits), "%" PRId64, n), size = snprintf(expected, sizeof(expected), "$%d\r\n%s\r\n", length, digits);
	char *at;

	memset(out, '?', sizeof(out));
	at = word_number(out + 2, n);
	ck_assert_msg(at == out + 2 + size && !memcmp(out + 2, expected, (size_t)size), "%" PRId64 ": %.*s", n, (int)sizeof(out), out);
	ck_assert(out[0] == '?' && out[1] == '?' && out[2 + NUMBER_MOST] == '?' && out[2 + size] == '?');
}

TEST(a_number_has_its_digits_and_their_count)
{
	int64_t power = 1;

	for (unsigned digits = 1; digits <= 19; digits++) {
		for (int off = -1; off <= 1; off++) {
			check_number(power + off);
			check_number(-(power + off));
		}
		power *= digits < 19 ? 10 : 1; /* ten times as much does not fit */
	}
	for (unsigned bits = 0; bits < 63; bits++)
		check_number(INT64_C(1) << bits);
	for (int64_t n = 0; n < 2000; n++)
		check_number(n);
	check_number(1795664143727992);
	check_number(INT64_MAX);
	check_number(INT64_MIN);
}

TEST(the_largest_number_of_all_has_twenty_digits)
{
	char out[32];

	ck_assert_ptr_eq(word_digits(out, UINT64_MAX), out + 20);
	ck_assert_int_eq(memcmp(out, "18446744073709551615", 20), 0);
	ck_assert_ptr_eq(word_digits(out, UINT64_C(10000000000000000000)), out + 20);
	ck_assert_int_eq(memcmp(out, "10000000000000000000", 20), 0);
}

TEST(a_text_of_any_length_stands_behind_its_length)
{
	static const size_t length[] = {0, 1, 9, 10, 99, 100, 101, 999, 1000, 5000};
	static char text[5000], out[5000 + WORD_MOST], expected[32];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		int head = snprintf(expected, sizeof(expected), "$%zu\r\n", length[i]);
		char *at = word_text2(out, (struct span){text, length[i] / 3}, (struct span){text, length[i] - length[i] / 3});

		ck_assert_int_eq(memcmp(out, expected, (size_t)head), 0);
		ck_assert_int_eq(memcmp(out + head, text, length[i]), 0);
		ck_assert_int_eq(memcmp(out + head + length[i], "\r\n", 2), 0);
		ck_assert_ptr_eq(at, out + head + length[i] + 2);
		ck_assert_ptr_eq(word_text(out, (struct span){text, length[i]}), at);
	}
	ck_assert_ptr_eq(word_text(out, (struct span){NULL, 0}), out + 6);
	ck_assert_int_eq(memcmp(out, "$0\r\n\r\n", 6), 0);
}
