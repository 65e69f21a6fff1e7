/* SPDX-License-Identifier: BSD-2-Clause */
/* The journals of the stage: what daemons append is kept, and another may be started on it. */
#include "daemon/base/mem.h"
#include "tests/unit/stage_part.h"

#include <stdlib.h>

#define RECORDS 4096

struct kept {
	size_t n;
	char bytes[];
};

static struct {
	struct kept *record[RECORDS];
	unsigned count;
	bool fails;
} journal[STAGE_DAEMONS];

static void journal_clear(unsigned d)
{
	while (journal[d].count > 0)
		free(journal[d].record[--journal[d].count]);
}

void journals_open(void)
{
	for (unsigned d = 0; d < STAGE_DAEMONS; d++) {
		journal_clear(d);
		journal[d].fails = false;
	}
}

void journal_keeps(unsigned d, struct span bytes)
{
	struct kept *k = mem_alloc(sizeof(*k) + bytes.n);
	struct journal_record r;

	ck_assert_msg(!journal[d].fails, "a record for a journal that cannot be written");
	ck_assert_uint_lt(journal[d].count, RECORDS);
	ck_assert_int_eq(journal_decode(bytes, &r), 0);
	k->n = bytes.n;
	memcpy(k->bytes, bytes.p, bytes.n);
	journal[d].record[journal[d].count++] = k;
}

void journal_is_copied(unsigned to, unsigned from)
{
	journal_clear(to);
	for (unsigned i = 0; i < journal[from].count; i++)
		journal_keeps(to, (struct span){journal[from].record[i]->bytes, journal[from].record[i]->n});
}

void journal_is_compacted(unsigned d)
{
	struct effects effects;

	journal_clear(d);
	effects_init(&effects);
	service_snapshot(stage.daemon[d].service, &effects);
	for (size_t i = 0; i < effects.count; i++) {
		ck_assert_int_eq(effects.item[i].kind, EFFECT_JOURNAL);
		journal_keeps(d, effects.item[i].journal.record);
	}
	effects_release(&effects);
}

static void journal_is(unsigned d, bool ok)
{
	struct event event = {.kind = EVENT_JOURNAL, .journal = {.ok = ok}};

	ck_assert_int_eq(daemon_step(d, &event), 0);
}

void journal_fails(unsigned d)
{
	journal_is(d, false);
	journal[d].fails = true;
}

void journal_mends(unsigned d)
{
	journal[d].fails = false;
	journal_is_compacted(d);
	journal_is(d, true);
}

unsigned journal_length(unsigned d)
{
	return journal[d].count;
}

bool journal_ends_with(unsigned d, enum journal_kind kind, const char *name)
{
	struct journal_record r;

	if (journal[d].count == 0)
		return false;
	ck_assert_int_eq(journal_decode((struct span){journal[d].record[journal[d].count - 1]->bytes,
						      journal[d].record[journal[d].count - 1]->n},
					&r),
			 0);
	return r.kind == kind && span_equal(r.name, span_of(name));
}

void journal_loses_tail(unsigned d, unsigned records)
{
	while (records-- > 0)
		free(journal[d].record[--journal[d].count]);
}

void journal_is_damaged(unsigned d, unsigned record)
{
	journal[d].record[record]->bytes[0] ^= 64;
}

void journal_says(unsigned d, unsigned record, unsigned at, char byte)
{
	journal[d].record[record]->bytes[at] = byte;
}

static int daemon_is_told(unsigned d, struct span record)
{
	struct event event = {.kind = EVENT_RESTORE, .journal = {.record = record}};

	return daemon_step(d, &event);
}

unsigned daemon_inherits(unsigned d, unsigned from)
{
	struct event end = {.kind = EVENT_RESTORED};
	unsigned refused = 0, count = journal[from].count;

	daemon_is_made(d);
	for (unsigned i = 0; i < count; i++) {
		struct kept *k = journal[from].record[i];
		/* Exactly so many bytes, so that a read beyond them is seen. */
		char *bytes = mem_copy(k->bytes, k->n);

		refused += daemon_is_told(d, (struct span){bytes, k->n}) != 0;
		free(bytes);
	}
	ck_assert_int_eq(daemon_step(d, &end), 0);
	if (d != from) {
		journal_clear(d);
		memcpy(journal[d].record, journal[from].record, count * sizeof(journal[d].record[0]));
		journal[d].count = count;
		journal[from].count = 0;
	}
	daemon_connects(d);
	passes(0);
	return refused;
}

void daemon_returns(unsigned d)
{
	daemon_ends(d);
	ck_assert_uint_eq(daemon_inherits(d, d), 0);
}
