/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/api/fields.c: what a query and a body come to. */
#include "daemon/api/fields.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* expected NULL: it is refused. The body is read from memory of its own size. */
static void assert_body(const char *body, size_t n, const char *expected)
{
	char *copy = malloc(n ? n : 1);
	struct fields f;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, body, n);
	fields_init(&f);
	ck_assert_msg(fields_of_body(&f, (struct span){copy, n}) == (expected != NULL), "%.*s: %s", (int)n, body, f.why);
	if (expected) {
		ck_assert_uint_eq(buf_length(&f.text), strlen(expected));
		ck_assert_mem_eq(n && *expected ? buf_begin(&f.text) : "", expected, strlen(expected));
	} else {
		ck_assert_uint_gt(strlen(f.why), 10);
	}
	fields_release(&f);
	free(copy);
}

static void assert_text(const char *body, const char *expected)
{
	assert_body(body, strlen(body), expected);
}

TEST(an_object_becomes_fields)
{
	assert_text("", "");
	assert_text(" \r\n\t", "");
	assert_text("{}", "");
	assert_text("{\"wait\":\"30s\", \"priority\" : 7,\n\"sync\":true,\"failed\":false,\"note\":null}", " wait=30s priority=7 sync=yes failed=no");
	assert_text("{\"note\":\"a b\"}", " note=\"a b\"");
	assert_text("{\"note\":\"\"}", " note=\"\"");
	assert_text("{\"wiat\":\"1s\"}", " wiat=1s");
}

TEST(escapes_become_bytes)
{
	assert_text("{\"note\":\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"}", " note=A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_text("{\"note\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", " note=\"\\\"\\\\/\\x08\\x0c\\n\\r\\t\"");
	assert_text("{\"note\":\"\\udcff\\u0000\"}", " note=\"\\xff\\x00\"");
	assert_text("{\"\\u006eote\":1}", " note=1");
}

TEST(what_is_no_object_of_texts_and_numbers_is_refused)
{
	static const char *const bad[] = {
		"[]", "1", "\"a\"", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}", "{\"a\":{}}", "{\"a\":[1]}", "{\"a\":1}{}",
		"{\"a\":tru}", "{\"a\":nul}", "{\"a\":x}", "{'a':1}", "{a:1}", "{\"a\":\"", "{\"a\":\"\\", "{\"a\":\"\\u12", "{\"a\":\"\\x\"}",
		"{\"a\":\"\n\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\udc00\"}", "{\"A\":1}", "{\"a b\":1}",
		"{\"a=b\":1}", "{\"\":1}", "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_text(bad[i], NULL);
	assert_body("{\"a\":1\0}", 8, NULL);
	assert_body("\0", 1, NULL);
}

TEST(every_part_of_an_object_is_refused)
{
	static const char whole[] = "{\"wait\":\"\\u00e9\\ud83d\\ude00\",\"priority\":12,\"sync\":true}";

	for (size_t n = 1; n < sizeof(whole) - 1; n++)
		assert_body(whole, n, NULL);
	assert_text(whole, " wait=\xc3\xa9\xf0\x9f\x98\x80 priority=12 sync=yes");
}

TEST(long_values_are_refused_and_the_longest_is_not_cut)
{
	char body[8000], expected[2100];

	for (size_t n = 2046; n < 2052; n++) {
		memset(body, 'x', sizeof(body));
		memcpy(body, "{\"note\":\"", 9);
		memcpy(body + 9 + n, "\"}", 3);
		snprintf(expected, sizeof(expected), " note=%.*s", (int)n, body + 9);
		assert_text(body, n <= 2048 ? expected : NULL);
	}
}

/* Each byte is written as four. */
TEST(fields_that_fill_a_line_are_refused)
{
	char body[13000] = "{\"a\":\"";
	size_t n = strlen(body);

	for (int half = 0; half < 2; half++) {
		for (size_t i = 0; i < 1000; i++, n += 6)
			memcpy(body + n, "\\u0001", 6);
		n += (size_t)snprintf(body + n, sizeof(body) - n, "%s", half ? "\"}" : "\",\"b\":\"");
	}
	assert_text(body, NULL);
}

TEST(a_query_becomes_fields)
{
	static const struct {
		const char *query, *expected;
	} rows[] = {{NULL, ""}, {"", ""}, {"wait=30s", " wait=30s"}, {"owner=a+b%2Bc&&fence=7&", " owner=\"a b+c\" fence=7"}, {"owner", " owner=\"\""},
	            {"owner=%zz", NULL}, {"owner=%4", NULL}, {"=1", NULL}, {"a%20b=1", NULL}};
	struct fields f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fields_init(&f);
		ck_assert(fields_of_query(&f, rows[i].query) == (rows[i].expected != NULL));
		if (rows[i].expected) {
			ck_assert_uint_eq(buf_length(&f.text), strlen(rows[i].expected));
			ck_assert_int_eq(strncmp(buf_length(&f.text) ? buf_begin(&f.text) : "", rows[i].expected, buf_length(&f.text)), 0);
		}
		fields_release(&f);
	}
}

TEST(what_a_request_is_judged_by)
{
	struct fields f;

	fields_init(&f);
	ck_assert(fields_of_body(&f, SPAN("{\"wait\":\"0\",\"owner\":\"a\",\"heartbeat\":\"5s\"}")));
	ck_assert(!f.waits);
	ck_assert_int_eq(f.heartbeat_us, 5000000);
	ck_assert_int_eq(strncmp(buf_begin(&f.text) + f.owner, " owner=a", f.owner_n), 0);
	ck_assert(fields_has(&f, FIELD_OWNER) && !fields_has(&f, FIELD_COUNT));
	fields_release(&f);
	fields_init(&f);
	ck_assert(fields_of_query(&f, "wait=forever&count=2"));
	ck_assert(f.waits && fields_has(&f, FIELD_COUNT));
	fields_release(&f);
}
