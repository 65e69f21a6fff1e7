/* SPDX-License-Identifier: BSD-2-Clause */
/* See job_show.h. */
#include "daemon/store/job_show.h"

#include "daemon/base/mem.h"

#define ROWS  64
#define BYTES 65536

static size_t tell_job(struct job_op *o, const struct job_row *j)
{
	static const char *const word[KINDS] = {"due", "leased", "dead"};
	int64_t ms = j->kind == DEAD ? o->now_ms - j->ms : j->ms - o->now_ms;
	size_t before = buf_length(o->said);

	tell(o, j->id);
	tell(o, span_of(word[j->kind]));
	tell_number(o, ms > 0 ? ms : 0);
	tell_number(o, j->failed);
	tell(o, j->lock);
	tell(o, j->payload);
	return buf_length(o->said) - before;
}

/* The first row is told once the others are known. */
static char tell_next(struct job_op *o, int64_t next)
{
	struct buf *shown = o->said;
	struct span rows = {mem_copy(buf_begin(shown), buf_length(shown)), buf_length(shown)};

	buf_clear(shown);
	tell_number(o, next);
	buf_append(shown, rows.p, rows.n);
	job_row_text_drop(&rows);
	return 'T';
}

char job_show_list(struct job_op *o)
{
	size_t from = (size_t)next_number(o), place = from, n = 0, bytes = 0;

	job_op_sweep_dead(o, next_number(o));

	for (unsigned k = 0; o->queue && k < KINDS; k++) {
		const struct job_list *l = &o->queue->list[k];

		for (; from < l->count; from++, place++) {
			if (n == ROWS || bytes > BYTES)
				return tell_next(o, (int64_t)place);
			bytes += tell_job(o, l->row[from]);
			n++;
		}
		from -= l->count;
	}
	return tell_next(o, -1);
}

char job_show_queues(struct job_op *o)
{
	size_t from = (size_t)next_number(o), i;

	for (i = from; i < o->store->count && i < from + ROWS; i++) {
		const struct job_queue *q = o->store->queue[i];

		tell(o, q->name);
		for (unsigned k = 0; k < KINDS; k++)
			tell_number(o, (int64_t)q->list[k].count);
		tell_number(o, job_op_next_ms(o, q));
	}
	return tell_next(o, i == from + ROWS ? (int64_t)i : -1);
}
