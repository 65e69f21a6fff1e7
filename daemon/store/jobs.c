/* SPDX-License-Identifier: BSD-2-Clause */
/* See jobs.h. Each operation is that of the script, and must change with it. */
#include "daemon/store/jobs.h"

#include "daemon/store/job_keep.h"
#include "daemon/store/job_op.h"

#define SWEEP 32
#define SCAN  128
#define KEEP_MS (INT64_C(15) * 1000)

/* Asked before anything of the job changes; texts: bytes of those that its record will have. */
static bool may_keep(struct job_op *o, size_t texts, enum job_change change)
{
	o->refused = !jobs_may(o->store, job_keep_bytes(o->name, texts), change);
	return !o->refused;
}

static void job_end_lease(struct job_row *j)
{
	job_row_text_replace(&j->value, SPAN(""));
}

static void job_fail(struct job_op *o, struct job_row *j, int64_t delay_ms, int64_t attempts)
{
	job_end_lease(j);
	j->failed++;
	j->due_ms = o->now_ms + delay_ms;
	if (j->failed < attempts)
		job_row_move(o->queue, j, DUE, j->due_ms);
	else
		job_row_move(o->queue, j, DEAD, o->now_ms);
	job_keep(o->store, o->queue, j, false);
}

/* --- operations --- */

static bool defer_was_carried_out(const struct job_op *o, struct span nonce)
{
	const struct job_row *j = job_row_find(o->store->deferred, nonce);

	return j && j->ms >= o->now_ms;
}

static void defer_note(struct job_op *o, struct span nonce, int64_t not_after_ms)
{
	struct job_queue *q = o->store->deferred;
	int64_t until_ms = o->now_ms + KEEP_MS;
	struct job_row *j;

	for (unsigned i = 0; i < SWEEP && q->list[DUE].count > 0 && q->list[DUE].row[0]->ms < o->now_ms; i++)
		job_row_remove(q, q->list[DUE].row[0]);
	j = job_row_find(q, nonce);
	if (j)
		job_row_leave(q, j);
	else
		j = job_row_add(q, nonce);
	job_row_enter(q, j, DUE, not_after_ms > 0 && not_after_ms < until_ms ? not_after_ms : until_ms);
}

static char op_defer(struct job_op *o)
{
	struct span id = next_word(o), payload = next_word(o), lock = next_word(o), nonce;
	int64_t delay_ms = next_number(o), most = next_number(o), not_after_ms, due_ms, failed;
	struct job_row *j = job_row_find(o->queue, id);
	bool again;

	nonce = next_word(o);
	not_after_ms = next_number(o);
	due_ms = o->rest.n > 0 ? next_number(o) : INT64_MAX;
	failed = o->rest.n > 0 ? next_number(o) : 0;
	if (not_after_ms > 0 && o->now_ms > not_after_ms)
		return 'L';
	again = defer_was_carried_out(o, nonce);
	if (again || (j && j->kind != DEAD)) {
		if (!again)
			defer_note(o, nonce, not_after_ms);
		tell_number(o, j && j->kind == DUE && j->due_ms > o->now_ms ? j->due_ms - o->now_ms : 0);
		return 'D';
	}
	if ((int64_t)job_rows_count(o->queue) - (j != NULL) >= most) {
		tell_number(o, (int64_t)job_rows_count(o->queue));
		return 'F';
	}
	if (!may_keep(o, id.n + lock.n + payload.n, JOB_NEW))
		return 0;
	defer_note(o, nonce, not_after_ms);
	if (!o->queue)
		o->queue = job_rows_add(o->store, o->name);
	if (j)
		job_row_leave(o->queue, j);
	else
		j = job_row_add(o->queue, id);
	job_row_text_replace(&j->payload, payload);
	job_row_text_replace(&j->lock, lock);
	j->failed = failed;
	j->due_ms = due_ms < o->now_ms + delay_ms ? due_ms : o->now_ms + delay_ms;
	j->due_ms = j->due_ms > 0 ? j->due_ms : 0;
	job_row_enter(o->queue, j, DUE, j->due_ms);
	job_keep(o->store, o->queue, j, true);
	tell_number(o, j->due_ms > o->now_ms ? j->due_ms - o->now_ms : 0);
	return 'D';
}

/* False: it may not. */
static bool queue_sweep(struct job_op *o, int64_t attempts)
{
	struct job_list *l = &o->queue->list[LEASED];
	size_t bytes = 0;
	unsigned n;

	for (n = 0; n < SWEEP && n < l->count && l->row[n]->ms <= o->now_ms; n++)
		bytes += job_keep_bytes(o->name, l->row[n]->id.n);
	o->refused = !jobs_may(o->store, bytes, JOB_END);
	while (!o->refused && n-- > 0)
		job_fail(o, l->row[0], 0, attempts);
	return !o->refused;
}

static bool lock_is_named(struct span lock, struct span locks)
{
	struct span word;

	while (lock.n > 0 && netstring_next(&locks, &word))
		if (span_equal(word, lock))
			return true;
	return false;
}

static size_t place_behind(const struct job_op *o, int64_t after_ms, struct span after_id)
{
	const struct job_list *due = &o->queue->list[DUE];
	size_t i = job_list_place(due, after_ms, after_id);

	if (after_id.n == 0)
		return 0;
	if (i < due->count && due->row[i]->ms == after_ms && span_equal(due->row[i]->id, after_id))
		return i + 1;
	return job_list_place(due, after_ms, SPAN(""));
}

static char job_take(struct job_op *o, struct job_row *j, struct span value, int64_t ttl_ms)
{
	if (!may_keep(o, j->id.n + value.n, JOB_TAKE))
		return 0;
	job_row_text_replace(&j->value, value);
	job_row_move(o->queue, j, LEASED, o->now_ms + ttl_ms);
	job_keep(o->store, o->queue, j, false);
	tell(o, j->id);
	tell_number(o, j->failed + 1);
	tell(o, j->lock);
	tell(o, j->payload);
	tell_number(o, j->due_ms);
	return 'J';
}

static char op_take(struct job_op *o)
{
	struct span value = next_word(o), after_id;
	int64_t ttl_ms = next_number(o), attempts = next_number(o), not_after_ms = next_number(o), after_ms;
	size_t i, end;

	(void)next_word(o);
	(void)next_number(o);
	(void)next_number(o);
	after_ms = next_number(o);
	after_id = next_word(o);
	if (not_after_ms > 0 && o->now_ms > not_after_ms)
		return 'L';
	if (!o->queue) {
		tell_number(o, -1);
		return 'W';
	}
	if (!queue_sweep(o, attempts))
		return 0;
	i = place_behind(o, after_ms, after_id);
	for (end = i + SCAN; i < end && i < o->queue->list[DUE].count && o->queue->list[DUE].row[i]->ms <= o->now_ms; i++) {
		struct job_row *j = o->queue->list[DUE].row[i];

		if (!lock_is_named(j->lock, o->rest))
			return job_take(o, j, value, ttl_ms);
		if (i + 1 == end) {
			tell_number(o, j->ms);
			tell(o, j->id);
			return 'C';
		}
	}
	tell_number(o, job_op_next_ms(o, o->queue));
	return 'W';
}

static char op_renew(struct job_op *o)
{
	struct span value = next_word(o), new_value = next_word(o);
	int64_t until = o->now_ms + next_number(o);
	struct job_row *j = job_row_of(o->queue, value);

	if (!j)
		j = job_row_of(o->queue, new_value);
	if (!j && netstring_next(&o->rest, &value))
		j = job_row_of(o->queue, value);
	if (!j)
		return 'M';
	if (!may_keep(o, j->id.n + new_value.n, JOB_RENEW))
		return 0;
	job_row_text_replace(&j->value, new_value);
	if (j->ms < until)
		job_row_move(o->queue, j, LEASED, until);
	job_keep(o->store, o->queue, j, false);
	return 'K';
}

static char op_payload(struct job_op *o)
{
	const struct job_row *j = job_row_of(o->queue, next_word(o));

	if (!j)
		return 'M';
	tell(o, j->payload);
	return 'P';
}

static char op_done(struct job_op *o)
{
	struct job_row *j = job_row_of(o->queue, next_word(o));

	if (!j)
		return 'M';
	if (!may_keep(o, j->id.n, JOB_END))
		return 0;
	job_keep_gone(o->store, o->queue, j);
	job_rows_forget(o->store, o->queue, j);
	return 'R';
}

static char op_retry(struct job_op *o)
{
	struct job_row *j = job_row_of(o->queue, next_word(o));
	int64_t delay_ms = next_number(o), attempts = next_number(o);

	if (!j)
		return 'M';
	if (!may_keep(o, j->id.n, JOB_END))
		return 0;
	job_fail(o, j, delay_ms, attempts);
	return 'R';
}

static char op_back(struct job_op *o)
{
	struct job_row *j = job_row_of(o->queue, next_word(o));

	if (!j)
		return 'M';
	if (!may_keep(o, j->id.n, JOB_END))
		return 0;
	job_end_lease(j);
	job_row_move(o->queue, j, DUE, j->due_ms);
	job_keep(o->store, o->queue, j, false);
	return 'R';
}

static char op_revive(struct job_op *o)
{
	struct job_row *j = job_row_find(o->queue, next_word(o));

	if (!j || j->kind != DEAD)
		return 'M';
	if (!may_keep(o, j->id.n, JOB_TAKE))
		return 0;
	j->failed = 0;
	j->due_ms = o->now_ms + next_number(o);
	job_row_move(o->queue, j, DUE, j->due_ms);
	job_keep(o->store, o->queue, j, false);
	return 'R';
}

static char job_op_run(struct job_op *o)
{
	struct span op = next_word(o);

	if (span_equal(op, SPAN("defer")))
		return op_defer(o);
	if (span_equal(op, SPAN("take")))
		return op_take(o);
	if (span_equal(op, SPAN("renew")))
		return op_renew(o);
	if (span_equal(op, SPAN("payload")))
		return op_payload(o);
	if (span_equal(op, SPAN("done")))
		return op_done(o);
	if (span_equal(op, SPAN("retry")))
		return op_retry(o);
	if (span_equal(op, SPAN("back")))
		return op_back(o);
	if (span_equal(op, SPAN("revive")))
		return op_revive(o);
	if (span_equal(op, SPAN("list")))
		return job_op_list(o);
	if (span_equal(op, SPAN("queues")))
		return job_op_queues(o);
	return 'R'; /* leave */
}

void jobs_call(struct job_store *s, const struct call *c, struct span rest, struct buf *said, struct answer *a)
{
	struct job_op o = {.store = s, .name = c->name, .queue = job_rows_find(s, c->name), .said = said, .now_ms = a->server_us / 1000, .rest = rest};

	buf_clear(said);
	a->code = job_op_run(&o);
	if (!o.refused)
		return;
	buf_clear(said);
	buf_printf(said, "its jobs cannot be written: %s", strerror(-s->log->error));
	a->class = ANSWER_REFUSED;
	a->text = (struct span){buf_begin(said), buf_length(said)};
}
