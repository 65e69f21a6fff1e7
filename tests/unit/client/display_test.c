/* SPDX-License-Identifier: BSD-2-Clause */
/* client/lib/display.c, client/cli/io/output.c: how redlock shows ages and names to people. */
#include "client/cli/io/output.h"
#include "client/lib/display.h"

#include <check.h>

TEST(ages_read_like_ages)
{
	static const struct {
		int64_t ms;
		const char *text;
	} ages[] = {{-1, "0ms"},      {0, "0ms"},        {999, "999ms"},     {1000, "1s"},         {59999, "59s"},
		    {60000, "1m00s"}, {250400, "4m10s"}, {3600000, "1h00m"}, {86399999, "23h59m"}, {187200000, "2d04h"}};
	char out[AGE_BYTES];
	size_t i;

	for (i = 0; i < sizeof(ages) / sizeof(ages[0]); i++)
		ck_assert_str_eq(age_text(ages[i].ms, out), ages[i].text);
}

TEST(control_sequences_for_a_terminal_are_escaped)
{
	static const struct span odd = {"a\x1b[2J\n\\\xc3\xa4\xff\xc2\x9b\0z", 14};
	char out[64], small[12];
	size_t n = shown_text(odd, out, sizeof(out));

	ck_assert_str_eq(out, "a\\x1b[2J\\x0a\\\\\xc3\xa4\\xff\\xc2\\x9b\\x00z");
	ck_assert_uint_eq(n, strlen(out));
	shown_text(odd, small, sizeof(small));
	ck_assert_str_eq(small, "a\\x1b[2J...");
	shown_text(SPAN("abcdefg"), small, 8);
	ck_assert_str_eq(small, "abcdefg");
	shown_text(SPAN("abcdefgh"), small, 8);
	ck_assert_str_eq(small, "abcd...");
	shown_text(SPAN("abc\xc3\xa4\xc3\xa4\xc3\xa4"), small, 8);
	ck_assert_str_eq(small, "abc...");
	ck_assert_uint_eq(shown_width(SPAN("\xc3\xa4x")), 2);
}

TEST(characters_that_take_no_room_or_turn_others_are_escaped)
{
	char out[64];

	shown_text(SPAN("a\xe2\x80\xae" "b\xe2\x80\x8b\xc3\xa4"), out, sizeof(out));
	ck_assert_str_eq(out, "a\\xe2\\x80\\xae" "b\\xe2\\x80\\x8b\xc3\xa4");
}
