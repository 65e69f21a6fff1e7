/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/buf.c. */
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"

#include <check.h>
#include <string.h>

static void assert_content(const struct buf *b, const char *expected)
{
	ck_assert_uint_eq(buf_length(b), strlen(expected));
	ck_assert_mem_eq(buf_begin(b), expected, strlen(expected));
}

TEST(appended_bytes_come_out_in_order)
{
	struct buf b;

	buf_init(&b);
	buf_append(&b, "LOCK a\n", 7);
	buf_append(&b, "LOCK b\n", 7);
	assert_content(&b, "LOCK a\nLOCK b\n");
	buf_consume(&b, 7);
	assert_content(&b, "LOCK b\n");
	buf_consume(&b, 7);
	ck_assert_uint_eq(buf_length(&b), 0);
	buf_release(&b);
}

TEST(an_empty_buffer_may_be_read_consumed_cleared_and_released)
{
	struct buf b;

	buf_init(&b);
	ck_assert_uint_eq(buf_length(&b), 0);
	ck_assert_ptr_null(buf_begin(&b));
	buf_append(&b, NULL, 0);
	buf_consume(&b, 0);
	buf_clear(&b);
	buf_trim(&b, 0);
	buf_release(&b);
}

TEST(random_traffic_keeps_every_byte)
{
	static const uint64_t key[2] = {7, 7};
	unsigned char in = 0, out = 0;
	size_t wrong = 0;
	struct buf b;
	struct rng r;
	int turn;

	rng_init(&r, key);
	buf_init(&b);
	for (turn = 0; turn < 20000; turn++) {
		size_t put = rng_below(&r, 97), take, i;
		char *at = buf_reserve(&b, put);

		for (i = 0; i < put; i++)
			at[i] = (char)in++;
		buf_commit(&b, put);
		take = rng_below(&r, buf_length(&b) + 1);
		for (i = 0; i < take; i++)
			wrong += (unsigned char)buf_begin(&b)[i] != out++;
		buf_consume(&b, take);
	}
	ck_assert_uint_eq(wrong, 0);
	buf_release(&b);
}

TEST(a_steady_queue_stays_small)
{
	struct buf b;
	int turn;

	buf_init(&b);
	buf_append(&b, "0123456789", 10);
	for (turn = 0; turn < 100000; turn++) {
		buf_append(&b, "0123456789", 10);
		buf_consume(&b, 10);
	}
	ck_assert_uint_le(b.cap, 1024);
	buf_release(&b);
}

TEST(printf_appends_and_grows)
{
	char expected[1001] = {0};
	struct buf b;

	memset(expected, 'x', 1000);
	buf_init(&b);
	buf_printf(&b, "%s-%d;", "a", 1);
	assert_content(&b, "a-1;");
	buf_clear(&b);
	buf_printf(&b, "%s", expected);
	assert_content(&b, expected);
	buf_release(&b);
}

TEST(trim_gives_back_only_what_is_empty_and_large)
{
	struct buf b;

	buf_init(&b);
	buf_append(&b, "x", 1);
	buf_trim(&b, 0);
	ck_assert_uint_eq(buf_length(&b), 1);
	buf_consume(&b, 1);
	buf_trim(&b, 1 << 20);
	ck_assert_uint_gt(b.cap, 0);
	buf_trim(&b, 0);
	ck_assert_uint_eq(b.cap, 0);
	buf_append(&b, "y", 1);
	assert_content(&b, "y");
	buf_release(&b);
}

#define ALIKE 256u

/* What grows takes time, and all of them may be filled by one step. */
TEST(buffers_that_fill_at_the_same_rate_do_not_all_grow_at_once)
{
	static char bytes[100];
	struct buf *b[ALIKE];
	unsigned most = 0;

	for (unsigned i = 0; i < ALIKE; i++)
		b[i] = mem_alloc(sizeof(*b[i]));
	for (size_t n = 0; n < 1 << 20; n += sizeof(bytes)) {
		unsigned grown = 0;

		for (unsigned i = 0; i < ALIKE; i++) {
			size_t cap = b[i]->cap;

			buf_append(b[i], bytes, sizeof(bytes));
			grown += cap > 16384 && b[i]->cap > cap;
		}
		most = grown > most ? grown : most;
	}
	ck_assert_uint_gt(most, 0);
	ck_assert_uint_lt(most, ALIKE / 4);
	for (unsigned i = 0; i < ALIKE; i++) {
		buf_release(b[i]);
		mem_free(b[i]);
	}
}

TEST(an_empty_buffer_gives_its_memory_back_piece_by_piece)
{
	struct buf b;

	buf_init(&b);
	(void)buf_reserve(&b, 4000);
	ck_assert_uint_eq(b.cap, 4096);
	buf_shrink(&b, 1000);
	ck_assert_uint_eq(b.cap, 3096);
	memset(buf_reserve(&b, 3096), 'x', 3096);
	ck_assert_uint_eq(b.cap, 3096);
	buf_shrink(&b, 4000);
	ck_assert_uint_eq(b.cap, 0);
	ck_assert_ptr_null(b.data);
}
