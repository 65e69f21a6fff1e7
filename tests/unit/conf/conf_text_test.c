/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/words.c, report.c: the parts that know words and lines, but no key. */
#include "conf/report.h"
#include "conf/words.h"

#include <check.h>
#include <string.h>

TEST(alternatives_are_found_by_word)
{
	ck_assert_int_eq(alternative_find("memory|redis", "redis"), 1);
	ck_assert_int_eq(alternative_find("memory|redis", "Memory"), 0);
	ck_assert_int_eq(alternative_find("memory|redis", "red"), -1);
	ck_assert_int_eq(alternative_find("memory|redis", ""), -1);
}

TEST(only_valid_utf8_is_decoded)
{
	static const struct {
		const char *bytes;
		size_t n, length;
		uint32_t rune;
	} table[] = {
		{"a", 1, 1, 'a'},
		{"\0", 1, 1, 0},
		{"\xc3\xb6", 2, 2, 0xf6},
		{"\xe2\x82\xac", 3, 3, 0x20ac},
		{"\xf0\x9f\x94\x92", 4, 4, 0x1f512},
		{"\xc3", 1, 0, 0},
		{"\xc3\x28", 2, 0, 0},
		{"\xc0\x80", 2, 0, 0},
		{"\xe0\x80\x80", 3, 0, 0},
		{"\xed\xa0\x80", 3, 0, 0},
		{"\xf4\x90\x80\x80", 4, 0, 0},
		{"\xf5\x80\x80\x80", 4, 0, 0},
		{"\x80", 1, 0, 0},
		{"\xff", 1, 0, 0},
		{"", 0, 0, 0},
	};
	uint32_t rune;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		rune = 0;
		ck_assert_msg(utf8_decode(table[i].bytes, table[i].n, &rune) == table[i].length, "row %zu", i);
		ck_assert_msg(rune == table[i].rune, "row %zu", i);
	}
}

TEST(shown_text_is_printable_and_fits)
{
	char out[SHOW_MAX], text[400];

	ck_assert_str_eq(text_show("a\x1b[1m\xff\xc3\xb6", out), "a\\x1b[1m\\xff\xc3\xb6");
	memset(text, '\x01', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_uint_lt(strlen(text_show(text, out)), SHOW_MAX);
	ck_assert_str_eq(out + strlen(out) - 3, "...");
	ck_assert(!text_printable("a\nb", 3));
	ck_assert(!text_printable("\xc2\x85", 2));
	ck_assert(text_printable("gr\xc3\xb6\xc3\x9f"
				 "er",
				 8));
}

/* The flaw of a text, and where it is. */
static bool flaw_is(const char *text, size_t n, unsigned line, unsigned column)
{
	struct conf_source *list = NULL;
	struct source_place place = {0};
	const char *flaw = source_flaw(source_add(&list, "x", text, n), &place);

	source_free(list);
	return flaw && place.line == line && place.column == column;
}

TEST(a_flaw_is_found_where_it_stands_in_characters)
{
	struct conf_source *list = NULL;
	struct source_place place;

	ck_assert(flaw_is("a: 1\nb: \0\n", 10, 2, 4));
	ck_assert(flaw_is("\xc3\xb6\xc3\xb6\xff", 5, 1, 3));
	ck_assert(flaw_is("a\n  \tb", 6, 2, 3));
	ck_assert(flaw_is("a\rb", 3, 1, 2));
	ck_assert(flaw_is("a\n\xe2\x80\xa8", 5, 2, 1));
	ck_assert(flaw_is("a\n\xc3", 3, 2, 1));
	ck_assert_ptr_null(source_flaw(source_add(&list, "x", "a: b\t# c\r\n\r\n", 12), &place));
	source_free(list);
}

static bool line_is(const struct conf_source *s, unsigned line, const char *text)
{
	size_t n;
	const char *p = source_line(s, line, &n);

	return n == strlen(text) && !memcmp(p, text, n);
}

TEST(a_line_is_found_by_its_number)
{
	static const char text[] = "\xef\xbb\xbf"
				   "one\r\n\nthree";
	struct conf_source *list = NULL, *s = source_add(&list, "x", text, strlen(text));

	ck_assert(line_is(s, 1, "one"));
	ck_assert(line_is(s, 2, ""));
	ck_assert(line_is(s, 3, "three"));
	ck_assert(line_is(s, 4, ""));
	ck_assert(line_is(s, 400, ""));
	source_free(list);
}
