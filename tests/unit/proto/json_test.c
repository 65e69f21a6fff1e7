/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/json.c: what is a number, and any bytes as a string. */
#include "proto/json.h"

#include <check.h>
#include <stdio.h>

struct text {
	char bytes[256];
	size_t n;
};

static void put(void *to, const char *p, size_t n)
{
	struct text *out = to;

	ck_assert_uint_lt(out->n + n, sizeof(out->bytes));
	memcpy(out->bytes + out->n, p, n);
	out->n += n;
	out->bytes[out->n] = '\0';
}

static void expect_member(const char *name, const char *value, const char *expected)
{
	struct text out = {.n = 0};

	json_member(put, &out, span_of(name), span_of(value));
	ck_assert_str_eq(out.bytes, expected);
}

static void expect_text(struct span text, const char *expected)
{
	struct text out = {.n = 0};

	json_text(put, &out, text);
	ck_assert_str_eq(out.bytes, expected);
	ck_assert_uint_le(out.n, JSON_TEXT_MAX(text.n));
}

TEST(counts_priorities_figures_and_milliseconds_are_numbers)
{
	expect_member("fence", "1795238400123456", "\"fence\":1795238400123456");
	expect_member("permit", "3", "\"permit\":3");
	expect_member("priority", "9", "\"priority\":9");
	expect_member("waiters", "0", "\"waiters\":0");
	expect_member("value", "-0.250000", "\"value\":-0.250000");
	expect_member("held_ms", "12", "\"held_ms\":12");
	expect_member("of_a_later_daemon_ms", "-12", "\"of_a_later_daemon_ms\":-12");
}

TEST(all_other_fields_are_texts_though_they_look_like_numbers)
{
	expect_member("name", "42", "\"name\":\"42\"");
	expect_member("le", "0.001", "\"le\":\"0.001\"");
	expect_member("version", "1.10", "\"version\":\"1.10\"");
	expect_member("mode", "1", "\"mode\":\"1\"");
	expect_member("of_a_later_daemon", "42", "\"of_a_later_daemon\":\"42\"");
	expect_member("_ms", "42", "\"_ms\":\"42\"");
	expect_member("", "42", "\"\":\"42\"");
}

TEST(what_is_no_number_of_json_is_a_text)
{
	static const char *const value[] = {"", "-", "007", "-01", "1.", ".5", "1.5.", "1e3", "+1", "yes", "12345678901234567"};
	char expected[64];

	for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
		(void)snprintf(expected, sizeof(expected), "\"free\":\"%s\"", value[i]);
		expect_member("free", value[i], expected);
	}
	expect_member("free", "-0.5", "\"free\":-0.5");
}

TEST(a_string_has_any_bytes)
{
	expect_text(SPAN(""), "\"\"");
	expect_text(SPAN("q\"b\\n\nt\tz\0e\x1b d\x7f \xc3\xa4 \xff\xc3"), "\"q\\\"b\\\\n\\nt\\tz\\u0000e\\u001b d\\u007f \xc3\xa4 \\udcff\\udcc3\"");
	expect_text(SPAN("\b\f\r\x9b"), "\"\\b\\f\\r\\udc9b\"");
}

TEST(a_character_that_nobody_sees_is_escaped)
{
	expect_text(SPAN("a\xc2\xad" "b"), "\"a\\u00adb\"");
	expect_text(SPAN("\xe2\x80\xae"), "\"\\u202e\"");
	expect_text(SPAN("\xf3\xa0\x81\x81"), "\"\\udb40\\udc41\"");
	expect_text(SPAN("\xf0\x9f\x94\x92"), "\"\xf0\x9f\x94\x92\"");
}
