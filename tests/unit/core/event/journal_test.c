/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/journal.c: a written record is read back, and nothing else is. */
#include "daemon/core/event/journal.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#define SECRET "0123456789abcdef0123456789abcdef"

static const struct journal_record sample[] = {
	{.kind = JOURNAL_SESSION,
	 .session = 7,
	 .secret = SPAN(SECRET),
	 .label = SPAN("worker 7"),
	 .grace_us = 5000000,
	 .heartbeat_us = 250000},
	{.kind = JOURNAL_SESSION, .session = INT64_MAX, .secret = SPAN(SECRET), .grace_us = 1},
	{.kind = JOURNAL_OVER, .session = 1},
	{.kind = JOURNAL_HELD,
	 .session = 7,
	 .name = SPAN("orders/42\0\n"),
	 .owner = SPAN("thread 3"),
	 .note = SPAN("ask ops"),
	 .value = SPAN("00ff.host:12:0123456789abcdef0123456789abcdef"),
	 .count = 3,
	 .fence = COUNT_MAX,
	 .ttl_us = 10000000,
	 .delay_us = 500,
	 .renew = 1,
	 .told = 1,
	 .granted_at_us = -5,
	 .deadline_us = INT64_MIN},
	{.kind = JOURNAL_ADOPTING,
	 .session = 7,
	 .name = SPAN("a"),
	 .value = SPAN("v3"),
	 .prior = SPAN("v2 v1"),
	 .prior_until_us = INT64_MAX,
	 .count = 1,
	 .fence = 1,
	 .ttl_us = 1},
	{.kind = JOURNAL_HELD, .session = 7, .name = SPAN("a"), .value = SPAN("v"), .count = 1, .fence = 1, .ttl_us = 1},
	{.kind = JOURNAL_FREED, .session = 7, .name = SPAN("a"), .owner = SPAN("o")},
	{.kind = JOURNAL_JOB_LOST, .session = 7, .queue = SPAN("q"), .job = SPAN("j"), .lock = SPAN("l"), .reason = SPAN("quorum")},
	{.kind = JOURNAL_JOB_KNOWN, .session = 7, .queue = SPAN("q"), .job = SPAN("j")},
	{.kind = JOURNAL_DAEMON, .daemon = SPAN("0123456789abcdef.host"), .run = 3},
	{.kind = JOURNAL_LOST, .session = 7, .name = SPAN("a"), .fence = 9, .reason = SPAN("quorum")},
};
#define SAMPLES ((int)(sizeof(sample) / sizeof(sample[0])))

static struct span sample_bytes(int i, char *out)
{
	return (struct span){out, journal_encode(&sample[i], out)};
}

static void check_same(const struct journal_record *a, const struct journal_record *b)
{
	ck_assert_int_eq(a->kind, b->kind);
#define SAME_NUMBER(id, member, ...) ck_assert_int_eq(a->member, b->member);
#define SAME_TEXT(id, member, ...)   ck_assert_msg(span_equal(a->member, b->member), #id);
	JOURNAL_PARTS(SAME_NUMBER, SAME_TEXT)
}

LOOP_TEST(a_written_record_is_read_back, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX];
	struct journal_record r;

	ck_assert_int_eq(journal_decode(sample_bytes(_i, out), &r), 0);
	check_same(&sample[_i], &r);
}

TEST(the_longest_record_fits)
{
	static char text[512];
	char out[JOURNAL_RECORD_MAX];
	struct journal_record r = sample[3];

	memset(text, 'x', sizeof(text));
	r.name = (struct span){text, 512};
	r.owner = r.note = (struct span){text, 256};
	r.value = (struct span){text, 127};
	r.kind = JOURNAL_ADOPTING;
	r.prior = (struct span){text, 383};
	ck_assert_uint_le(journal_encode(&r, out), JOURNAL_RECORD_MAX);
	ck_assert_int_eq(journal_decode((struct span){out, journal_encode(&r, out)}, &r), 0);
}

LOOP_TEST(a_record_that_is_cut_or_longer_is_refused, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX + 1] = {0};
	struct span whole = sample_bytes(_i, out);
	struct journal_record r = {.session = 99};

	for (size_t n = 0; n <= whole.n + 1; n++) {
		/* In memory of exactly that size, so that a read beyond it is seen. */
		char *exact = malloc(n + !n);

		memcpy(exact, out, n);
		if (n != whole.n)
			ck_assert_int_eq(journal_decode((struct span){exact, n}, &r), -EBADMSG);
		free(exact);
	}
	ck_assert_int_eq(r.session, 99);
}

LOOP_TEST(any_changed_byte_is_refused_or_read_within_bounds, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX], again[JOURNAL_RECORD_MAX];
	struct span whole = sample_bytes(_i, out);

	for (size_t at = 0; at < whole.n; at++) {
		char was = out[at];

		for (unsigned value = 0; value < 256; value++) {
			struct journal_record r;

			out[at] = (char)value;
			/* The writer asserts the bounds, and a record has one form only. */
			if (journal_decode(whole, &r) == 0) {
				ck_assert_uint_eq(journal_encode(&r, again), whole.n);
				ck_assert(memcmp(again, out, whole.n) == 0);
			}
		}
		out[at] = was;
	}
}

TEST(another_version_or_kind_is_refused)
{
	char out[JOURNAL_RECORD_MAX];
	struct span whole = sample_bytes(0, out);
	struct journal_record r;

	out[0] = JOURNAL_VERSION + 1;
	ck_assert_int_eq(journal_decode(whole, &r), -EBADMSG);
	out[0] = JOURNAL_VERSION;
	for (unsigned kind = 0; kind < 256; kind++) {
			continue; /* these have numbers and texts in the same places */
		out[1] = (char)kind;
		ck_assert_int_eq(journal_decode(whole, &r), -EBADMSG);
	}
}

/* The number that stands `at` bytes into the record. */
static int decode_with(int i, size_t at, uint64_t number)
{
	char out[JOURNAL_RECORD_MAX];
	struct span whole = sample_bytes(i, out);
	struct journal_record r;

	for (unsigned b = 0; b < 8; b++)
		out[at + b] = (char)(number >> 8 * b);
	return journal_decode(whole, &r);
}

TEST(numbers_out_of_their_bounds_are_refused)
{
	const size_t grace = 2 + 8 + 2 + 32 + 2 + strlen("worker 7");

	ck_assert_int_eq(decode_with(0, 2, 1), 0);
	ck_assert_int_eq(decode_with(0, 2, 0), -EBADMSG);
	ck_assert_int_eq(decode_with(0, 2, UINT64_MAX), -EBADMSG);
	ck_assert_int_eq(decode_with(0, grace, 1), 0);
	ck_assert_int_eq(decode_with(0, grace, 0), -EBADMSG);
	ck_assert_int_eq(decode_with(0, grace, DURATION_MAX), 0);
	ck_assert_int_eq(decode_with(0, grace, DURATION_MAX + 1), -EBADMSG);
}
