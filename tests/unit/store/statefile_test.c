/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/state.c: a written record is read back, and nothing else is. */
#include "daemon/store/state.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

static const struct statefile sample = {
	.clean = true,
	.remote = true,
	.boot_id = "0123-4567",
	.epoch_us = 1,
	.clock_us = INT64_C(1700000000123456),
	.fence = INT64_C(1700000060123457),
	.written = {77 * SEC},
};

static void sample_write(struct buf *b)
{
	*b = (struct buf){0};
	statefile_begin(b, &sample);
	statefile_add(b, &(struct statefile_name){SPAN("a"), SPAN("d:7:0f"), {1}});
	statefile_add(b, &(struct statefile_name){SPAN("\0\xff \n"), SPAN(""), {-2}});
	statefile_end(b);
}

/* From memory of exactly that size, so that a look beyond it is seen by a sanitizer. */
static int bytes_read(const char *p, size_t n, struct statefile *ret_record)
{
	char *exact = malloc(n + 1);
	const char *why = NULL;
	int r;

	memcpy(exact + 1, p, n); /* nor is it aligned */
	r = statefile_read((struct span){exact + 1, n}, ret_record, &why);
	ck_assert_int_eq(r, why ? -EBADMSG : 0);
	free(exact);
	return r;
}

TEST(a_written_record_is_read_back)
{
	struct statefile_name n;
	struct statefile r;
	const char *why;
	struct buf b;

	sample_write(&b);
	ck_assert_int_eq(statefile_read((struct span){buf_begin(&b), buf_length(&b)}, &r, &why), 0);
	ck_assert(r.clean && r.remote && r.epoch_us == 1 && r.clock_us == sample.clock_us && r.fence == sample.fence);
	ck_assert_str_eq(r.boot_id, "0123-4567");
	ck_assert(r.written.us == 77 * SEC && r.count == 2);
	ck_assert(statefile_next(&r.names, &n) && span_equal(n.name, SPAN("a")) && span_equal(n.value, SPAN("d:7:0f")) && n.until.us == 1);
	ck_assert(statefile_next(&r.names, &n) && span_equal(n.name, SPAN("\0\xff \n")) && n.value.n == 0 && n.until.us == -2);
	ck_assert(!statefile_next(&r.names, &n));
	buf_release(&b);
}

TEST(a_mark_is_a_record_without_names)
{
	struct statefile mark = {.boot_id = ""}, r;
	struct buf b = {0};

	statefile_begin(&b, &mark);
	statefile_end(&b);
	ck_assert_int_eq(bytes_read(buf_begin(&b), buf_length(&b), &r), 0);
	ck_assert(!r.clean && !r.remote && r.count == 0 && r.names.n == 0);
	buf_release(&b);
}

TEST(no_flipped_bit_is_believed)
{
	struct statefile r;
	struct buf b;
	char *p;
	size_t i;

	sample_write(&b);
	p = buf_begin(&b);
	for (i = 0; i < 8 * buf_length(&b); i++) {
		p[i / 8] = (char)(p[i / 8] ^ 1 << i % 8);
		ck_assert_msg(bytes_read(p, buf_length(&b), &r) < 0, "bit %zu of byte %zu", i % 8, i / 8);
		p[i / 8] = (char)(p[i / 8] ^ 1 << i % 8);
	}
	ck_assert_int_eq(bytes_read(p, buf_length(&b), &r), 0);
	buf_release(&b);
}

TEST(no_part_of_a_record_and_nothing_longer_is_believed)
{
	struct statefile r;
	struct buf b;
	size_t n, i;

	sample_write(&b);
	n = buf_length(&b);
	memset(buf_reserve(&b, 300), 0, 300);
	buf_commit(&b, 300);
	for (i = 0; i < n + 300; i++)
		ck_assert_msg(bytes_read(buf_begin(&b), i, &r) == (i == n ? 0 : -EBADMSG), "%zu bytes of %zu", i, n);
	buf_release(&b);
}

/* The checksum fits, but the numbers inside must agree with each other as well. */
static int forged_read(size_t at, char byte)
{
	struct statefile r;
	struct buf b;
	int result;

	sample_write(&b);
	b.end -= 8;
	buf_begin(&b)[at] = byte;
	statefile_end(&b);
	result = bytes_read(buf_begin(&b), buf_length(&b), &r);
	buf_release(&b);
	return result;
}

TEST(numbers_that_contradict_each_other_are_not_believed)
{
	ck_assert_int_eq(forged_read(12, 'C'), 0);
	ck_assert_int_eq(forged_read(8, 2), -EBADMSG);     /* another version */
	ck_assert_int_eq(forged_read(56, 1), -EBADMSG);    /* fewer names */
	ck_assert_int_eq(forged_read(56, 3), -EBADMSG);    /* more */
	ck_assert_int_eq(forged_read(64, 99), -EBADMSG);   /* other bytes of names */
	ck_assert_int_eq(forged_read(144, 9), -EBADMSG);   /* a name that runs over the next */
	ck_assert_int_eq(forged_read(147, -1), -EBADMSG);  /* one that runs over the end */
	ck_assert_int_eq(forged_read(148, 7), -EBADMSG);   /* a value that runs over the next name */
	ck_assert_int_eq(forged_read(151, -1), -EBADMSG);  /* one that runs over the end */
	ck_assert_int_eq(forged_read(167, 3), -EBADMSG);   /* the last name, that leaves bytes over */
	ck_assert_int_eq(forged_read(135, 'x'), -EBADMSG); /* a boot id without end */
}
