/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/journal.c: a written record is read back, whichever version has written it. */
#include "daemon/core/event/journal.h"

#include "tests/unit/core/event/journal_bytes.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	 .notified = 1,
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
	{.kind = JOURNAL_JOB,
	 .session = 7,
	 .queue = SPAN("q"),
	 .job = SPAN("j"),
	 .lock = SPAN("l"),
	 .value = SPAN("v2"),
	 .before = SPAN("v1"),
	 .attempt = UINT32_MAX,
	 .ttl_us = 256},
	{.kind = JOURNAL_JOB_OVER, .session = 255, .queue = SPAN("q"), .job = SPAN("j")},
	{.kind = JOURNAL_STAYS, .session = 7, .name = SPAN("a"), .ttl_us = 65536, .deadline_us = -1},
	{.kind = JOURNAL_KEPT, .session = 7, .name = SPAN("a"), .owner = SPAN("o"), .delay_us = 65535, .deadline_us = 1},
	{.kind = JOURNAL_JOB_ENDING, .session = 7, .queue = SPAN("q"), .job = SPAN("j"), .delay_us = 5000000, .deadline_us = 65536, .end = 1},
	{.kind = JOURNAL_CLIENT,
	 .session = 7,
	 .connection = (INT64_C(3) << 32) + 65,
	 .flags = JOURNAL_IS_UNIX | JOURNAL_PROVEN,
	 .uid = -1,
	 .pid = 4711,
	 .address = SPAN("10.0.0.5:51234"),
	 .user = SPAN("ops"),
	 .groups = SPAN("\1\0\0\0"),
	 .since_us = 5,
	 .line = SPAN("t1")},
	{.kind = JOURNAL_LINE, .connection = 1, .flags = JOURNAL_GOES_ON, .since_us = 9, .line = SPAN("LOCK a")},
	{.kind = JOURNAL_UNANSWERED, .connection = 1, .line = SPAN("t2")},
	{.kind = JOURNAL_WATCH, .connection = 1, .line = SPAN("orders/"), .sequence = 3},
	{.kind = JOURNAL_GHOST, .name = SPAN("a"), .until_us = 77},
	{.kind = JOURNAL_TICKET, .name = SPAN("a"), .since_us = 1, .placed = 5, .stamp_us = 2, .sequence = 3, .reader = 1, .writer_us = 4, .priority = 9},
	{.kind = JOURNAL_RELEASE,
	 .name = SPAN("a"),
	 .value = SPAN("v"),
	 .delay_us = 1,
	 .since_us = 2,
	 .until_us = 3,
	 .flags = JOURNAL_LEFT,
	 .placed = 7,
	 .px_us = 4},
	{.kind = JOURNAL_LEAVES, .connection = 1, .flags = JOURNAL_EOF},
	{.kind = JOURNAL_STORES, .marker = SPAN("1.ab"), .seen = 5, .delay_us = 6, .until_us = -1, .flags = JOURNAL_TRUSTING},
	{.kind = JOURNAL_STORE,
	 .name = SPAN("redis-1:6379"),
	 .value = SPAN("run"),
	 .marker = SPAN("j|1.ab"),
	 .seen = 9,
	 .joined = 8,
	 .issued_us = -7,
	 .evicted = 6,
	 .flags = JOURNAL_WAS_OURS | JOURNAL_CLOCK,
	 .low_us = -2,
	 .high_us = 3,
	 .since_us = 1},
	{.kind = JOURNAL_MARKER, .name = SPAN("s"), .marker = SPAN("q|1.ab"), .flags = JOURNAL_EVIDENCE, .since_us = 1, .low_us = 2, .why = 3},
	{.kind = JOURNAL_QUARANTINE, .name = SPAN("s"), .marker = SPAN("q"), .since_us = 1, .until_us = 2, .line = SPAN("why")},
	{.kind = JOURNAL_PROCESS, .secret = SPAN(SECRET), .since_us = 1, .until_us = 2, .line = SPAN("/run/redlockd"), .sequence = 3, .flags = JOURNAL_TORN},
	{.kind = JOURNAL_FILE, .name = SPAN("lock"), .place = 1, .line = SPAN("x")},
	{.kind = JOURNAL_LISTENER, .place = 2, .line = SPAN("/run/s"), .uid = 3, .pid = 4, .flags = JOURNAL_TLS},
	{.kind = JOURNAL_SOCKET, .sequence = 5, .place = 6, .line = SPAN("uid 33"), .flags = JOURNAL_MUTE},
	{.kind = JOURNAL_BYTES, .flags = JOURNAL_OUTPUT, .line = SPAN("OK\n")},
	{.kind = JOURNAL_HELD, .session = 7, .name = SPAN("a"), .value = SPAN("v"), .count = 1, .fence = 1, .ttl_us = 1, .votes = SPAN("12345678")},
	{.kind = JOURNAL_TICKET, .name = SPAN("a"), .placed = 5, .stamp_us = 2, .sequence = 3, .flags = JOURNAL_LEFT},
	{.kind = JOURNAL_QUARANTINE, .name = SPAN("s"), .marker = SPAN("q"), .since_us = 1, .until_us = 2, .line = SPAN("why"), .stamp_us = 3, .sequence = 4,
	 .note = SPAN("evicts")},
	{.kind = JOURNAL_STORE, .name = SPAN("s"), .value = SPAN("v"), .address = SPAN("10.0.0.1:6379")},
	{.kind = JOURNAL_HELD, .session = 7, .name = SPAN("a"), .value = SPAN("v"), .count = 1, .fence = 1, .ttl_us = 1,
	 .trace = SPAN("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
	{.kind = JOURNAL_JOB_LEFT, .queue = SPAN("q"), .value = SPAN("v"), .delay_us = 5000000, .deadline_us = 65536, .end = 1},
};
#define SAMPLES      ((int)(sizeof(sample) / sizeof(sample[0])))
#define OF_VERSION_1 ((int)(sizeof(version_1) / sizeof(version_1[0]))) /* later kinds have no bytes in it */

static struct span sample_bytes(int i, char *out)
{
	return (struct span){out, journal_encode(&sample[i], out)};
}

static void check_same(const struct journal_record *a, const struct journal_record *b)
{
	ck_assert_int_eq(a->kind, b->kind);
#define SAME_NUMBER(number, id, member, ...) ck_assert_int_eq(a->member, b->member);
#define SAME_TEXT(number, id, member, ...)   ck_assert_msg(span_equal(a->member, b->member), #id);
	JOURNAL_PARTS(SAME_NUMBER, SAME_TEXT)
}

LOOP_TEST(a_written_record_is_read_back, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX];
	struct journal_record r;

	ck_assert_int_eq(journal_decode(sample_bytes(_i, out), &r), 0);
	check_same(&sample[_i], &r);
}

TEST(every_kind_has_a_sample)
{
	bool has[JOURNAL_KIND_LAST + 1] = {false};

	for (int i = 0; i < SAMPLES; i++)
		has[sample[i].kind] = true;
	for (unsigned kind = JOURNAL_SESSION; kind <= JOURNAL_KIND_LAST; kind++)
		ck_assert_msg(has[kind] == (kind <= JOURNAL_JOB_LEFT || kind >= JOURNAL_OUTER), "kind %u", kind);
}

TEST(the_longest_record_fits)
{
	static char text[640];
	char out[JOURNAL_RECORD_MAX];
	struct journal_record r = {.kind = JOURNAL_ADOPTING, .granted_at_us = INT64_MIN, .deadline_us = INT64_MIN};

	memset(text, 'x', sizeof(text));
	r.session = INT64_MAX;
	r.name = (struct span){text, JOURNAL_NAME_MAX};
	r.owner = (struct span){text, 640};
	r.note = (struct span){text, 256};
	r.value = (struct span){text, 127};
	r.prior = (struct span){text, 383};
	r.prior_until_us = INT64_MIN;
	r.count = UINT32_MAX;
	r.fence = COUNT_MAX;
	r.ttl_us = r.delay_us = DURATION_MAX;
	r.renew = 15;
	r.notified = 1;
	ck_assert_uint_le(journal_encode(&r, out), JOURNAL_RECORD_MAX);
	r.kind = JOURNAL_HELD; /* those of the other kind are not written any more */
	r.trace = (struct span){text, TRACE_BYTES};
	r.votes = (struct span){text, 72};
	ck_assert_uint_le(journal_encode(&r, out), JOURNAL_RECORD_MAX);
	ck_assert_int_eq(journal_decode((struct span){out, journal_encode(&r, out)}, &r), 0);
}

static size_t bytes_of(const char *hex, char *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned byte;

		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
		out[i] = (char)byte;
	}
	return n;
}

LOOP_TEST(records_of_every_version_are_read, SAMPLES)
{
	const char *const version[] = {version_2[_i], _i < OF_VERSION_1 ? version_1[_i] : NULL};

	for (unsigned i = 0; i < 2 && version[i]; i++) {
		char out[JOURNAL_RECORD_MAX];
		struct journal_record r;

		ck_assert_int_eq(journal_decode((struct span){out, bytes_of(version[i], out)}, &r), 0);
		check_same(&sample[_i], &r);
	}
}

/* A field or a kind that is added later changes nothing of what was written before. */
LOOP_TEST(records_are_written_as_they_were_released, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX], released[JOURNAL_RECORD_MAX];
	struct span now = sample_bytes(_i, out);
	size_t n = bytes_of(version_2[_i], released);

	ck_assert(span_equal(now, (struct span){released, n}));
}

/* In memory of exactly that size, so that a read beyond it is seen. */
static int decode_exactly(const char *bytes, size_t n, struct journal_record *r)
{
	char *exact = malloc(n + !n);
	int outcome;

	memcpy(exact, bytes, n);
	outcome = journal_decode((struct span){exact, n}, r);
	free(exact);
	return outcome;
}

LOOP_TEST(a_record_of_version_1_that_is_cut_or_longer_is_refused, OF_VERSION_1)
{
	char out[JOURNAL_RECORD_MAX + 1] = {0};
	size_t whole = bytes_of(version_1[_i], out);
	struct journal_record r = {.session = 99};

	for (size_t n = 0; n <= whole + 1; n++)
		if (n != whole)
			ck_assert_int_eq(decode_exactly(out, n, &r), -EBADMSG);
	ck_assert_int_eq(r.session, 99);
}

LOOP_TEST(a_record_that_ends_within_a_field_is_refused, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX];
	struct span whole = sample_bytes(_i, out);
	struct journal_record r;
	size_t next = 2;

	for (size_t n = 0; n < whole.n; n++) {
		if (n == next) {
			next += 3 + (unsigned char)out[next + 1] + 256u * (unsigned char)out[next + 2];
			continue;
		}
		ck_assert_int_eq(decode_exactly(out, n, &r), -EBADMSG);
	}
}

static void check_each_changed_byte(char *bytes, size_t n)
{
	char again[JOURNAL_RECORD_MAX];

	for (size_t at = 0; at < n; at++) {
		char was = bytes[at];

		for (unsigned value = 0; value < 256; value++) {
			struct journal_record r, same;

			bytes[at] = (char)value;
			if (journal_decode((struct span){bytes, n}, &r) != 0)
				continue;
			/* The writer asserts the bounds. */
			ck_assert_int_eq(journal_decode((struct span){again, journal_encode(&r, again)}, &same), 0);
			check_same(&r, &same);
		}
		bytes[at] = was;
	}
}

LOOP_TEST(any_changed_byte_is_refused_or_read_within_bounds, SAMPLES)
{
	const char *const version[] = {version_2[_i], _i < OF_VERSION_1 ? version_1[_i] : NULL};

	for (unsigned i = 0; i < 2 && version[i]; i++) {
		char bytes[JOURNAL_RECORD_MAX];

		check_each_changed_byte(bytes, bytes_of(version[i], bytes));
	}
}

TEST(another_version_is_refused)
{
	char out[JOURNAL_RECORD_MAX];
	struct span whole = sample_bytes(0, out);
	struct journal_record r;

	for (unsigned version = 0; version < 256; version++) {
		out[0] = (char)version;
		if (version != JOURNAL_VERSION)
			ck_assert_int_eq(journal_decode(whole, &r), -EBADMSG);
	}
}

TEST(version_1_has_no_further_kinds)
{
	char out[JOURNAL_RECORD_MAX];
	size_t n = bytes_of(version_1[0], out);
	struct journal_record r;

	out[1] = JOURNAL_DAEMON + 1;
	ck_assert_int_eq(journal_decode((struct span){out, n}, &r), -EBADMSG);
}

TEST(a_kind_of_a_later_version_is_passed_over)
{
	char out[JOURNAL_RECORD_MAX];
	struct span whole = sample_bytes(0, out);
	struct journal_record r = {.session = 99};

	for (unsigned kind = JOURNAL_KIND_LAST + 1; kind < 256; kind++) {
		out[1] = (char)kind;
		ck_assert_int_eq(journal_decode(whole, &r), JOURNAL_UNKNOWN);
	}
	ck_assert_int_eq(r.session, 99);
	out[1] = 0;
	ck_assert_int_eq(journal_decode(whole, &r), -EBADMSG);
}

static const char a_field_of_a_later_version[] = {(char)200, 5, 0, 'l', 'a', 't', 'e', 'r'};

LOOP_TEST(a_field_of_a_later_version_is_passed_over, SAMPLES)
{
	char out[JOURNAL_RECORD_MAX];
	size_t n = sample_bytes(_i, out).n;
	struct journal_record r;

	memmove(out + 2 + sizeof(a_field_of_a_later_version), out + 2, n - 2);
	memcpy(out + 2, a_field_of_a_later_version, sizeof(a_field_of_a_later_version));
	ck_assert_int_eq(journal_decode((struct span){out, n + sizeof(a_field_of_a_later_version)}, &r), 0);
	check_same(&sample[_i], &r);
}

TEST(a_field_that_is_missing_is_0_or_empty)
{
	const char bytes[] = {JOURNAL_VERSION, JOURNAL_OVER, 1, 1, 0, 7};
	struct journal_record r;

	ck_assert_int_eq(journal_decode((struct span){bytes, sizeof(bytes)}, &r), 0);
	check_same(&(struct journal_record){.kind = JOURNAL_OVER, .session = 7}, &r);
	ck_assert_int_eq(journal_decode((struct span){bytes, 2}, &r), -EBADMSG); /* no session has the number 0 */
}

/* The number of the session stands first. */
static int decode_session(uint64_t number)
{
	char bytes[] = {JOURNAL_VERSION, JOURNAL_OVER, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	struct journal_record r;

	for (unsigned b = 0; b < 8; b++)
		bytes[5 + b] = (char)(number >> 8 * b);
	return journal_decode((struct span){bytes, sizeof(bytes)}, &r);
}

TEST(a_number_of_more_than_8_bytes_is_refused)
{
	const char bytes[] = {JOURNAL_VERSION, JOURNAL_OVER, 1, 9, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0};
	struct journal_record r;

	ck_assert_int_eq(journal_decode((struct span){bytes, sizeof(bytes)}, &r), -EBADMSG);
}

TEST(numbers_out_of_their_bounds_are_refused)
{
	ck_assert_int_eq(decode_session(1), 0);
	ck_assert_int_eq(decode_session(INT64_MAX), 0);
	ck_assert_int_eq(decode_session(0), -EBADMSG);
	ck_assert_int_eq(decode_session(UINT64_MAX), -EBADMSG);
}
