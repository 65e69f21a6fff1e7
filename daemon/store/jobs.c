/* SPDX-License-Identifier: BSD-2-Clause */
/* See jobs.h. Each operation matches one in the script, and must change with it. */
#include "daemon/store/jobs.h"
#include "daemon/base/mem.h"
#include "daemon/store/job_keep.h"
#include "daemon/store/job_op.h"
#include "daemon/store/ledger.h"

/* --- the operations that only show what the queues have ------------------------------------------------------------------- */

#define ROWS  64
#define BYTES 65536

static size_t job_op_put_job(struct job_op *o, const struct job_row *j)
{
	static const char *const word[KINDS] = {"due", "leased", "dead"};
	int64_t ms = j->kind == DEAD ? o->now_ms - j->ms : j->ms - o->now_ms;
	size_t before = buf_length(o->result);

	job_op_put(o, j->id);
	job_op_put(o, span_of(word[j->kind]));
	job_op_put_number(o, ms > 0 ? ms : 0);
	job_op_put_number(o, j->failed);
	job_op_put(o, j->lock);
	job_op_put(o, j->payload);
	return buf_length(o->result) - before;
}

/* The first row is told once the others are known. */
static char job_op_put_next(struct job_op *o, int64_t next)
{
	struct buf *shown = o->result;
	struct span rows = {mem_copy(buf_begin(shown), buf_length(shown)), buf_length(shown)};

	buf_clear(shown);
	job_op_put_number(o, next);
	buf_append(shown, rows.p, rows.n);
	job_row_text_drop(&rows);
	return 'T';
}

static char job_show_list(struct job_op *o)
{
	size_t from = (size_t)next_number(o), place = from, n = 0, bytes = 0;

	job_op_sweep_dead(o, next_number(o));

	for (unsigned k = 0; o->queue && k < KINDS; k++) {
		const struct job_list *l = &o->queue->list[k];

		for (; from < l->count; from++, place++) {
			if (n == ROWS || bytes > BYTES)
				return job_op_put_next(o, (int64_t)place);
			bytes += job_op_put_job(o, l->row[from]);
			n++;
		}
		from -= l->count;
	}
	return job_op_put_next(o, -1);
}

static char job_show_queues(struct job_op *o)
{
	size_t from = (size_t)next_number(o), i;

	for (i = from; i < o->store->count && i < from + ROWS; i++) {
		const struct job_queue *q = o->store->queue[i];

		job_op_put(o, q->name);
		for (unsigned k = 0; k < KINDS; k++)
			job_op_put_number(o, (int64_t)q->list[k].count);
		job_op_put_number(o, job_op_next_ms(o, q));
	}
	return job_op_put_next(o, i == from + ROWS ? (int64_t)i : -1);
}

#define SCAN 128
#define KEEP_MS (INT64_C(15) * 1000)

/* Call it before anything changes. */
static bool may_change(struct job_op *o, enum job_change change)
{
	o->refused = !jobs_may(o->store, change);
	return !o->refused;
}

static void job_end_lease(struct job_row *j)
{
	job_row_text_replace(&j->value, SPAN(""));
}

static void job_is_dead(struct job_op *o, struct job_row *j)
{
	job_row_move(o->queue, j, DEAD, o->now_ms);
	if (!timer_is_set(&o->queue->dead))
		heap_set(&o->store->dead, &o->queue->dead, (struct instant){o->now_ms});
	if (o->ended_n < JOB_SWEEP)
		o->ended[o->ended_n++] = job_row_text_keep(j->id);
}

static void job_fail(struct job_op *o, struct job_row *j, int64_t delay_ms, int64_t attempts)
{
	job_end_lease(j);
	j->failed++;
	j->due_ms = o->now_ms + delay_ms;
	if (j->failed < attempts)
		job_row_move(o->queue, j, DUE, j->due_ms);
	else
		job_is_dead(o, j);
	job_keep(o->store, j);
}

/* --- operations --- */

static bool defer_was_carried_out(const struct job_op *o, struct span nonce)
{
	const struct job_note *note = job_note_find(o->store, nonce);

	return note && note->until_ms >= o->now_ms;
}

static void defer_note(struct job_op *o, struct span nonce, int64_t not_after_ms)
{
	struct job_store *s = o->store;
	int64_t until_ms = o->now_ms + KEEP_MS;
	struct job_note *note;

	if (not_after_ms > 0 && not_after_ms < until_ms)
		until_ms = not_after_ms;
	for (unsigned i = 0; i < JOB_SWEEP && !STAILQ_EMPTY(&s->notes) && STAILQ_FIRST(&s->notes)->until_ms < o->now_ms; i++)
		job_note_remove_first(s);
	note = job_note_find(s, nonce);
	if (note)
		note->until_ms = until_ms;
	else
		job_note_add(s, nonce, until_ms);
}

/* The arguments of a DEFER. */
struct defer {
	struct span id, payload, lock, nonce, peer;
	int64_t delay_ms, most, not_after_ms, all_most, peer_most, keep_ms;
};

static struct defer defer_read(struct job_op *o)
{
	struct defer d = {.id = next_word(o)};

	d.payload = next_word(o);
	d.lock = next_word(o);
	d.delay_ms = next_number(o);
	d.most = next_number(o);
	d.nonce = next_word(o);
	d.not_after_ms = next_number(o);
	d.peer = next_word(o);
	d.all_most = next_number(o);
	d.peer_most = next_number(o);
	d.keep_ms = next_number(o);
	return d;
}

static char defer_is_too_much(struct job_op *o, const struct defer *d)
{
	int64_t bytes = job_row_bytes(d->id, d->payload, d->lock, d->peer) + (o->queue ? 0 : job_queue_bytes(o->name));

	return ledger_too_much(o->store->ledger, d->peer, bytes, d->all_most, d->peer_most);
}

/* j: a row with this id that has failed for good; NULL: there is none. */
static void defer_store(struct job_op *o, const struct defer *d, struct job_row *j)
{
	if (!o->queue)
		o->queue = job_rows_add(o->store, o->name, d->peer);
	if (j) {
		job_row_charge(o->store, j, -1);
		job_keep_gone(o->store, j);
		job_row_remove(o->queue, j);
	}
	j = job_row_add(o->store, o->queue, d->id);
	job_row_text_replace(&j->payload, d->payload);
	job_row_text_replace(&j->lock, d->lock);
	job_row_text_replace(&j->peer, d->peer);
	job_row_charge(o->store, j, 1);
	j->due_ms = o->now_ms + d->delay_ms;
	job_row_enter(o->queue, j, DUE, j->due_ms);
	job_keep(o->store, j);
	job_op_put_number(o, d->delay_ms);
}

static char op_defer(struct job_op *o)
{
	struct defer d = defer_read(o);
	struct job_row *j;
	char much;
	bool again;

	if (d.not_after_ms > 0 && o->now_ms > d.not_after_ms)
		return 'L';
	job_op_sweep_dead(o, d.keep_ms);
	j = job_row_find(o->queue, d.id);
	again = defer_was_carried_out(o, d.nonce);
	if (again || (j && j->kind != DEAD)) {
		if (!again)
			defer_note(o, d.nonce, d.not_after_ms);
		job_op_put_number(o, j && j->kind == DUE && j->due_ms > o->now_ms ? j->due_ms - o->now_ms : 0);
		return 'D';
	}
	if ((int64_t)job_rows_count(o->queue) - (j != NULL) >= d.most) {
		job_op_put_number(o, (int64_t)job_rows_count(o->queue));
		return 'F';
	}
	much = defer_is_too_much(o, &d);
	if (much) {
		job_op_put(o, (struct span){&much, 1});
		return 'B';
	}
	if (!may_change(o, JOB_GROWS))
		return 0;
	defer_note(o, d.nonce, d.not_after_ms);
	defer_store(o, &d, j);
	return 'D';
}

/* False: no further change is possible. */
static bool queue_sweep(struct job_op *o, int64_t attempts)
{
	struct job_list *l = &o->queue->list[LEASED];

	for (unsigned n = 0; n < JOB_SWEEP && l->count > 0 && l->row[0]->ms <= o->now_ms; n++) {
		if (!may_change(o, JOB_ENDS))
			return false;
		job_fail(o, l->row[0], 0, attempts);
	}
	return true;
}

static bool lock_is_named(struct span lock, struct span locks)
{
	struct span word;

	while (lock.n > 0 && netstring_next(&locks, &word))
		if (span_equal(word, lock))
			return true;
	return false;
}

static size_t place_after(const struct job_op *o, int64_t after_ms, struct span after_id)
{
	const struct job_list *due = &o->queue->list[DUE];
	const struct job_row *j = job_row_find(o->queue, after_id);

	if (after_id.n == 0)
		return 0;
	if (j && j->kind == DUE && j->ms == after_ms)
		return job_list_place(due, after_ms, j->number) + 1;
	return job_list_place(due, after_ms, 0);
}

static void job_op_put_ended(struct job_op *o)
{
	for (unsigned i = 0; i < o->ended_n; i++)
		job_op_put(o, o->ended[i]);
}

static char job_take(struct job_op *o, struct job_row *j, struct span value, int64_t ttl_ms)
{
	if (!may_change(o, JOB_GROWS))
		return 0;
	job_row_text_replace(&j->value, value);
	job_row_move(o->queue, j, LEASED, o->now_ms + ttl_ms);
	job_keep(o->store, j);
	job_op_put(o, j->id);
	job_op_put_number(o, j->failed + 1);
	job_op_put(o, j->lock);
	job_op_put(o, j->payload);
	job_op_put_number(o, j->due_ms);
	job_op_put_ended(o);
	return 'J';
}

static char op_take(struct job_op *o)
{
	struct span value = next_word(o), after_id;
	int64_t ttl_ms = next_number(o), attempts = next_number(o), not_after_ms = next_number(o), after_ms, keep_ms;
	size_t i, end;

	(void)next_word(o);
	(void)next_number(o);
	(void)next_number(o);
	after_ms = next_number(o);
	after_id = next_word(o);
	keep_ms = next_number(o);
	if (not_after_ms > 0 && o->now_ms > not_after_ms)
		return 'L';
	job_op_sweep_dead(o, keep_ms);
	if (!o->queue) {
		job_op_put_number(o, -1);
		return 'W';
	}
	if (!queue_sweep(o, attempts))
		return 0;
	i = place_after(o, after_ms, after_id);
	for (end = i + SCAN; i < end && i < o->queue->list[DUE].count && o->queue->list[DUE].row[i]->ms <= o->now_ms; i++) {
		struct job_row *j = o->queue->list[DUE].row[i];

		if (!lock_is_named(j->lock, o->rest))
			return job_take(o, j, value, ttl_ms);
		if (i + 1 == end) {
			job_op_put_number(o, j->ms);
			job_op_put(o, j->id);
			job_op_put_ended(o);
			return 'C';
		}
	}
	job_op_put_number(o, job_op_next_ms(o, o->queue));
	job_op_put_ended(o);
	return 'W';
}

static char op_renew(struct job_op *o)
{
	struct span value = next_word(o);
	int64_t until = o->now_ms + next_number(o);
	struct job_row *j = job_row_of(o->queue, value);

	if (!j)
		return 'M';
	if (!may_change(o, JOB_ENDS))
		return 0;
	if (j->ms < until)
		job_row_move(o->queue, j, LEASED, until);
	job_keep(o->store, j);
	return 'K';
}

static char op_payload(struct job_op *o)
{
	const struct job_row *j = job_row_of(o->queue, next_word(o));

	if (!j)
		return 'M';
	job_op_put(o, j->payload);
	return 'P';
}

static char op_done(struct job_op *o)
{
	struct job_row *j = job_row_of(o->queue, next_word(o));

	if (!j)
		return 'M';
	if (!may_change(o, JOB_ENDS))
		return 0;
	job_keep_gone(o->store, j);
	job_rows_forget(o->store, o->queue, j);
	return 'R';
}

static char op_retry(struct job_op *o)
{
	struct job_row *j = job_row_of(o->queue, next_word(o));
	int64_t delay_ms = next_number(o), attempts = next_number(o);

	if (!j)
		return 'M';
	if (!may_change(o, JOB_ENDS))
		return 0;
	job_fail(o, j, delay_ms, attempts);
	job_op_put_ended(o);
	return 'R';
}

static char op_back(struct job_op *o)
{
	struct job_row *j = job_row_of(o->queue, next_word(o));

	if (!j)
		return 'M';
	if (!may_change(o, JOB_ENDS))
		return 0;
	job_end_lease(j);
	job_row_move(o->queue, j, DUE, j->due_ms);
	job_keep(o->store, j);
	return 'R';
}

static char op_revive(struct job_op *o)
{
	struct job_row *j = job_row_find(o->queue, next_word(o));
	int64_t delay_ms = next_number(o);

	if (!j || j->kind == LEASED)
		return 'M';
	if (!may_change(o, JOB_GROWS))
		return 0;
	if (j->kind == DEAD)
		j->failed = 0;
	if (j->kind == DEAD || j->due_ms > o->now_ms || delay_ms > 0)
		j->due_ms = o->now_ms + delay_ms;
	job_row_move(o->queue, j, DUE, j->due_ms);
	job_keep(o->store, j);
	return 'R';
}

static char op_drop(struct job_op *o)
{
	struct job_row *j = job_row_find(o->queue, next_word(o));

	if (!j || j->kind == LEASED)
		return j ? 'H' : 'M';
	if (!may_change(o, JOB_ENDS))
		return 0;
	job_keep_gone(o->store, j);
	job_rows_forget(o->store, o->queue, j);
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
	if (span_equal(op, SPAN("drop")))
		return op_drop(o);
	if (span_equal(op, SPAN("list")))
		return job_show_list(o);
	if (span_equal(op, SPAN("queues")))
		return job_show_queues(o);
	return 'R'; /* leave */
}

void jobs_call(struct job_store *s, const struct call *c, struct span rest, struct buf *result, struct answer *a)
{
	struct job_op o = {.store = s, .name = c->name, .queue = job_rows_find(s, c->name), .result = result, .now_ms = a->server_us / 1000, .rest = rest};

	buf_clear(result);
	o.refused = s->file && s->file->unread;
	if (!o.refused)
		a->code = job_op_run(&o);
	while (o.ended_n > 0)
		job_row_text_drop(&o.ended[--o.ended_n]);
	if (!o.refused)
		return;
	buf_clear(result);
	buf_printf(result, "its jobs cannot be written: %s", jobs_trouble(jobs_error(s)));
	a->class = ANSWER_REFUSED;
	a->text = (struct span){buf_begin(result), buf_length(result)};
}
