/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/net/lines.c. */
#include "daemon/net/lines.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define MAX 8

/* What the reader delivers, "[line]" for each line and "<long>", when the text comes in pieces that end where cut says. */
struct reader {
	struct lines l;
	char pending[256];
	char told[1024];
};

static void reader_gets(struct reader *r, const char *text, size_t n)
{
	size_t left = (size_t)(r->l.end - r->l.at);
	enum line kind;
	char *line;
	size_t length;

	ck_assert_uint_lt(left, MAX);
	memmove(r->pending, r->l.at, left);
	memcpy(r->pending + left, text, n);
	r->l.at = r->pending;
	r->l.end = r->pending + left + n;
	while ((kind = lines_next(&r->l, &line, &length)) != LINE_NONE)
		if (kind == LINE_WHOLE)
			sprintf(r->told + strlen(r->told), "[%.*s]", (int)length, line);
		else
			sprintf(r->told + strlen(r->told), "<%.*s>", 3, line);
}

static void reader_init(struct reader *r)
{
	memset(r, 0, sizeof(*r));
	r->l = (struct lines){.at = r->pending, .end = r->pending, .max = MAX};
}

static const char text[] =
	"PING\nab\r\n\n\r\n1234567\n12345678\n123456\r\n1234567\r\n#\n0123456789012345678901234567890\nlast\nrest";
static const char expected[] = "[PING][ab][][][1234567]<123>[123456]<123>[#]<012>[last]";

TEST(lines_are_cut_at_lf_and_crlf_and_bounded_with_their_end)
{
	struct reader r;

	reader_init(&r);
	reader_gets(&r, text, strlen(text));
	ck_assert_str_eq(r.told, expected);
}

TEST(where_the_bytes_are_split_makes_no_difference)
{
	size_t n = strlen(text), i, j;
	struct reader r;

	for (i = 0; i <= n; i++)
		for (j = i; j <= n; j++) {
			reader_init(&r);
			reader_gets(&r, text, i);
			reader_gets(&r, text + i, j - i);
			reader_gets(&r, text + j, n - j);
			ck_assert_msg(!strcmp(r.told, expected), "split at %zu and %zu: %s", i, j, r.told);
		}
}

TEST(bytes_may_come_one_by_one)
{
	struct reader r;
	size_t i;

	reader_init(&r);
	for (i = 0; i < strlen(text); i++)
		reader_gets(&r, text + i, 1);
	ck_assert_str_eq(r.told, expected);
}

TEST(a_line_of_just_the_bound_is_whole_and_one_byte_more_is_too_long)
{
	struct reader r;

	reader_init(&r);
	reader_gets(&r, "1234567\n", MAX);
	ck_assert_str_eq(r.told, "[1234567]");
	reader_gets(&r, "12345678\n", MAX + 1);
	ck_assert_str_eq(r.told, "[1234567]<123>");
}

TEST(a_line_without_end_is_not_stored)
{
	struct reader r;
	int i;

	reader_init(&r);
	for (i = 0; i < 1000; i++)
		reader_gets(&r, "xxxxxxxxxxxxxxxx", 16);
	ck_assert_ptr_eq(r.l.at, r.l.end);
	reader_gets(&r, "\nPING\n", 6);
	ck_assert_str_eq(r.told, "<xxx>[PING]");
}

TEST(a_nul_byte_is_a_byte_and_a_cr_inside_a_line_too)
{
	char bytes[] = "a\0b\nc\rd\n", *line;
	struct lines l = {.at = bytes, .end = bytes + 8, .max = MAX};
	size_t n;

	ck_assert_int_eq(lines_next(&l, &line, &n), LINE_WHOLE);
	ck_assert_uint_eq(n, 3);
	ck_assert_mem_eq(line, "a\0b", 3);
	ck_assert_int_eq(lines_next(&l, &line, &n), LINE_WHOLE);
	ck_assert_uint_eq(n, 3);
	ck_assert_mem_eq(line, "c\rd", 3);
	ck_assert_int_eq(lines_next(&l, &line, &n), LINE_NONE);
}

/* They are not waited for: the greeting of a binary protocol has no LF. Where the bytes are split decides how much of the line is reported. */
TEST(a_line_that_begins_with_a_control_byte_is_reported_at_once_and_once)
{
	struct reader r;

	reader_init(&r);
	reader_gets(&r, "PING\n\x16\x03", 7);
	ck_assert_str_eq(r.told, "[PING][\x16\x03]");
	reader_gets(&r, "rest", 4);
	reader_gets(&r, "\nPING\n\x01whole\n\tx", 15);
	ck_assert_str_eq(r.told, "[PING][\x16\x03][PING][\x01whole]");
}
