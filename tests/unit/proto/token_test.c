/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/token.c: how a line is cut into words and fields. */
#include "proto/token.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS 16

/* A line of exactly its own size, split. */
struct line {
	char *bytes;
	struct token token[TOKENS];
	size_t count;
	enum split last;
};

static struct line line_split(const char *bytes, size_t n)
{
	struct line line = {.bytes = malloc(n ? n : 1)};
	struct token token;
	struct cursor cursor;

	ck_assert_ptr_nonnull(line.bytes);
	memcpy(line.bytes, bytes, n);
	cursor = cursor_over(line.bytes, n);
	while ((line.last = token_next(&cursor, &token)) == SPLIT_TOKEN) {
		ck_assert_uint_lt(line.count, TOKENS);
		line.token[line.count++] = token;
	}
	return line;
}

static void expect_span(struct span got, const char *bytes, size_t n)
{
	ck_assert_uint_eq(got.n, n);
	ck_assert_mem_eq(got.p, bytes, n);
}

/* The one token of a line is a word of these bytes. */
static void expect_word(const char *bytes, const char *word, size_t n)
{
	struct line line = line_split(bytes, strlen(bytes));

	ck_assert_msg(line.last == SPLIT_END && line.count == 1, "%s: %d, %zu tokens", bytes, (int)line.last, line.count);
	ck_assert(!line.token[0].is_field);
	expect_span(line.token[0].text, word, n);
	free(line.bytes);
}

static void expect_field(const char *bytes, const char *name, const char *value)
{
	struct line line = line_split(bytes, strlen(bytes));

	ck_assert_msg(line.last == SPLIT_END && line.count == 1, "%s: %d, %zu tokens", bytes, (int)line.last, line.count);
	ck_assert(line.token[0].is_field);
	expect_span(line.token[0].text, name, strlen(name));
	expect_span(line.token[0].value, value, strlen(value));
	free(line.bytes);
}

static void expect_fault(const char *bytes, enum split fault)
{
	struct line line = line_split(bytes, strlen(bytes));

	ck_assert_msg(line.last == fault, "%s: %d", bytes, (int)line.last);
	ck_assert_int_gt((int)strlen(split_text(line.last)), 0);
	free(line.bytes);
}

TEST(blanks_part_tokens_and_a_return_ends_the_line)
{
	static const char *const lines[] = {"a b=c d", "  a\tb=c \t d  ", "a b=c d\r", "a b=c d \r", "'a' b=\"c\" \"d\"\r"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct line line = line_split(lines[i], strlen(lines[i]));

		ck_assert_int_eq(line.last, SPLIT_END);
		ck_assert_uint_eq(line.count, 3);
		expect_span(line.token[0].text, "a", 1);
		expect_span(line.token[1].text, "b", 1);
		expect_span(line.token[1].value, "c", 1);
		expect_span(line.token[2].text, "d", 1);
		free(line.bytes);
	}
}

TEST(a_line_of_blanks_has_no_token)
{
	static const char *const lines[] = {"", " ", "\t \t", "\r", " \r"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct line line = line_split(lines[i], strlen(lines[i]));

		ck_assert_int_eq(line.last, SPLIT_END);
		ck_assert_uint_eq(line.count, 0);
		free(line.bytes);
	}
}

TEST(every_escape_stands_for_its_byte)
{
	expect_word("\"\\n\\r\\t\\b\\a\\\"\\\\\\x00\\xfF\\x41\"", "\n\r\t\b\a\"\\\0\xff\x41", 10);
	for (int byte = 0; byte < 256; byte++) {
		char bytes[32], meant[3] = {'<', (char)byte, '>'};

		snprintf(bytes, sizeof(bytes), "\"<\\x%02X>\"", (unsigned)byte);
		expect_word(bytes, meant, 3);
		snprintf(bytes, sizeof(bytes), "<\"\\x%02x>\"", (unsigned)byte);
		expect_word(bytes, meant, 3);
	}
}

TEST(any_other_letter_behind_a_backslash_is_no_escape)
{
	for (int byte = 0; byte < 256; byte++) {
		char bytes[] = "\"\\?41\"";
		struct line line;

		bytes[2] = (char)byte;
		line = line_split(bytes, sizeof(bytes) - 1);
		ck_assert_int_eq(line.last, byte && strchr("nrtbax\"\\", byte) ? SPLIT_END : SPLIT_BAD_ESCAPE);
		free(line.bytes);
	}
}

TEST(single_quotes_know_one_escape)
{
	expect_word("'a b'", "a b", 3);
	expect_word("'a\\'b\\n\\\\\"'", "a'b\\n\\\\\"", 8);
	expect_word("''", "", 0);
}

TEST(a_quoted_section_may_start_in_the_middle_of_a_token)
{
	expect_word("ab\"c d\"", "abc d", 5);
	expect_word("ab'c d'", "abc d", 5);
	expect_word("a\\b", "a\\b", 3);
	expect_word("\"it's\ta tab\"", "it's\ta tab", 10);
	expect_field("note=\"a b\"", "note", "a b");
	expect_field("note=x'y z'", "note", "xy z");
}

TEST(a_token_whose_first_equals_sign_is_not_quoted_is_a_field)
{
	expect_field("a=b", "a", "b");
	expect_field("a=b=c", "a", "b=c");
	expect_field("a=", "a", "");
	expect_field("a=\"\"", "a", "");
	expect_field("=", "", "");
	expect_field("=b", "", "b");
	expect_field("a=\"b=c\"", "a", "b=c");
	expect_word("\"a=b\"", "a=b", 3);
	expect_word("'a=b'", "a=b", 3);
	expect_word("a\"=b\"", "a=b", 3);
}

TEST(a_line_that_cannot_be_split_says_why)
{
	static const struct {
		const char *bytes;
		enum split fault;
	} table[] = {
		{"\"a", SPLIT_OPEN_QUOTE},         {"'a", SPLIT_OPEN_QUOTE},        {"\"", SPLIT_OPEN_QUOTE},
		{"it's", SPLIT_OPEN_QUOTE},        {"a=\"", SPLIT_OPEN_QUOTE},      {"'a\\'", SPLIT_OPEN_QUOTE},
		{"\"a'", SPLIT_OPEN_QUOTE},        {"\"a\\\"", SPLIT_OPEN_QUOTE},   {"\"a\\", SPLIT_BAD_ESCAPE},
		{"\"\\x\"", SPLIT_BAD_ESCAPE},     {"\"\\x1\"", SPLIT_BAD_ESCAPE},  {"\"\\x1", SPLIT_BAD_ESCAPE},
		{"\"\\xg0\"", SPLIT_BAD_ESCAPE},   {"\"\\x0g\"", SPLIT_BAD_ESCAPE}, {"\"\\X00\"", SPLIT_BAD_ESCAPE},
		{"\"\\'\"", SPLIT_BAD_ESCAPE},     {"\"a\"b", SPLIT_AFTER_QUOTE},   {"'a'b", SPLIT_AFTER_QUOTE},
		{"\"a\"\"b\"", SPLIT_AFTER_QUOTE}, {"\"a\"=b", SPLIT_AFTER_QUOTE},  {"\"a\"\x01", SPLIT_AFTER_QUOTE},
		{"\x01", SPLIT_CONTROL},           {"a\x7f", SPLIT_CONTROL},        {"a\rb", SPLIT_CONTROL},
		{"a\r\r", SPLIT_CONTROL},          {"a\n", SPLIT_CONTROL},          {"\"a\x02\"", SPLIT_CONTROL},
		{"'a\x02'", SPLIT_CONTROL},        {"a=b\x1f", SPLIT_CONTROL},      {"a b \x1b[0m", SPLIT_CONTROL},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect_fault(table[i].bytes, table[i].fault);
}

static enum split meant_by(int byte)
{
	if (byte == '"' || byte == '\'')
		return SPLIT_OPEN_QUOTE;
	return (byte < 0x20 && byte != '\t') || byte == 0x7f ? SPLIT_CONTROL : SPLIT_END;
}

TEST(every_raw_byte_is_a_blank_a_control_a_quote_or_itself)
{
	for (int byte = 0; byte < 256; byte++) {
		char bytes[] = "a?b";
		struct line line;

		bytes[1] = (char)byte;
		line = line_split(bytes, 3);
		ck_assert_msg(line.last == meant_by(byte), "byte %d: %d", byte, (int)line.last);
		if (line.last == SPLIT_END)
			ck_assert_uint_eq(line.count, byte == ' ' || byte == '\t' ? 2 : 1);
		if (line.last == SPLIT_END && line.count == 1 && byte != '=')
			expect_span(line.token[0].text, bytes, 3);
		free(line.bytes);
	}
}

TEST(every_raw_byte_means_the_same_in_a_value_but_an_equals_sign)
{
	for (int byte = 0; byte < 256; byte++) {
		char bytes[] = "k=a?b";
		struct line line;

		bytes[3] = (char)byte;
		line = line_split(bytes, 5);
		ck_assert_msg(line.last == meant_by(byte), "byte %d: %d", byte, (int)line.last);
		if (line.last == SPLIT_END)
			ck_assert_uint_eq(line.count, byte == ' ' || byte == '\t' ? 2 : 1);
		if (line.last == SPLIT_END && line.count == 1) {
			expect_span(line.token[0].text, "k", 1);
			expect_span(line.token[0].value, bytes + 2, 3);
		}
		free(line.bytes);
	}
}

TEST(the_first_and_the_last_byte_of_a_line_are_read_as_any_other)
{
	for (int byte = 0; byte < 256; byte++) {
		char bytes[] = {(char)byte};
		struct line line = line_split(bytes, 1);
		bool blank = byte == ' ' || byte == '\t' || byte == '\r';

		ck_assert_msg(line.last == (blank ? SPLIT_END : meant_by(byte)), "byte %d: %d", byte, (int)line.last);
		ck_assert_uint_eq(line.count, !blank && line.last == SPLIT_END);
		if (line.count == 1)
			ck_assert_int_eq(line.token[0].is_field, byte == '=');
		free(line.bytes);
	}
}
