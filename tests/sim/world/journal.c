/* SPDX-License-Identifier: BSD-2-Clause */
/* Records go from effects into bytes, and from bytes into events. */
#include "tests/sim/world/journal.h"

#include "tests/sim/world/world.h"

#include <stdlib.h>

#define FRAME sizeof(uint32_t)

void journal_init(struct sim_journal *j)
{
	memset(j, 0, sizeof(*j));
	buf_init(&j->bytes);
}

void journal_release(struct sim_journal *j)
{
	buf_release(&j->bytes);
}

void journal_pass(struct sim_daemon *d, int64_t depart)
{
	d->journal.pass = buf_length(&d->journal.bytes);
	d->journal.passed_at = d->world->now;
	d->journal.depart = depart;
}

void journal_lose(struct sim_journal *j)
{
	buf_clear(&j->bytes);
	j->pass = 0;
	j->there = false;
}

static void record_keep(struct sim_journal *j, struct span record)
{
	uint32_t n = (uint32_t)record.n;

	buf_append(&j->bytes, &n, FRAME);
	buf_append(&j->bytes, record.p, record.n);
}

void journal_append(struct sim_daemon *d, struct span record)
{
	struct sim_journal *j = &d->journal;

	world_note(d->world, 12, hash_bytes(record.p, record.n), "d%u journal: %zu bytes of kind %d", d->index, record.n,
		   record.n > 1 ? record.p[1] : 0);
	d->world->tally.records++;
	if (j->failing) {
		journal_lose(j);
		j->failed = true;
	} else if (j->there) {
		record_keep(j, record);
	}
}

void journal_written(struct sim_daemon *d)
{
	d->journal.pass = buf_length(&d->journal.bytes);
}

/* Replaces the journal by all that the service knows. */
static void journal_rewrite(struct sim_daemon *d)
{
	struct effects snapshot;

	effects_init(&snapshot);
	service_snapshot(d->service, &snapshot);
	buf_clear(&d->journal.bytes);
	for (size_t i = 0; i < snapshot.count; i++) {
		if (snapshot.item[i].kind != EFFECT_JOURNAL)
			checker_fail(d->world, INVARIANT_S21, -1, "daemon %u: a snapshot has an effect other than a record", d->index);
		record_keep(&d->journal, snapshot.item[i].journal.record);
	}
	effects_release(&snapshot);
	d->journal.pass = buf_length(&d->journal.bytes);
	d->journal.there = true;
}

static void journal_report(struct sim_daemon *d, bool ok)
{
	struct event event = {.kind = EVENT_JOURNAL, .journal = {.ok = ok}};

	daemon_step(d, &event);
}

static void journal_mend(struct sim_daemon *d)
{
	d->journal.mended = false;
	if (d->journal.failing || d->journal.there)
		return;
	journal_rewrite(d);
	journal_report(d, true);
}

void journal_settle(struct sim_daemon *d)
{
	struct sim_journal *j = &d->journal;

	if (j->mended && d->state == DAEMON_RUNNING)
		journal_mend(d);
	if (j->failed) {
		j->failed = false;
		journal_report(d, false);
	} else if (j->there && !j->failing && buf_length(&j->bytes) > 2000 && stream_chance(&d->stream, 5)) {
		journal_rewrite(d);
	}
}

void journal_fail(struct sim_daemon *d, bool on)
{
	d->journal.failing = on;
	if (on || d->journal.there || !daemon_is_up(d))
		return;
	if (d->state == DAEMON_RUNNING)
		journal_mend(d);
	else
		d->journal.mended = true;
}

/* --- from one run to the next ------------------------------------------------------------------------------------------ */

static struct span record_at(struct buf *bytes, size_t at)
{
	uint32_t n;

	memcpy(&n, buf_begin(bytes) + at, FRAME);
	return (struct span){buf_begin(bytes) + at + FRAME, n};
}

/* Of the records of one pass, any number may be there. */
static void journal_tear(struct sim_daemon *d)
{
	struct sim_journal *j = &d->journal;
	size_t at = j->pass, end = buf_length(&j->bytes);
	struct buf kept;

	while (at < end && stream_chance(&d->stream, 50))
		at += FRAME + record_at(&j->bytes, at).n;
	if (at < end) {
		j->torn = d->run;
		broken_torn(d, j->passed_at);
	}
	buf_init(&kept);
	buf_append(&kept, buf_begin(&j->bytes), at);
	buf_release(&j->bytes);
	j->bytes = kept;
}

void journal_died(struct sim_daemon *d)
{
	struct sim_journal *j = &d->journal;

	j->failed = false;
	if (j->there && d->world->now < j->depart && j->pass < buf_length(&j->bytes))
		journal_tear(d);
}

void journal_restore(struct sim_daemon *d)
{
	struct sim_journal *j = &d->journal;
	struct event event = {.kind = EVENT_RESTORE};

	struct buf previous = j->bytes;

	j->mended = false;
	if (!j->there)
		j->torn = d->run - 1;
	buf_init(&j->bytes);
	j->there = false;
	for (size_t at = 0; at < buf_length(&previous); at += FRAME + event.journal.record.n) {
		event.kind = EVENT_RESTORE;
		event.journal.record = record_at(&previous, at);
		d->world->tally.restored++;
		daemon_step(d, &event);
	}
	event.kind = EVENT_RESTORED;
	if (buf_length(&previous) > 0)
		daemon_step(d, &event);
	buf_release(&previous);
	if (j->failing)
		journal_report(d, false);
	else
		journal_rewrite(d);
}
