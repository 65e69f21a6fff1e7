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
	buf_init(&j->next);
}

void journal_release(struct sim_journal *j)
{
	buf_release(&j->bytes);
	buf_release(&j->next);
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
	j->rewriting = false;
}

static void record_keep(struct buf *bytes, struct span record)
{
	uint32_t n = (uint32_t)record.n;

	buf_append(bytes, &n, FRAME);
	buf_append(bytes, record.p, record.n);
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
		return;
	}
	if (j->there)
		record_keep(&j->bytes, record);
	if (j->rewriting)
		record_keep(&j->next, record);
}

void journal_written(struct sim_daemon *d)
{
	d->journal.pass = buf_length(&d->journal.bytes);
}

static void journal_replace(struct sim_journal *j)
{
	struct buf former = j->bytes;

	j->bytes = j->next;
	j->next = former;
	j->pass = buf_length(&j->bytes);
	j->there = true;
	j->rewriting = false;
}

static void journal_begin_rewriting(struct sim_daemon *d)
{
	service_snapshot_drop(d->service);
	buf_clear(&d->journal.next);
	d->journal.rewriting = true;
}

/* Replaces the journal by all that the service knows, one portion after the other. False: it is done. */
static bool journal_rewrite(struct sim_daemon *d)
{
	struct effects snapshot;
	bool more;

	effects_init(&snapshot);
	more = service_snapshot(d->service, &snapshot);
	for (size_t i = 0; i < snapshot.count; i++) {
		if (snapshot.item[i].kind != EFFECT_JOURNAL)
			checker_fail(d->world, INVARIANT_S21, -1, "daemon %u: a snapshot has an effect other than a record", d->index);
		record_keep(&d->journal.next, snapshot.item[i].journal.record);
	}
	effects_release(&snapshot);
	if (!more)
		journal_replace(&d->journal);
	return more;
}

static void journal_report(struct sim_daemon *d, bool ok)
{
	struct event event = {.kind = EVENT_JOURNAL, .journal = {.ok = ok}};

	daemon_step(d, &event);
}

static void journal_mend(struct sim_daemon *d)
{
	d->journal.mended = false;
	if (!d->journal.failing && !d->journal.there)
		journal_begin_rewriting(d);
}

static void journal_go_on_rewriting(struct sim_daemon *d)
{
	bool was_there = d->journal.there;

	if (!journal_rewrite(d) && !was_there)
		journal_report(d, true);
}

void journal_settle(struct sim_daemon *d)
{
	struct sim_journal *j = &d->journal;

	if (j->mended && d->state == DAEMON_RUNNING)
		journal_mend(d);
	if (j->failed) {
		j->failed = false;
		service_snapshot_drop(d->service);
		journal_report(d, false);
	} else if (j->rewriting) {
		if (stream_chance(&d->stream, 70))
			journal_go_on_rewriting(d);
	} else if (j->there && !j->failing && buf_length(&j->bytes) > 2000 && stream_chance(&d->stream, 5)) {
		journal_begin_rewriting(d);
	}
}

void journal_fail(struct sim_daemon *d, bool on)
{
	d->journal.failing = on;
	if (on && d->journal.rewriting) {
		d->journal.rewriting = false;
		service_snapshot_drop(d->service);
	}
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
	j->rewriting = false;
	if (j->there && d->world->now < j->depart && j->pass < buf_length(&j->bytes))
		journal_tear(d);
}

void journal_go_on(struct sim_daemon *d)
{
	d->journal.failed = d->journal.mended = false;
	if (d->journal.failing) {
		journal_lose(&d->journal);
		journal_report(d, false);
		return;
	}
	for (journal_begin_rewriting(d); journal_rewrite(d);)
		;
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
	journal_go_on(d);
}
