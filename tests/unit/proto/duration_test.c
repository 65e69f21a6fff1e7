/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/duration.c. */
#include "proto/proto.h"

#include <check.h>
#include <string.h>

TEST(each_text_has_its_microseconds)
{
	static const struct {
		const char *text;
		int64_t us;
	} table[] = {
		{"0", 0},
		{"00", DURATION_NO_UNIT},
		{"0.0", DURATION_NO_UNIT},
		{"1", DURATION_NO_UNIT},
		{"10000", DURATION_NO_UNIT},
		{"500us", 500},
		{"250ms", 250000},
		{"30s", 30000000},
		{"2m", 120000000},
		{"1h", INT64_C(3600000000)},
		{"0s", 0},
		{"1.5s", 1500000},
		{"0.001ms", 1},
		{"0.0009ms", 0},
		{"1.9us", 1},
		{"0.25h", 900000000},
		{"1.999999999999999999999999s", 1999999},
		{"007s", 7000000},
		{"87600h", DURATION_MAX},
		{"87600.000000001h", DURATION_TOO_LARGE},
		{"87601h", DURATION_TOO_LARGE},
		{"315360000000", DURATION_NO_UNIT},
		{"315360000001", DURATION_NO_UNIT},
		{"9223372036854775807us", DURATION_TOO_LARGE},
		{"9223372036854775808us", DURATION_TOO_LARGE},
		{"99999999999999999999999999h", DURATION_TOO_LARGE},
		{"", DURATION_MALFORMED},
		{"s", DURATION_MALFORMED},
		{".5s", DURATION_MALFORMED},
		{"1.s", DURATION_MALFORMED},
		{"1.", DURATION_MALFORMED},
		{"1.5", DURATION_NO_UNIT},
		{"-1s", DURATION_MALFORMED},
		{"+1s", DURATION_MALFORMED},
		{" 1s", DURATION_MALFORMED},
		{"1 s", DURATION_MALFORMED},
		{"1s ", DURATION_MALFORMED},
		{"1S", DURATION_MALFORMED},
		{"1ns", DURATION_MALFORMED},
		{"1d", DURATION_MALFORMED},
		{"1m30s", DURATION_MALFORMED},
		{"1.5.5s", DURATION_MALFORMED},
		{"1e3s", DURATION_MALFORMED},
		{"0x10s", DURATION_MALFORMED},
		{"1,5s", DURATION_MALFORMED},
		{"forever", DURATION_MALFORMED},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct span text = span_of(table[i].text);

		ck_assert_msg(duration_parse(text) == table[i].us, "'%s'", table[i].text);
	}
}

static void expect_format(int64_t us, const char *text)
{
	char out[32];
	size_t n = duration_format(us, out);

	ck_assert_msg(n == strlen(text) && memcmp(out, text, n) == 0, "%s: %.*s", text, (int)n, out);
}

TEST(the_largest_unit_that_is_exact_is_written)
{
	expect_format(0, "0s");
	expect_format(1, "1us");
	expect_format(1500, "1500us");
	expect_format(1500000, "1500ms");
	expect_format(10000000, "10s");
	expect_format(90000000, "90s");
	expect_format(120000000, "2m");
	expect_format(INT64_C(3600000000), "1h");
	expect_format(DURATION_MAX, "87600h");
	expect_format(DURATION_MAX - 1, "315359999999999us");
}

TEST(what_is_written_is_read_as_the_same)
{
	char out[32];

	for (int64_t us = 0; us <= DURATION_MAX; us = us * 3 / 2 + 1) {
		struct span text = {out, duration_format(us, out)};

		ck_assert_int_eq(duration_parse(text), us);
	}
}
