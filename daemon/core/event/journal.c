/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a journal record from and to values. It must never read beyond the end, nor hand on a part that is out of its bounds. */
#include "daemon/core/event/journal.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>

enum part {
#define PART(id, ...) PART_##id,
	JOURNAL_PARTS(PART, PART)
#undef PART
	PART_N
};

static const struct part_row {
	bool is_text;
	size_t offset;
	int64_t least, most;
} part_table[PART_N] = {
#define NUMBER_ROW(id, member, least, most, what) [PART_##id] = {false, offsetof(struct journal_record, member), least, most},
#define TEXT_ROW(id, member, least, most, what) [PART_##id] = {true, offsetof(struct journal_record, member), least, most},
	JOURNAL_PARTS(NUMBER_ROW, TEXT_ROW)
#undef NUMBER_ROW
#undef TEXT_ROW
};

#define P(id) (1u << PART_##id)
#define HELD_PARTS \
	(P(SESSION) | P(NAME) | P(OWNER) | P(NOTE) | P(VALUE) | P(COUNT) | P(FENCE) | P(TTL) | P(DELAY) | P(RENEW) | P(TOLD) | P(GRANTED) | P(DEADLINE))
static const uint32_t kind_parts[] = {
	[JOURNAL_SESSION] = P(SESSION) | P(SECRET) | P(LABEL) | P(GRACE) | P(HEARTBEAT),
	[JOURNAL_OVER] = P(SESSION),
	[JOURNAL_HELD] = HELD_PARTS,
	[JOURNAL_ADOPTING] = HELD_PARTS | P(PRIOR) | P(PRIOR_UNTIL),
	[JOURNAL_FREED] = P(SESSION) | P(NAME) | P(OWNER),
	[JOURNAL_JOB] = P(SESSION) | P(QUEUE) | P(JOB) | P(LOCK) | P(VALUE) | P(BEFORE) | P(ATTEMPT) | P(TTL),
	[JOURNAL_JOB_OVER] = P(SESSION) | P(QUEUE) | P(JOB),
	[JOURNAL_JOB_KNOWN] = P(SESSION) | P(QUEUE) | P(JOB),
	[JOURNAL_STAYS] = P(SESSION) | P(NAME) | P(OWNER) | P(TTL) | P(DEADLINE),
	[JOURNAL_KEPT] = P(SESSION) | P(NAME) | P(OWNER) | P(DELAY) | P(DEADLINE),
	[JOURNAL_JOB_LOST] = P(SESSION) | P(QUEUE) | P(JOB) | P(LOCK) | P(REASON),
	[JOURNAL_DAEMON] = P(DAEMON) | P(RUN),
	[JOURNAL_LOST] = P(SESSION) | P(NAME) | P(OWNER) | P(FENCE) | P(REASON),
};

static char *put_number(char *at, uint64_t value, size_t n)
{
	value = htole64(value);
	memcpy(at, &value, n);
	return at + n;
}

static uint64_t get_number(const char *at, size_t n)
{
	uint64_t value = 0;

	memcpy(&value, at, n);
	return le64toh(value);
}

static bool part_is_sound(const struct part_row *row, int64_t size)
{
	return size >= row->least && size <= row->most;
}

static char *part_encode(const struct part_row *row, const void *member, char *at)
{
	const struct span *text = member;

	if (!row->is_text) {
		assert(part_is_sound(row, *(const int64_t *)member));
		return put_number(at, (uint64_t) * (const int64_t *)member, 8);
	}
	assert(part_is_sound(row, (int64_t)text->n));
	at = put_number(at, text->n, 2);
	if (text->n > 0)
		memcpy(at, text->p, text->n);
	return at + text->n;
}

size_t journal_encode(const struct journal_record *record, char *out)
{
	char *at = out;

	*at++ = JOURNAL_VERSION;
	*at++ = (char)record->kind;
	for (unsigned i = 0; i < PART_N; i++)
		if (kind_parts[record->kind] >> i & 1)
			at = part_encode(&part_table[i], (const char *)record + part_table[i].offset, at);
	return (size_t)(at - out);
}

static bool part_decode(const struct part_row *row, struct span *rest, void *member)
{
	size_t n = row->is_text ? 2 : 8;
	struct span text;

	if (rest->n < n)
		return false;
	text = (struct span){rest->p + n, (size_t)get_number(rest->p, n)};
	*rest = (struct span){rest->p + n, rest->n - n};
	if (!part_is_sound(row, (int64_t)text.n))
		return false;
	if (!row->is_text) {
		*(int64_t *)member = (int64_t)text.n;
		return true;
	}
	if (rest->n < text.n)
		return false;
	*(struct span *)member = text;
	*rest = (struct span){rest->p + text.n, rest->n - text.n};
	return true;
}

int journal_decode(struct span bytes, struct journal_record *ret_record)
{
	struct journal_record r = {0};
	struct span rest;
	unsigned kind;

	if (bytes.n < 2 || bytes.p[0] != JOURNAL_VERSION)
		return -EBADMSG;
	kind = (unsigned char)bytes.p[1];
	if (kind < JOURNAL_SESSION || kind > JOURNAL_KIND_LAST)
		return -EBADMSG;
	r.kind = (enum journal_kind)kind;
	rest = (struct span){bytes.p + 2, bytes.n - 2};
	for (unsigned i = 0; i < PART_N; i++)
		if ((kind_parts[kind] >> i & 1) && !part_decode(&part_table[i], &rest, (char *)&r + part_table[i].offset))
			return -EBADMSG;
	if (rest.n > 0)
		return -EBADMSG;
	*ret_record = r;
	return 0;
}
