/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/resp.c: what is RESP and what is garbage, wherever it is split. */
#include "daemon/redis/resp.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct resp resp;

static void setup(void)
{
	resp_init(&resp);
}

static void teardown(void)
{
	resp_release(&resp);
}

static int take(const char *p, size_t n)
{
	int rc = resp_feed(&resp, p, n);

	return rc < 0 ? rc : resp_next(&resp);
}

static int take_text(const char *text)
{
	return take(text, strlen(text));
}

static const char everything[] = "*5\r\n:-7\r\n*2\r\n$3\r\na\0b\r\n*0\r\n$-1\r\n+fine\r\n-ERR no\r\n";

static void check_everything(void)
{
	const struct resp_value *v = resp.value;

	ck_assert_uint_eq(resp.count, 8);
	ck_assert(v[0].type == RESP_ARRAY && v[0].children == 5 && v[0].end == 8);
	ck_assert(v[1].type == RESP_INTEGER && v[1].integer == -7 && v[1].end == 2);
	ck_assert(v[2].type == RESP_ARRAY && v[2].children == 2 && v[2].end == 5);
	ck_assert(v[3].type == RESP_STRING && span_equal(resp_text(&resp, &v[3]), (struct span){"a\0b", 3}));
	ck_assert(v[4].type == RESP_ARRAY && v[4].children == 0 && v[4].end == 5);
	ck_assert(v[5].type == RESP_NIL && v[5].end == 6);
	ck_assert(v[6].type == RESP_STATUS && span_equal(resp_text(&resp, &v[6]), SPAN("fine")));
	ck_assert(v[7].type == RESP_ERROR && span_equal(resp_text(&resp, &v[7]), SPAN("ERR no")));
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(a_reply_is_one_flat_list)
{
	ck_assert_int_eq(take(everything, sizeof(everything) - 1), 1);
	check_everything();
	ck_assert_int_eq(resp_next(&resp), 0);
}

static void read_all(struct resp *r, const char *p, size_t n)
{
	ck_assert_int_eq(resp_feed(r, p, n), 0);
	while (resp_next(r) == 1)
		;
}

/* With what the first one knows of a reply that is not whole yet. */
TEST(another_reader_goes_on_at_every_offset)
{
	static char twice[2 * sizeof(everything)];
	const size_t whole = sizeof(everything) - 1;
	struct resp first;

	memcpy(twice, everything, whole);
	memcpy(twice + whole, everything, whole);
	for (size_t at = 0; at < 2 * whole; at++) {
		resp_init(&first);
		read_all(&first, twice, at / 2);
		read_all(&first, twice + at / 2, at - at / 2);
		ck_assert_uint_eq(resp_unread(&first).n, at % whole);
		resp_reset(&resp);
		ck_assert_int_eq(resp_feed(&resp, resp_unread(&first).p, resp_unread(&first).n), 0);
		resp_release(&first);
		ck_assert_int_eq(take(twice + at, whole - at % whole), 1);
		check_everything();
	}
}

/* hiredis drops what it has parsed, if that is much. */
TEST(another_reader_goes_on_in_a_large_reply)
{
	static char large[64 * 1024];
	size_t n = (size_t)snprintf(large, sizeof(large), "*2000\r\n");
	struct resp first;

	for (unsigned i = 0; i < 2000; i++)
		n += (size_t)snprintf(large + n, sizeof(large) - n, "$5\r\n%05u\r\n", i);
	resp_init(&first);
	for (size_t at = 0; at < n - 100; at += 100)
		read_all(&first, large + at, 100);
	n -= resp_unread(&first).n;
	ck_assert_int_eq(take(resp_unread(&first).p, resp_unread(&first).n), 0);
	ck_assert_int_eq(take(large + resp_unread(&first).n, n), 1);
	resp_release(&first);
	for (unsigned i = 0; i < 2000; i++) {
		char expected[8];

		(void)snprintf(expected, sizeof(expected), "%05u", i);
		ck_assert(span_equal(resp_text(&resp, &resp.value[1 + i]), span_of(expected)));
	}
}

TEST(a_reply_split_at_every_offset_reads_the_same)
{
	size_t at, n = sizeof(everything) - 1;

	for (at = 1; at < n; at++) {
		ck_assert_int_eq(take(everything, at), 0);
		ck_assert_int_eq(take(everything + at, n - at), 1);
		check_everything();
	}
}

TEST(a_reply_that_comes_byte_by_byte_reads_the_same)
{
	size_t at, n = sizeof(everything) - 1;

	for (at = 0; at < n - 1; at++)
		ck_assert_int_eq(take(everything + at, 1), 0);
	ck_assert_int_eq(take(everything + at, 1), 1);
	check_everything();
}

TEST(replies_that_come_together_are_read_one_after_the_other)
{
	ck_assert_int_eq(take_text(":1\r\n+two\r\n:3\r\n:"), 1);
	ck_assert_int_eq(resp.value[0].integer, 1);
	ck_assert_int_eq(resp_next(&resp), 1);
	ck_assert(span_equal(resp_text(&resp, &resp.value[0]), SPAN("two")));
	ck_assert_int_eq(resp_next(&resp), 1);
	ck_assert_int_eq(resp.value[0].integer, 3);
	ck_assert_int_eq(resp_next(&resp), 0);
	ck_assert_int_eq(take_text("4\r\n"), 1);
	ck_assert_int_eq(resp.value[0].integer, 4);
}

static const char *const garbage[] = {
	"HTTP/1.1 400 Bad Request\r\n",
	"\r\n",
	"SSH-2.0-OpenSSH_9.2\r\n",
	"*2147483647\r\n",
	"*1000000\r\n",
	"*2049\r\n",
	"*9223372036854775808\r\n",
	"*-2\r\n",
	"$-2\r\n",
	"$99999999999999999999\r\n",
	"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	"%1\r\n+a\r\n+b\r\n", /* RESP3 */
	"#t\r\n",
	",1.5\r\n",
	"_\r\n",
};

LOOP_TEST(bytes_that_are_no_RESP2_are_garbage_and_stay_so, sizeof(garbage) / sizeof(*garbage))
{
	ck_assert_int_eq(take_text(garbage[_i]), -EPROTO);
	ck_assert_int_eq(take_text(":1\r\n"), -EPROTO);
	resp_reset(&resp);
	ck_assert_int_eq(take_text(":1\r\n"), 1);
}

TEST(a_text_that_never_ends_is_garbage_before_it_is_large)
{
	char chunk[4096];
	size_t fed = 0;
	int rc;

	memset(chunk, 'x', sizeof(chunk));
	ck_assert_int_eq(take_text("$500000000\r\n"), 0);
	do {
		rc = take(chunk, sizeof(chunk));
		fed += sizeof(chunk);
	} while (rc == 0);
	ck_assert_int_eq(rc, -EPROTO);
	ck_assert_uint_le(fed, RESP_BYTES_MAX + 2 * sizeof(chunk));
}

TEST(many_small_texts_are_bounded_too)
{
	char chunk[4200];
	int rc = take_text("*2000\r\n"), i;

	(void)snprintf(chunk, sizeof(chunk), "$4096\r\n%4096d\r\n", 1);
	for (i = 0; rc == 0 && i < 2000; i++)
		rc = take_text(chunk);
	ck_assert_int_eq(rc, -EPROTO);
	ck_assert_int_le(i, RESP_BYTES_MAX / 4096 + 1);
}

TEST(nested_arrays_cannot_exceed_the_bound_together)
{
	int rc = take_text("*2000\r\n"), i;

	for (i = 0; rc == 0 && i < 3; i++) {
		int k;

		rc = take_text("*1000\r\n");
		for (k = 0; rc == 0 && k < 1000; k++)
			rc = take_text(":1\r\n");
	}
	ck_assert_int_eq(rc, -EPROTO);
	ck_assert_uint_le(resp.cap, 2 * RESP_VALUES_MAX);
}
