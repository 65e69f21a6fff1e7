/* SPDX-License-Identifier: BSD-2-Clause */
/* See job_op.h. */
#include "daemon/store/job_op.h"

#include "daemon/store/job_keep.h"

void job_op_sweep_dead(struct job_op *o, int64_t keep_ms)
{
	struct timer *first = heap_first(&o->store->dead);
	struct job_queue *q = first ? container_of(first, struct job_queue, dead) : NULL;
	int64_t over = o->now_ms - keep_ms;
	struct job_list *l = q ? &q->list[DEAD] : NULL;
	size_t left = 1;

	if (!first || first->at.us > over)
		return;
	for (unsigned n = 0; n < JOB_SWEEP && left > 0 && l->count > 0 && l->row[0]->ms <= over; n++) {
		if (!jobs_may(o->store, JOB_ENDS))
			return;
		left = job_rows_count(q) - 1;
		job_keep_gone(o->store, l->row[0]);
		job_rows_forget(o->store, q, l->row[0]);
	}
	if (left > 0 && l->count > 0)
		heap_set(&o->store->dead, first, (struct instant){l->row[0]->ms});
	else if (left > 0)
		heap_cancel(&o->store->dead, first);
	o->queue = job_rows_find(o->store, o->name);
}

int64_t job_op_next_ms(const struct job_op *o, const struct job_queue *q)
{
	const struct job_list *due = &q->list[DUE], *leased = &q->list[LEASED];
	size_t i = job_list_place(due, o->now_ms + 1, 0);
	int64_t next = INT64_MAX;

	if (i < due->count)
		next = due->row[i]->ms;
	if (leased->count > 0 && leased->row[0]->ms < next)
		next = leased->row[0]->ms;
	return next == INT64_MAX ? -1 : next > o->now_ms ? next - o->now_ms : 0;
}
