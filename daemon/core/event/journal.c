/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts journal records to bytes and back. It must never read beyond the end, nor return a part that is out of its bounds. */
#include "daemon/core/event/journal.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>

enum part {
#define PART(number, id, ...) PART_##id = (number) - 1,
	JOURNAL_PARTS(PART, PART)
#undef PART
	PART_N
};

#define VERSION_1           1
#define VERSION_1_PARTS     27
#define VERSION_1_KIND_LAST JOURNAL_DAEMON

static const struct part_row {
	bool is_text;
	size_t offset;
	int64_t least, most;
} part_table[PART_N] = {
#define NUMBER_ROW(number, id, member, least, most, what) [PART_##id] = {false, offsetof(struct journal_record, member), least, most},
#define TEXT_ROW(number, id, member, least, most, what) [PART_##id] = {true, offsetof(struct journal_record, member), least, most},
	JOURNAL_PARTS(NUMBER_ROW, TEXT_ROW)
#undef NUMBER_ROW
#undef TEXT_ROW
};

#define P(id) (UINT64_C(1) << PART_##id)
#define HELD_PARTS \
	(P(SESSION) | P(NAME) | P(OWNER) | P(NOTE) | P(VALUE) | P(COUNT) | P(FENCE) | P(TTL) | P(DELAY) | P(RENEW) | P(NOTIFIED) | P(GRANTED) | P(DEADLINE) | \
	 P(FLAGS) | P(UNTIL) | P(VOTES) | P(PLACED) | P(TRACE))
static const uint64_t kind_parts[] = {
	[JOURNAL_SESSION] = P(SESSION) | P(SECRET) | P(LABEL) | P(GRACE) | P(HEARTBEAT),
	[JOURNAL_OVER] = P(SESSION),
	[JOURNAL_HELD] = HELD_PARTS,
	[JOURNAL_ADOPTING] = HELD_PARTS | P(PRIOR) | P(PRIOR_UNTIL),
	[JOURNAL_FREED] = P(SESSION) | P(NAME) | P(OWNER),
	[JOURNAL_JOB] = P(SESSION) | P(QUEUE) | P(JOB) | P(LOCK) | P(VALUE) | P(BEFORE) | P(ATTEMPT) | P(TTL) | P(FLAGS),
	[JOURNAL_JOB_OVER] = P(SESSION) | P(QUEUE) | P(JOB),
	[JOURNAL_JOB_KNOWN] = P(SESSION) | P(QUEUE) | P(JOB),
	[JOURNAL_JOB_ENDING] = P(SESSION) | P(QUEUE) | P(JOB) | P(DELAY) | P(DEADLINE) | P(END),
	[JOURNAL_STAYS] = P(SESSION) | P(NAME) | P(OWNER) | P(TTL) | P(DEADLINE),
	[JOURNAL_KEPT] = P(SESSION) | P(NAME) | P(OWNER) | P(DELAY) | P(DEADLINE),
	[JOURNAL_JOB_LOST] = P(SESSION) | P(QUEUE) | P(JOB) | P(LOCK) | P(REASON) | P(FLAGS),
	[JOURNAL_DAEMON] = P(DAEMON) | P(RUN) | P(STORES),
	[JOURNAL_LOST] = P(SESSION) | P(NAME) | P(OWNER) | P(FENCE) | P(REASON) | P(FLAGS),
	[JOURNAL_CLIENT] = P(SESSION) | P(CONNECTION) | P(FLAGS) | P(UID) | P(PID) | P(ADDRESS) | P(USER) | P(GROUPS) | P(SINCE) | P(LINE),
	[JOURNAL_LINE] = P(CONNECTION) | P(FLAGS) | P(SINCE) | P(LINE) | P(TRACE),
	[JOURNAL_UNANSWERED] = P(CONNECTION) | P(LINE),
	[JOURNAL_WATCH] = P(CONNECTION) | P(FLAGS) | P(LINE) | P(SEQUENCE),
	[JOURNAL_PROCESS] = P(SECRET) | P(SINCE) | P(UNTIL) | P(LINE) | P(SEQUENCE) | P(FLAGS),
	[JOURNAL_FILE] = P(NAME) | P(PLACE) | P(LINE),
	[JOURNAL_LISTENER] = P(PLACE) | P(LINE) | P(UID) | P(PID) | P(FLAGS),
	[JOURNAL_SOCKET] = P(SEQUENCE) | P(PLACE) | P(LINE) | P(FLAGS),
	[JOURNAL_BYTES] = P(FLAGS) | P(LINE),
	[JOURNAL_LEAVES] = P(CONNECTION) | P(FLAGS),
	[JOURNAL_GHOST] = P(NAME) | P(UNTIL),
	[JOURNAL_TICKET] = P(NAME) | P(SINCE) | P(PLACED) | P(STAMP) | P(SEQUENCE) | P(READER) | P(WRITER) | P(PRIORITY) | P(FLAGS),
	[JOURNAL_RELEASE] = P(NAME) | P(VALUE) | P(DELAY) | P(SINCE) | P(UNTIL) | P(FLAGS) | P(PLACED) | P(PX),
	[JOURNAL_JOB_LEFT] = P(QUEUE) | P(VALUE) | P(DELAY) | P(DEADLINE) | P(END),
	[JOURNAL_STORES] = P(MARKER) | P(SEEN) | P(DELAY) | P(UNTIL) | P(FLAGS),
	[JOURNAL_STORE] = P(NAME) | P(VALUE) | P(MARKER) | P(ADDRESS) | P(SEEN) | P(JOINED) | P(ISSUED) | P(EVICTED) | P(FLAGS) | P(LOW) | P(HIGH) | P(SINCE),
	[JOURNAL_MARKER] = P(NAME) | P(MARKER) | P(FLAGS) | P(SINCE) | P(LOW) | P(WHY),
	[JOURNAL_QUARANTINE] = P(NAME) | P(MARKER) | P(SINCE) | P(UNTIL) | P(LINE) | P(STAMP) | P(SEQUENCE) | P(NOTE),
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

static size_t number_length(uint64_t value)
{
	return value ? 8 - (size_t)__builtin_clzll(value) / 8 : 0;
}

static bool part_is_sound(const struct part_row *row, const void *member)
{
	int64_t size = row->is_text ? (int64_t)((const struct span *)member)->n : *(const int64_t *)member;

	return size >= row->least && size <= row->most;
}

static char *field_begin(char *at, unsigned part, size_t n)
{
	*at++ = (char)(part + 1);
	return put_number(at, n, 2);
}

static char *part_encode(unsigned part, const void *member, char *at)
{
	const struct part_row *row = &part_table[part];
	const struct span *text = member;
	uint64_t number;

	assert(part_is_sound(row, member));
	if (!row->is_text) {
		number = (uint64_t) * (const int64_t *)member;
		return number ? put_number(field_begin(at, part, number_length(number)), number, number_length(number)) : at;
	}
	if (text->n == 0)
		return at;
	at = field_begin(at, part, text->n);
	memcpy(at, text->p, text->n);
	return at + text->n;
}

size_t journal_encode(const struct journal_record *record, char *out)
{
	char *at = out;

	*at++ = JOURNAL_VERSION;
	*at++ = (char)record->kind;
	for (uint64_t parts = kind_parts[record->kind]; parts; parts &= parts - 1) {
		unsigned part = (unsigned)__builtin_ctzll(parts);

		at = part_encode(part, (const char *)record + part_table[part].offset, at);
	}
	return (size_t)(at - out);
}

/* Takes n bytes off the rest. False: there are fewer. */
static bool rest_take(struct span *rest, size_t n, const char **ret_bytes)
{
	if (rest->n < n)
		return false;
	*ret_bytes = rest->p;
	*rest = (struct span){rest->p + n, rest->n - n};
	return true;
}

static bool part_set(const struct part_row *row, void *member, const char *bytes, size_t n)
{
	if (row->is_text)
		*(struct span *)member = (struct span){bytes, n};
	else if (n > 8)
		return false;
	else
		*(int64_t *)member = (int64_t)get_number(bytes, n);
	return true;
}

static bool fields_decode(struct span rest, uint64_t parts, struct journal_record *r)
{
	const char *head, *bytes;

	while (rest.n > 0) {
		unsigned part;
		size_t n;

		if (!rest_take(&rest, 3, &head))
			return false;
		part = (unsigned)(unsigned char)head[0] - 1;
		n = (size_t)get_number(head + 1, 2);
		if (!rest_take(&rest, n, &bytes))
			return false;
		if (part < PART_N && (parts >> part & 1) && !part_set(&part_table[part], (char *)r + part_table[part].offset, bytes, n))
			return false;
	}
	return true;
}

static bool version_1_decode(struct span rest, uint64_t parts, struct journal_record *r)
{
	for (parts &= (UINT64_C(1) << VERSION_1_PARTS) - 1; parts; parts &= parts - 1) {
		const struct part_row *row = &part_table[__builtin_ctzll(parts)];
		const char *bytes;
		size_t n = 8;

		if (row->is_text) {
			if (!rest_take(&rest, 2, &bytes))
				return false;
			n = (size_t)get_number(bytes, 2);
		}
		if (!rest_take(&rest, n, &bytes) || !part_set(row, (char *)r + row->offset, bytes, n))
			return false;
	}
	return rest.n == 0;
}

static bool parts_are_sound(const struct journal_record *r)
{
	for (uint64_t parts = kind_parts[r->kind]; parts; parts &= parts - 1) {
		const struct part_row *row = &part_table[__builtin_ctzll(parts)];

		if (!part_is_sound(row, (const char *)r + row->offset))
			return false;
	}
	return true;
}

int journal_decode(struct span bytes, struct journal_record *ret_record)
{
	struct journal_record r = {0};
	struct span rest;
	unsigned kind;

	if (bytes.n < 2 || (bytes.p[0] != JOURNAL_VERSION && bytes.p[0] != VERSION_1))
		return -EBADMSG;
	kind = (unsigned char)bytes.p[1];
	if (kind < JOURNAL_SESSION || (bytes.p[0] == VERSION_1 && kind > VERSION_1_KIND_LAST))
		return -EBADMSG;
	if (kind > JOURNAL_KIND_LAST || kind_parts[kind] == 0)
		return JOURNAL_UNKNOWN;
	r.kind = (enum journal_kind)kind;
	rest = (struct span){bytes.p + 2, bytes.n - 2};
	if (!(bytes.p[0] == VERSION_1 ? version_1_decode : fields_decode)(rest, kind_parts[kind], &r) || !parts_are_sound(&r))
		return -EBADMSG;
	*ret_record = r;
	return 0;
}
