/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See job_keep.h. A record, little-endian:
 *
 *   0 what it is   1 kind of the job   4 lengths of queue, id, value, lock, payload, peer   32 ms   40 due_ms   48 failed   56 these texts
 *
 * Of a job that is gone only queue and id are told, and of one that stood in the log before neither lock, payload nor peer.
 */
#include "daemon/store/job_keep.h"

#include "daemon/base/pack.h"

#include <assert.h>
#include <errno.h>

#define FIXED ((size_t)56)

_Static_assert(FIXED + JOB_TEXT_MAX + JOB_ID_MAX + VALUE_MAX + PEER_MAX <= JOBLOG_RECORD, "there is room for the longest job");

enum { NEW = 'N', CHANGED = 'C', GONE = 'G' };
enum { QUEUE, ID, VALUE, LOCK, PAYLOAD, PEER, TEXTS };
enum { AT_KIND = 1, AT_LENGTHS = 4, AT_MS = 32, AT_DUE = 40, AT_FAILED = 48 };

static size_t record_put(char *out, char what, const struct job_row *j, const struct span text[TEXTS])
{
	char *to = out + FIXED;

	memset(out, 0, FIXED);
	out[0] = what;
	out[AT_KIND] = (char)j->kind;
	put_u64(out + AT_MS, (uint64_t)j->ms);
	put_u64(out + AT_DUE, (uint64_t)j->due_ms);
	put_u64(out + AT_FAILED, (uint64_t)j->failed);
	for (unsigned i = 0; i < TEXTS; i++) {
		put_u32(out + AT_LENGTHS + 4 * i, (uint32_t)text[i].n);
		if (text[i].n > 0)
			memcpy(to, text[i].p, text[i].n);
		to += text[i].n;
	}
	return (size_t)(to - out);
}

static void log_add(struct joblog *l, char what, const struct job_queue *q, const struct job_row *j)
{
	const struct span none = {0};
	const struct span text[TEXTS] = {q->name, j->id, what != GONE ? j->value : none, what == NEW ? j->lock : none, what == NEW ? j->payload : none,
	                                 what == NEW ? j->peer : none};

	joblog_end(l, record_put(joblog_begin(l), what, j, text));
}

size_t job_keep_bytes(struct span queue, size_t texts)
{
	return joblog_bytes(FIXED + queue.n + texts);
}

static void job_count(struct job_store *s, struct job_row *j, size_t live, size_t ending)
{
	s->live += live - j->live;
	s->ending += ending - j->ending;
	j->live = (uint32_t)live;
	j->ending = (uint32_t)ending;
}

static void job_count_as_it_stands(struct job_store *s, const struct job_queue *q, struct job_row *j)
{
	job_count(s, j, job_keep_bytes(q->name, j->id.n + j->value.n + j->lock.n + j->payload.n + j->peer.n),
	          j->kind == LEASED ? job_keep_bytes(q->name, j->id.n) : 0);
}

void job_keep(struct job_store *s, const struct job_queue *q, struct job_row *j, bool texts)
{
	job_count_as_it_stands(s, q, j);
	if (s->log)
		log_add(s->log, texts ? NEW : CHANGED, q, j);
}

void job_keep_gone(struct job_store *s, const struct job_queue *q, struct job_row *j)
{
	job_count(s, j, 0, 0);
	if (s->log)
		log_add(s->log, GONE, q, j);
}

/* --- snapshots --- */

static void each_job(const struct job_store *s, void (*visit)(void *context, const struct job_queue *q, struct job_row *j), void *context)
{
	for (size_t i = 0; i < s->count; i++)
		for (unsigned k = 0; k < KINDS; k++)
			for (size_t r = 0; r < s->queue[i]->list[k].count; r++)
				visit(context, s->queue[i], s->queue[i]->list[k].row[r]);
}

static void snapshot_add(void *context, const struct job_queue *q, struct job_row *j)
{
	log_add(context, NEW, q, j);
}

static int jobs_snapshot(struct job_store *s)
{
	struct joblog new;
	int r = joblog_new(s->log, s->live, JOBLOG_SPARE + s->ending, &new);

	if (r < 0)
		return r;
	each_job(s, snapshot_add, &new);
	return joblog_replace(s->log, &new);
}

/* The old file is of no use any more, whatever becomes of the new one. */
int jobs_look(struct job_store *s, bool moves)
{
	if (!s->log->at || (!moves && joblog_is_there(s->log)))
		return 0;
	return jobs_snapshot(s);
}

static int log_room(struct job_store *s, size_t bytes, enum job_change change)
{
	size_t ending = change < JOB_END ? s->ending : 0;

	return s->log->at ? joblog_room(s->log, bytes, ending + (change < JOB_RENEW ? JOBLOG_SPARE : 0)) : s->log->error;
}

/* Without jobs the file may go before there is another: on a full device that makes its space. */
static void log_make_room(struct job_store *s)
{
	if (s->log->at && joblog_snapshot_pays(s->log, s->live) && jobs_snapshot(s) < 0 && s->live == 0) {
		joblog_remove(s->log);
		(void)jobs_snapshot(s);
	}
}

/* A snapshot pays behind this change as well, before what is set apart for ends of leases is used. New jobs leave some room for those that will be leased. */
static bool log_can_bear(const struct job_store *s, size_t bytes, enum job_change change)
{
	size_t leases = change == JOB_NEW ? JOBLOG_SPARE + s->log->most / 64 : bytes;

	return change > JOB_TAKE || 2 * (s->live + bytes) + s->ending + JOBLOG_SPARE + leases <= s->log->most;
}

/* A snapshot that fails leaves the log as it was: it may have room all the same. */
static int log_prepare(struct job_store *s, size_t bytes, enum job_change change)
{
	int r = jobs_look(s, false);

	if (r < 0)
		return r;
	if (!log_can_bear(s, bytes, change))
		return s->log->error = -EFBIG;
	if (!s->log->at || (joblog_wants_snapshot(s->log, bytes) && joblog_snapshot_pays(s->log, s->live)))
		(void)jobs_snapshot(s);
	else if (joblog_wants_snapshot(s->log, bytes))
		joblog_put_off(s->log, s->live);
	if (log_room(s, bytes, change) == 0)
		return 0;
	log_make_room(s);
	return log_room(s, bytes, change);
}

/* The error stands until there is room for what was refused, whatever else there is room for. */
bool jobs_may(struct job_store *s, size_t bytes, enum job_change change)
{
	int before, r;

	if (!s->log || bytes == 0)
		return true;
	before = s->log->error;
	r = log_prepare(s, bytes, change);
	if (r < 0)
		s->refused = change;
	else if (change > s->refused)
		s->log->error = before;
	return r == 0;
}

/* --- what another run left --- */

struct restoring {
	struct job_store *store;
	size_t unknown;
};

struct record {
	char what;
	unsigned kind;
	int64_t ms, due_ms, failed;
	struct span text[TEXTS];
};

static bool record_read(struct span bytes, struct record *r)
{
	size_t at = FIXED;

	if (bytes.n < FIXED)
		return false;
	r->what = bytes.p[0];
	r->kind = (unsigned char)bytes.p[AT_KIND];
	r->ms = (int64_t)get_u64(bytes.p + AT_MS);
	r->due_ms = (int64_t)get_u64(bytes.p + AT_DUE);
	r->failed = (int64_t)get_u64(bytes.p + AT_FAILED);
	for (unsigned i = 0; i < TEXTS; i++) {
		r->text[i] = (struct span){bytes.p + at, get_u32(bytes.p + AT_LENGTHS + 4 * i)};
		if (r->text[i].n > bytes.n - at)
			return false;
		at += r->text[i].n;
	}
	return at == bytes.n && r->kind < KINDS && (r->what == NEW || r->what == CHANGED || r->what == GONE);
}

static void job_stand(struct job_store *s, struct job_queue *q, struct job_row *j, const struct record *r)
{
	job_row_text_replace(&j->value, r->text[VALUE]);
	if (r->what == NEW) {
		job_row_text_replace(&j->lock, r->text[LOCK]);
		job_row_text_replace(&j->payload, r->text[PAYLOAD]);
		job_row_text_replace(&j->peer, r->text[PEER]);
	}
	j->due_ms = r->due_ms;
	j->failed = r->failed;
	job_row_enter(q, j, r->kind, r->ms);
	if (r->kind == DEAD && !timer_is_set(&q->dead))
		heap_set(&s->dead, &q->dead, (struct instant){r->ms});
}

static void record_apply(void *context, struct span bytes)
{
	struct restoring *o = context;
	struct job_queue *q;
	struct job_row *j;
	struct record r;

	if (!record_read(bytes, &r)) {
		o->unknown++;
		return;
	}
	q = job_rows_find(o->store, r.text[QUEUE]);
	j = job_row_find(q, r.text[ID]);
	if (!j && r.what != NEW) {
		o->unknown++;
	} else if (r.what == GONE) {
		job_count(o->store, j, 0, 0);
		job_rows_forget(o->store, q, j);
	} else {
		if (!q)
			q = job_rows_add(o->store, r.text[QUEUE], r.text[PEER]);
		if (!j) {
			j = job_row_add(q, r.text[ID]);
		} else {
			job_row_leave(q, j);
			job_row_charge(o->store, j, -1);
			if (r.what == NEW)
				job_row_number(q, j);
		}
		job_stand(o->store, q, j, &r);
		job_row_charge(o->store, j, 1);
		job_count_as_it_stands(o->store, q, j);
	}
}

static size_t jobs_put_off(struct job_store *s, unsigned kind, int64_t later_ms, int64_t least_ms)
{
	size_t moved = 0;

	for (size_t i = 0; i < s->count; i++)
		moved += job_list_put_off(&s->queue[i]->list[kind], later_ms > 0 ? later_ms : 0, least_ms);
	return moved;
}

static size_t jobs_count(const struct job_store *s)
{
	size_t jobs = 0;

	for (size_t i = 0; i < s->count; i++)
		jobs += job_rows_count(s->queue[i]);
	return jobs;
}

static void lease_bytes(void *context, const struct job_queue *q, struct job_row *j)
{
	if (j->kind == LEASED)
		*(size_t *)context += job_keep_bytes(q->name, j->id.n + j->value.n);
}

static void lease_add(void *context, const struct job_queue *q, struct job_row *j)
{
	if (j->kind == LEASED)
		log_add(context, CHANGED, q, j);
}

/* Where there is no space for a snapshot, there may be some for what has changed. A damaged log stays damaged, so the next run hands out none, either. */
static int moved_keep(struct job_store *s)
{
	size_t bytes = 0;
	int r = jobs_snapshot(s);

	if (r == 0)
		return 0;
	each_job(s, lease_bytes, &bytes);
	r = joblog_room(s->log, bytes, s->ending);
	if (r == 0)
		each_job(s, lease_add, s->log);
	return r;
}

/* Nobody knows whether a damaged record leased a job: none is handed out before each lease is over. */
void jobs_restore(struct job_store *s, struct joblog *log, const struct jobs_past *past, struct jobs_found *ret)
{
	struct restoring o = {.store = s};
	size_t moved;

	*ret = (struct jobs_found){0};
	s->log = log;
	if (!joblog_open(log, record_apply, &o, &ret->log))
		return;
	ret->unknown = o.unknown;
	ret->jobs = jobs_count(s);
	moved = jobs_put_off(s, LEASED, past->later_ms, ret->log.damaged ? past->hold_ms : 0);
	if (ret->log.damaged) {
		joblog_show(log);
		moved += jobs_put_off(s, DUE, 0, past->hold_ms);
	}
	if (ret->jobs == 0)
		joblog_remove(log);
	else if (moved > 0 || ret->log.damaged)
		ret->error = moved_keep(s);
}

int jobs_go_on(struct job_store *s, struct joblog *log)
{
	struct joblog_found found;

	s->log = log;
	if ((!joblog_open(log, NULL, NULL, &found) || found.damaged) && s->count > 0)
		return jobs_snapshot(s);
	return 0;
}
