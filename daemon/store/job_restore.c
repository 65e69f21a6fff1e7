/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs as another run left them in the file: see job_keep.h. */
#include "daemon/store/job_keep_parts.h"

#include "daemon/core/event/event.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

static struct span column(struct sqlite3_stmt *s, int place)
{
	const void *text = sqlite3_column_text(s, place - 1);

	return (struct span){text, (size_t)sqlite3_column_bytes(s, place - 1)};
}

/* False: no job can stand so. */
static bool row_load(struct job_store *s, struct sqlite3_stmt *row)
{
	struct span queue = column(row, QUEUE), id = column(row, ID), value = column(row, VALUE), lock = column(row, LOCK), payload = column(row, PAYLOAD),
		    peer = column(row, PEER);
	int64_t number = sqlite3_column_int64(row, NUMBER - 1), kind = sqlite3_column_int64(row, KIND - 1);
	struct job_queue *q = job_rows_find(s, queue);
	struct job_row *j;

	if (number <= (int64_t)s->number || kind < 0 || kind >= KINDS || id.n > JOB_ID_MAX || value.n > VALUE_MAX || peer.n >= PEER_MAX ||
	    queue.n + lock.n + payload.n > JOB_TEXT_MAX || job_row_find(q, id))
		return false;
	s->number = (uint64_t)number - 1;
	if (!q)
		q = job_rows_add(s, queue, peer);
	j = job_row_add(s, q, id);
	job_row_text_replace(&j->value, value);
	job_row_text_replace(&j->lock, lock);
	job_row_text_replace(&j->payload, payload);
	job_row_text_replace(&j->peer, peer);
	j->due_ms = sqlite3_column_int64(row, DUE_MS - 1);
	j->failed = sqlite3_column_int64(row, FAILED - 1);
	j->stored = true;
	job_row_enter(q, j, (unsigned)kind, sqlite3_column_int64(row, MS - 1));
	job_row_charge(s, j, 1);
	return true;
}

static int store_load(struct job_store *s)
{
	struct sqlite3_stmt *row = NULL;
	int r = job_file_statement(s->file, "SELECT * FROM job ORDER BY number", &row), damaged = 0;

	while (!r && !damaged && sqlite3_step(row) == SQLITE_ROW)
		damaged = row_load(s, row) ? 0 : -EBADMSG;
	if (sqlite3_finalize(row))
		r = job_file_error(s->file);
	return r ? r : damaged;
}

static void store_empty(struct job_store *s)
{
	while (s->count > 0)
		for (unsigned k = 0; k < KINDS; k++)
			if (s->queue[0]->list[k].count > 0) {
				job_rows_forget(s, s->queue[0], s->queue[0]->list[k].row[0]);
				break;
			}
	s->number = 0;
}

static void queue_restored(struct job_store *s, struct job_queue *q, int64_t later_ms)
{
	for (size_t i = 0; i < q->list[LEASED].count && later_ms > 0; i++) {
		q->list[LEASED].row[i]->ms += later_ms;
		job_row_is_changed(s, q->list[LEASED].row[i]);
	}
	if (q->list[DEAD].count > 0)
		heap_set(&s->dead, &q->dead, (struct instant){q->list[DEAD].row[0]->ms});
}

static int leases_restored(struct job_store *s)
{
	for (size_t i = 0; i < s->count; i++)
		queue_restored(s, s->queue[i], s->file->later_ms);
	return jobs_write(s);
}

/* The store is empty unless it returns 0. -ENOENT: there is no file. */
static int store_read(struct job_store *s)
{
	struct job_file *f = s->file;
	int r = job_file_open(f);

	if (!r)
		r = store_load(s);
	if (r) {
		store_empty(s);
		job_file_close(f);
	}
	f->unread = r && r != -ENOENT;
	if (f->unread)
		f->error = r;
	return r;
}

/* What is damaged now may be a copy that somebody is making. The next run judges it. */
void jobs_read_again(struct job_store *s)
{
	if (s->file && s->file->unread && store_read(s) == 0)
		(void)leases_restored(s); /* a failure stays in sight, as any other */
}

static void damaged_file_goes(struct job_file *f)
{
	char path[PATH_SIZE];

	job_file_set_aside(f);
	unlink(job_file_path(f, FILE_NAME, path));
	f->unread = false;
}

void jobs_restore(struct job_store *s, struct job_file *f, int64_t later_ms, struct jobs_found *ret)
{
	char path[PATH_SIZE];
	int r;

	unlink(job_file_path(f, NEW_NAME, path));
	*ret = (struct jobs_found){0};
	s->file = f;
	f->later_ms = later_ms;
	r = store_read(s);
	if (r && r != -ENOENT) {
		ret->error = r;
		ret->stays = r != -EBADMSG;
		if (!ret->stays)
			damaged_file_goes(f);
		return;
	}
	for (size_t i = 0; i < s->count; i++)
		ret->jobs += job_rows_count(s->queue[i]);
	if (!r)
		ret->unwritten = leases_restored(s);
	jobs_look(s);
}
