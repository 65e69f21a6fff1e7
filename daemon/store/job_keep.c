/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See job_keep.h. A record, little-endian:
 *
 *   0 what it is   1 kind of the job   4 lengths of queue, id, value, lock, payload   24 ms   32 due_ms   40 failed   48 these texts
 *
 * Of a job that is gone only queue and id are told, and of one that stood in the log before neither lock nor payload.
 */
#include "daemon/store/job_keep.h"

#include "daemon/base/pack.h"

#include <assert.h>

#define FIXED ((size_t)48)

enum { NEW = 'N', CHANGED = 'C', GONE = 'G' };
enum { QUEUE, ID, VALUE, LOCK, PAYLOAD, TEXTS };
enum { AT_KIND = 1, AT_LENGTHS = 4, AT_MS = 24, AT_DUE = 32, AT_FAILED = 40 };

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
	const struct span text[TEXTS] = {q->name, j->id, what != GONE ? j->value : none, what == NEW ? j->lock : none, what == NEW ? j->payload : none};

	joblog_end(l, record_put(joblog_begin(l), what, j, text));
}

size_t job_keep_bytes(struct span queue, size_t texts)
{
	return joblog_bytes(FIXED + queue.n + texts);
}

void job_keep(struct job_store *s, const struct job_queue *q, const struct job_row *j, bool texts)
{
	if (s->log)
		log_add(s->log, texts ? NEW : CHANGED, q, j);
}

void job_keep_gone(struct job_store *s, const struct job_queue *q, const struct job_row *j)
{
	if (s->log)
		log_add(s->log, GONE, q, j);
}

/* --- snapshots --- */

static void each_job(const struct job_store *s, void (*visit)(void *context, const struct job_queue *q, const struct job_row *j), void *context)
{
	for (size_t i = 0; i < s->count; i++)
		for (unsigned k = 0; k < KINDS; k++)
			for (size_t r = 0; r < s->queue[i]->list[k].count; r++)
				visit(context, s->queue[i], s->queue[i]->list[k].row[r]);
}

static void bytes_add(void *context, const struct job_queue *q, const struct job_row *j)
{
	size_t *bytes = context;

	*bytes += job_keep_bytes(q->name, j->id.n + j->value.n + j->lock.n + j->payload.n);
}

static size_t jobs_bytes(const struct job_store *s)
{
	size_t live = 0;

	each_job(s, bytes_add, &live);
	return live;
}

static void snapshot_add(void *context, const struct job_queue *q, const struct job_row *j)
{
	log_add(context, NEW, q, j);
}

static int jobs_snapshot(struct job_store *s)
{
	struct joblog new;
	int r = joblog_new(s->log, jobs_bytes(s), &new);

	if (r < 0)
		return r;
	each_job(s, snapshot_add, &new);
	return joblog_replace(s->log, &new);
}

static int jobs_snapshot_if_it_pays(struct job_store *s)
{
	size_t live = s->log->at ? jobs_bytes(s) : 0;

	if (2 * live <= s->log->end)
		return jobs_snapshot(s);
	joblog_put_off(s->log, live);
	return 0;
}

/* A snapshot that fails leaves the log as it was: it may have room all the same. */
bool jobs_may(struct job_store *s, size_t bytes, bool more)
{
	int r = 0;

	if (!s->log || bytes == 0)
		return true;
	if (joblog_wants_snapshot(s->log, bytes))
		r = jobs_snapshot_if_it_pays(s);
	return s->log->at ? joblog_room(s->log, bytes, more ? JOBLOG_SPARE : 0) == 0 : r == 0;
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

static bool queue_is_empty(const struct job_queue *q)
{
	return q->list[DUE].count + q->list[LEASED].count + q->list[DEAD].count == 0;
}

static void job_forget(struct job_store *s, struct job_queue *q, struct job_row *j)
{
	job_row_remove(q, j);
	if (queue_is_empty(q))
		job_rows_drop(s, q);
}

static void job_stand(struct job_queue *q, struct job_row *j, const struct record *r)
{
	job_row_text_replace(&j->value, r->text[VALUE]);
	if (r->what == NEW) {
		job_row_text_replace(&j->lock, r->text[LOCK]);
		job_row_text_replace(&j->payload, r->text[PAYLOAD]);
	}
	j->due_ms = r->due_ms;
	j->failed = r->failed;
	job_row_enter(q, j, r->kind, r->ms);
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
		job_forget(o->store, q, j);
	} else {
		if (!q)
			q = job_rows_add(o->store, r.text[QUEUE]);
		if (j)
			job_row_leave(q, j);
		else
			j = job_row_add(q, r.text[ID]);
		job_stand(q, j, &r);
	}
}

/* The jobs of this kind change their places, which keep their order. Returns how many. */
static size_t jobs_put_off(struct job_store *s, unsigned kind, int64_t later_ms, int64_t least_ms)
{
	size_t moved = 0;

	for (size_t i = 0; i < s->count; i++) {
		struct job_list *l = &s->queue[i]->list[kind];
		size_t n = l->count;

		for (size_t r = n; later_ms > 0 && r-- > 0;) { /* the last first, so that none passes another */
			job_row_move(s->queue[i], l->row[r], kind, l->row[r]->ms + later_ms);
			moved++;
		}
		while (l->count > 0 && l->row[0]->ms < least_ms) {
			job_row_move(s->queue[i], l->row[0], kind, least_ms);
			moved++;
		}
	}
	return moved;
}

static void find_count(void *context, const struct job_queue *q, const struct job_row *j)
{
	size_t *jobs = context;

	(void)q;
	(void)j;
	++*jobs;
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
	each_job(s, find_count, &ret->jobs);
	moved = jobs_put_off(s, LEASED, past->later_ms, ret->log.damaged ? past->hold_ms : 0);
	if (ret->log.damaged) {
		joblog_show(log);
		moved += jobs_put_off(s, DUE, 0, past->hold_ms);
	}
	if (ret->jobs == 0)
		joblog_remove(log);
	else if (moved > 0 || ret->log.damaged)
		(void)jobs_snapshot(s);
}

void jobs_go_on(struct job_store *s, struct joblog *log, bool moved)
{
	struct joblog_found found;

	s->log = log;
	if (moved)
		joblog_set_aside(log);
	if ((!joblog_open(log, NULL, NULL, &found) || found.damaged) && s->count > 0)
		(void)jobs_snapshot(s);
}
