/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/words.c, number.c, source.c: the parts that know words, numbers and lines, but no key. */
#include "conf/number.h"
#include "conf/source.h"
#include "conf/words.h"

#include <check.h>
#include <string.h>

TEST(a_distance_counts_each_edit_and_a_swap_once)
{
	static const struct {
		const char *a, *b;
		unsigned distance;
	} table[] = {
		{"", "", 0},
		{"listen", "listen", 0},
		{"listen", "LISTEN", 0},
		{"listn", "listen", 1},
		{"lisetn", "listen", 1},
		{"lissten", "listen", 1},
		{"lixten", "listen", 1},
		{"tcp", "pct", 2},
		{"ab", "ba", 1},
		{"", "ab", 2},
		{"kitten", "sitting", 3},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_msg(word_distance(table[i].a, table[i].b) == table[i].distance, "%s %s", table[i].a, table[i].b);
		ck_assert_msg(word_distance(table[i].b, table[i].a) == table[i].distance, "%s %s", table[i].b, table[i].a);
	}
}

TEST(near_is_two_edits_and_a_third_of_the_word)
{
	char huge[200];
	unsigned d;

	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	ck_assert(word_near("nods", "nodes", &d));
	ck_assert_uint_eq(d, 1);
	ck_assert(!word_near("nd", "node", &d));
	ck_assert(word_near("tcq", "tcp", &d));
	ck_assert(!word_near("tq", "tp", &d));
	ck_assert(word_near("lisetm", "listen", &d));
	ck_assert(!word_near("lixetm", "listen", &d));
	ck_assert(!word_near(huge, huge, &d));
}

TEST(alternatives_are_found_by_word_and_by_number)
{
	char out[8];

	ck_assert_int_eq(alternative_find("memory|redis", "redis"), 1);
	ck_assert_int_eq(alternative_find("memory|redis", "Memory"), 0);
	ck_assert_int_eq(alternative_find("memory|redis", "red"), -1);
	ck_assert_int_eq(alternative_find("memory|redis", ""), -1);
	ck_assert_uint_eq(alternative_get("memory|redis", 1, out, sizeof(out)), 5);
	ck_assert_str_eq(out, "redis");
	ck_assert_uint_eq(alternative_get("memory|redis", 2, out, sizeof(out)), 0);
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

TEST(each_duration_has_its_microseconds)
{
	static const struct {
		const char *text;
		int64_t us;
	} good[] = {{"0s", 0},
		    {"500us", 500},
		    {"250ms", 250000},
		    {"30s", 30000000},
		    {"2m", 120000000},
		    {"1h", 3600000000},
		    {"1.5s", 1500000},
		    {"0.001ms", 1},
		    {"1.000001s", 1000001},
		    {"0.25h", 900000000},
		    {"1.5m", 90000000},
		    {"87840h", INT64_C(316224000000000)}};
	static const struct {
		const char *text;
		enum number_outcome outcome;
	} bad[] = {{"10", NUMBER_UNIT_MISSING}, {"0", NUMBER_UNIT_MISSING},       {"1.5", NUMBER_UNIT_MISSING},
		   {"-1s", NUMBER_NEGATIVE},    {"", NUMBER_MALFORMED},           {"s", NUMBER_MALFORMED},
		   {"1 s", NUMBER_MALFORMED},   {"1S", NUMBER_MALFORMED},         {"1d", NUMBER_MALFORMED},
		   {"1.s", NUMBER_MALFORMED},   {".5s", NUMBER_MALFORMED},        {"1.5us", NUMBER_MALFORMED},
		   {"010s", NUMBER_MALFORMED},  {"1.0000001s", NUMBER_MALFORMED}, {"1s ", NUMBER_MALFORMED},
		   {"+1s", NUMBER_MALFORMED},   {"87841h", NUMBER_LARGE},         {"18446744073709551616s", NUMBER_LARGE}};
	int64_t us;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_msg(number_duration(good[i].text, &us) == NUMBER_OK, "%s", good[i].text);
		ck_assert_msg(us == good[i].us, "%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(number_duration(bad[i].text, &us) == bad[i].outcome, "%s", bad[i].text);
}

TEST(counts_and_sizes_are_exact_or_refused)
{
	uint64_t n;

	ck_assert_int_eq(number_count("18446744073709551615", &n), NUMBER_OK);
	ck_assert(n == UINT64_MAX);
	ck_assert_int_eq(number_count("18446744073709551616", &n), NUMBER_LARGE);
	ck_assert_int_eq(number_count("1k", &n), NUMBER_MALFORMED);
	ck_assert_int_eq(number_count("1_000", &n), NUMBER_MALFORMED);
	ck_assert_int_eq(number_count("0x10", &n), NUMBER_MALFORMED);
	ck_assert_int_eq(number_count("-1", &n), NUMBER_NEGATIVE);
	ck_assert_int_eq(number_size("8k", &n), NUMBER_OK);
	ck_assert_uint_eq(n, 8192);
	ck_assert_int_eq(number_size("3M", &n), NUMBER_OK);
	ck_assert_uint_eq(n, 3 << 20);
	ck_assert_int_eq(number_size("2g", &n), NUMBER_OK);
	ck_assert(n == UINT64_C(2) << 30);
	ck_assert_int_eq(number_size("512", &n), NUMBER_OK);
	ck_assert_int_eq(number_size("8kb", &n), NUMBER_MALFORMED);
	ck_assert_int_eq(number_size("8t", &n), NUMBER_MALFORMED);
	ck_assert_int_eq(number_size("18446744073709551615k", &n), NUMBER_LARGE);
}

/* The flaw of a text, where it is, and how much stands before it. */
static bool flaw_is(const char *text, size_t n, unsigned line, unsigned column, size_t usable)
{
	struct conf_source *list = NULL;
	struct source_place place = {0};
	size_t before = 0;
	const char *flaw = source_flaw(source_add(&list, "x", text, n), &place, &before);

	source_free(list);
	return flaw && place.line == line && place.column == column && before == usable;
}

TEST(a_flaw_is_found_where_it_stands_in_characters)
{
	struct conf_source *list = NULL;
	struct source_place place;
	size_t n;

	ck_assert(flaw_is("a: 1\nb: \0\n", 10, 2, 4, 5));
	ck_assert(flaw_is("\xc3\xb6\xc3\xb6\xff", 5, 1, 3, 0));
	ck_assert(flaw_is("a\n  \tb", 6, 2, 3, 2));
	ck_assert(flaw_is("a\rb", 3, 1, 2, 0));
	ck_assert(flaw_is("a\n\xe2\x80\xa8", 5, 2, 1, 2));
	ck_assert(flaw_is("a\n\xc3", 3, 2, 1, 2));
	ck_assert_ptr_null(source_flaw(source_add(&list, "x", "a: b\t# c\r\n\r\n", 12), &place, &n));
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
