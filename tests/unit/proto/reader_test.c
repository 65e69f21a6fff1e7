/* SPDX-License-Identifier: BSD-2-Clause */
/* proto/reader.c: a client's view of a line. */
#include "proto/proto.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct reply_line line;
static char *kept; /* what line points into, of exactly its own size */

static void teardown(void)
{
	free(kept);
	kept = NULL;
}

static int read_bytes(const char *bytes, size_t n)
{
	free(kept);
	kept = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(kept);
	memcpy(kept, bytes, n);
	return reply_parse(kept, n, &line);
}

static void expect_kind(const char *bytes, enum line_kind kind, const char *tag, const char *code)
{
	ck_assert_msg(read_bytes(bytes, strlen(bytes)) == 0, "%s", bytes);
	ck_assert_msg(line.kind == kind, "%s: %d", bytes, (int)line.kind);
	ck_assert(span_equal(line.tag, span_of(tag)));
	ck_assert(span_equal(line.code, span_of(code)));
}

static void expect_value(const char *field, const char *value)
{
	ck_assert_msg(span_equal(reply_find(&line, field), span_of(value)), "%s=%s", field, value);
}

FIXTURE(.teardown = teardown)

TEST(each_kind_of_line_is_known)
{
	expect_kind("OK", LINE_OK, "", "");
	expect_kind("OK name=x\r", LINE_OK, "", "");
	expect_kind("@a BUSY name=x", LINE_BUSY, "a", "");
	expect_kind("TIMEOUT waited_ms=5", LINE_TIMEOUT, "", "");
	expect_kind("* name=x", LINE_ROW, "", "");
	expect_kind("@b.1 * name=x", LINE_ROW, "b.1", "");
	expect_kind("! LOST name=x", LINE_PUSH, "", "LOST");
	expect_kind("ERR NOTHELD", LINE_ERR, "", "NOTHELD");
	expect_kind("@c ERR ARG wait='5x': \"no", LINE_ERR, "c", "ARG");
	ck_assert(span_equal(line.text, SPAN("wait='5x': \"no")));
}

TEST(a_line_outside_the_protocol_is_refused)
{
	static const char *const lines[] = {
		"",
		" ",
		"ok",
		"OKAY",
		"+OK",
		"-ERR x",
		"HTTP/1.1 200 OK",
		"@ OK",
		"@a/ OK",
		"@a",
		"@a ",
		"ERR",
		"ERR ",
		"!",
		"! ",
		"!LOST",
		"*x",
		"OK name=\"x",
		"OK \x01",
		"OK \"a\"b",
		"* a='b",
		"@a @b OK",
		"OK a=\"\\q\"",
		"BUSY \x7f",
		"OK\tname=x\x02",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_msg(read_bytes(lines[i], strlen(lines[i])) != 0, "%s", lines[i]);
}

TEST(fields_are_found_unquoted_and_the_first_of_a_name_counts)
{
	expect_kind("BUSY name=orders/42 holder=\"worker-7 pid=4211\" later new=\"\\x00\\n\" held_ms=12400 ttl_ms=-1 name=y",
		    LINE_BUSY, "", "");
	ck_assert_uint_eq(line.fields, 6);
	expect_value("name", "orders/42");
	expect_value("holder", "worker-7 pid=4211");
	ck_assert(span_equal(reply_find(&line, "new"), SPAN("\0\n")));
	ck_assert_ptr_null(reply_find(&line, "waiters").p);
	ck_assert_int_eq(reply_number(&line, "held_ms", -7), 12400);
	ck_assert_int_eq(reply_number(&line, "ttl_ms", -7), -1);
}

TEST(a_malformed_number_gives_the_default)
{
	expect_kind("OK a=9223372036854775807 b=9223372036854775808 c=1x d= e=- f=--1 g=-9223372036854775807 h=+1", LINE_OK, "",
		    "");
	ck_assert(reply_number(&line, "a", -7) == INT64_MAX);
	ck_assert_int_eq(reply_number(&line, "b", -7), -7);
	ck_assert_int_eq(reply_number(&line, "c", -7), -7);
	ck_assert_int_eq(reply_number(&line, "d", -7), -7);
	ck_assert_int_eq(reply_number(&line, "e", -7), -7);
	ck_assert_int_eq(reply_number(&line, "f", -7), -7);
	ck_assert(reply_number(&line, "g", -7) == -INT64_MAX);
	ck_assert_int_eq(reply_number(&line, "h", -7), -7);
	ck_assert_int_eq(reply_number(&line, "absent", -7), -7);
}

TEST(more_fields_than_there_is_room_for_are_passed_over)
{
	char bytes[8 * (REPLY_FIELDS_MAX + 5)] = "OK";
	size_t at = 2;

	for (int i = 0; i < REPLY_FIELDS_MAX + 5; i++, at += 4)
		memcpy(bytes + at, " a=b", 4);
	ck_assert_int_eq(read_bytes(bytes, at), 0);
	ck_assert_uint_eq(line.fields, REPLY_FIELDS_MAX);
	memcpy(bytes + at - 1, "\"", 1);
	ck_assert_int_eq(read_bytes(bytes, at), -1);
}

TEST(every_prefix_of_a_line_is_read_or_refused)
{
	static const char *const lines[] = {
		"@a.1 BUSY name=orders/42 holder=\"worker-7 \\x00\" held_ms=12400",
		"! LOST name=\"a b\" fence=1 reason=quorum",
		"@a ERR DEADLOCK cycle=\"a<-b<-a\"",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		for (size_t n = 0; n <= strlen(lines[i]); n++) {
			if (read_bytes(lines[i], n) < 0)
				continue;
			for (unsigned f = 0; f < line.fields; f++)
				ck_assert(line.field[f].value.p + line.field[f].value.n <= kept + n);
		}
}
