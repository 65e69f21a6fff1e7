/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST queues and LIST jobs. */
#include "daemon/core/job/job.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <string.h>

/* A row of a page is the name, followed by its figures, 8 bytes each, next_ms + 1. */

/* Reads the next row, and removes it from the text. False: there is none. */
static bool queue_row_read(struct span *text, struct queue_row *ret_row)
{
	if (!netstring_next(text, &ret_row->name) || ret_row->name.n > NAME_MAX_BYTES)
		return false;
	for (unsigned i = 0; i < QUEUE_FIGURES; i++)
		if (!netstring_next_int(text, &ret_row->figure[i]))
			return false;
	return true;
}

static char *figure_put(char *at, int64_t n)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (char)((uint64_t)n >> (56 - 8 * i));
	return at + 8;
}

static int64_t figure_get(const char *at)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 8; i++)
		n = n << 8 | (unsigned char)at[i];
	return (int64_t)n;
}

static unsigned queue_rows_add(struct page *p, const struct queue_row *row)
{
	char key[NAME_MAX_BYTES + QUEUE_FIGURES * 8], *at = key;

	memcpy(at, row->name.p, row->name.n);
	at += row->name.n;
	for (unsigned i = 0; i < QUEUE_FIGURES; i++)
		at = figure_put(at, row->figure[i] + (i == QUEUE_FIGURES - 1));
	return page_add(p, (struct span){key, (size_t)(at - key)});
}

/* Its name points into the page. */
static struct queue_row queue_rows_get(const struct page *p, size_t i)
{
	struct span key = page_name(p, i);
	struct queue_row row = {.name = {key.p, key.n - QUEUE_FIGURES * 8}};

	for (unsigned k = 0; k < QUEUE_FIGURES; k++)
		row.figure[k] = figure_get(row.name.p + row.name.n + 8 * k) - (k == QUEUE_FIGURES - 1);
	return row;
}

/* A queue at a store that is not its home was left there when the set of stores changed. */

static void queues_ask(struct request_context *x, struct listing *l)
{
	struct home_question *q = l->queues.question = job_question(x, SPAN("*"), l->origin, "queues", l);

	l->asker = ASKER_QUEUE_LIST;
	netstring_put_int(&q->words, l->queues.from);
	home_ask(x->engine, q, l->queues.place);
}

static unsigned seek_queues(struct request_context *x, struct listing *l)
{
	l->phase = LISTING_ASKS;
	queues_ask(x, l);
	return 0;
}

/* A list is sorted. If a queue is created between two pieces, the last row moves and comes again: it is skipped. */
static bool queue_add(const struct request_context *x, struct listing *l, unsigned node, struct span *text)
{
	struct queue_row row;

	if (!queue_row_read(text, &row))
		return false;
	if (l->queues.last.n > 0 && span_compare(row.name, l->queues.last) <= 0)
		return true;
	mem_span_set(&l->queues.last, row.name);
	if (!session_may_look(x->core, l->session, row.name) || !span_starts(row.name, (struct span){l->prefix, l->prefix_n}))
		return true;
	if (rendezvous_node(x->core, HOME_OF_QUEUE, row.name, 0) != node)
		l->queues.astray++;
	else if (!l->after || span_compare(row.name, (struct span){l->after, l->after_n}) > 0)
		(void)queue_rows_add(&l->page, &row);
	return true;
}

static bool queue_send_row(struct request_context *x, struct listing *l, size_t i)
{
	static const char *const field[QUEUE_FIGURES] = {"due", "leased", "dead", "next_ms"};
	struct queue_row row = queue_rows_get(&l->page, i);
	struct reply r;

	row_begin(x, span_of(l->tag), &r);
	reply_text(&r, "queue", row.name);
	for (unsigned k = 0; k < QUEUE_FIGURES; k++)
		if (row.figure[k] >= 0)
			reply_int(&r, field[k], row.figure[k]);
	row_end(x, l->session, &r);
	return true;
}

const struct listed listed_queues = {seek_queues, queue_send_row};

/* next: where the next piece begins; less than 0: there is none. False: the answer is invalid, because the next piece would not come after this one. */
static bool queues_read(const struct request_context *x, struct listing *l, const struct home_question *q, int64_t *ret_next)
{
	struct span text = q->text;

	*ret_next = -1;
	if (q->code != 'T' || !netstring_next_int(&text, ret_next))
		return false;
	while (queue_add(x, l, q->node, &text))
		;
	return text.n == 0 && (*ret_next < 0 || *ret_next > l->queues.from);
}

static void queues_next_store(struct listing *l)
{
	l->queues.from = 0;
	l->queues.place++;
	mem_span_free(&l->queues.last);
}

void queue_list_on_outcome(struct request_context *x, struct home_question *q)
{
	struct listing *l = q->about;
	struct span why = q->text;
	int64_t next = -1;

	l->queues.question = NULL;
	if (q->outcome != HOME_ANSWERED) {
		l->queues.missing++;
		queues_next_store(l);
	} else if (!queues_read(x, l, q, &next)) {
		l->queues.missing++;
		why = JOB_NONSENSE;
		queues_next_store(l);
	} else if (next >= 0) {
		l->queues.from = next;
	} else {
		queues_next_store(l);
	}
	if (l->queues.place < x->core->conf.nodes) {
		queues_ask(x, l);
	} else if (l->queues.missing == x->core->conf.nodes) {
		core_answers(x->core, VERB_LIST);
		send_error(x, l->session, span_of(l->tag), ERROR_UNAVAILABLE, "no store can be asked for its queues: %.*s", (int)why.n,
		           why.p ? why.p : "");
		lists_over(x, l);
	} else {
		lists_found(x, l);
	}
}

/* The jobs of a queue are sent as they come, in the order of its home: due, leased, dead. */

struct job_list {
	enum job_asker asker;
	LIST_ENTRY(job_list) in_all;
	struct pending *pending;
	struct home_question *question;
	struct span name;           /* owned; the name of the queue */
	int64_t from;               /* where the next piece begins */
	size_t most, sent, bytes;
};

static void job_list_ask(struct request_context *x, struct job_list *v)
{
	struct home_question *q = v->question = job_question(x, v->name, v->pending->origin, "list", v);

	netstring_put_int(&q->words, v->from);
	netstring_put_int(&q->words, whole_ms(x->core->conf.jobs_keep_us));
	home_ask(x->engine, q, 0);
}

static struct job_list *job_list_new(struct request_context *x, struct session *s, size_t most)
{
	struct job_list *v = mem_alloc(sizeof(*v));

	v->pending = pending_of_request(x, s, NULL);
	v->asker = ASKER_SURVEY;
	v->most = most;
	v->name = mem_span(x->request.field[FIELD_PREFIX].text);
	LIST_INSERT_HEAD(&x->surveys, v, in_all);
	return v;
}

static void job_list_free(struct job_list *v)
{
	if (v->question)
		v->question->about = NULL;
	LIST_REMOVE(v, in_all);
	mem_span_free(&v->name);
	mem_free(v);
}

void surveys_free_all(struct request_context *x)
{
	struct job_list *v;

	while ((v = LIST_FIRST(&x->surveys))) {
		pending_free(&x->engine->table.pendings, v->pending);
		job_list_free(v);
	}
}

/* Its session was answered, or is gone. */
static void job_list_over(struct request_context *x, struct job_list *v)
{
	pending_answered(x, v->pending);
	job_list_free(v);
}

/* --- the request --- */

static bool decimal_read(struct span text, int64_t *ret_n)
{
	int64_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || i > 8)
			return false;
		n = 10 * n + (text.p[i] - '0');
	}
	*ret_n = n;
	return text.n > 0;
}

void job_list_jobs(struct request_context *x, struct session *s, size_t most)
{
	const struct request *q = &x->request;
	int64_t from = 0;
	struct job_list *v;

	if (!request_has(q, FIELD_PREFIX) || q->field[FIELD_PREFIX].text.n == 0) {
		send_invalid(x, s, ERROR_ARG, "LIST jobs needs prefix=, the name of the queue");
	} else if (request_has(q, FIELD_AFTER) && !decimal_read(q->field[FIELD_AFTER].text, &from)) {
		send_invalid(x, s, ERROR_ARG, "after= of LIST jobs is a number, as the page before has told it");
	} else {
		v = job_list_new(x, s, most);
		v->from = from;
		job_list_ask(x, v);
	}
}

/* --- jobs --- */

static bool job_send_row(struct request_context *x, struct job_list *v, struct span *text)
{
	struct session *s = v->pending->session;
	struct span id, state, lock, payload;
	size_t unsent = s->unsent;
	int64_t ms, failed;
	struct reply r;

	if (!netstring_next(text, &id) || !netstring_next(text, &state) || !netstring_next_int(text, &ms) || !netstring_next_int(text, &failed) ||
	    !netstring_next(text, &lock) || !netstring_next(text, &payload))
		return false;
	reply_begin(&r, session_long_line(x->sessions, 4 * payload.n), span_of(v->pending->tag), "*");
	reply_widen(&r, 4 * payload.n);
	reply_text(&r, "queue", v->name);
	reply_text(&r, "job", id);
	reply_text(&r, "state", state);
	reply_int(&r, span_equal(state, SPAN("due")) ? "due_ms" : span_equal(state, SPAN("dead")) ? "dead_ms" : "lease_ms", ms);
	reply_int(&r, "failed", failed);
	if (lock.n > 0)
		reply_text(&r, "name", session_may_look(x->core, s, lock) ? lock : SPAN(""));
	reply_text(&r, "payload", payload);
	row_end(x, s, &r);
	v->sent++;
	v->bytes += s->unsent - unsent;
	return true;
}

/* after: where the next page begins; less than 0: there is none. */
static void jobs_done(struct request_context *x, struct job_list *v, int64_t after)
{
	struct reply r;

	core_answers(x->core, VERB_LIST);
	reply_begin(&r, session_line(x->sessions), span_of(v->pending->tag), "OK");
	reply_int(&r, "n", (int64_t)v->sent);
	if (after >= 0)
		reply_int(&r, "after", after);
	send_line(x, v->pending->session, &r);
	job_list_over(x, v);
}

static bool jobs_have_room(const struct request_context *x, const struct job_list *v)
{
	return v->sent < v->most && !rows_are_long(x, v->bytes);
}

/* Sends the rows of this piece, if the page has room. next: where the next piece begins; less than 0: there is none. False: the answer is invalid. */
static bool job_list_send_jobs(struct request_context *x, struct job_list *v, struct span *text, int64_t *ret_next)
{
	int64_t from = v->from;

	if (!netstring_next_int(text, ret_next))
		return false;
	for (; text->n > 0 && jobs_have_room(x, v); v->from++)
		if (!job_send_row(x, v, text))
			return false;
	return text->n > 0 || *ret_next < 0 || (*ret_next == v->from && v->from > from);
}

static void jobs_go_on(struct request_context *x, struct job_list *v, bool more, int64_t next)
{
	if (more)
		jobs_done(x, v, v->from);
	else if (next >= 0 && v->sent < v->most)
		job_list_ask(x, v);
	else
		jobs_done(x, v, next);
}

static void jobs_missed(struct request_context *x, struct job_list *v, struct span why)
{
	core_answers(x->core, VERB_LIST);
	send_error(x, v->pending->session, span_of(v->pending->tag), ERROR_UNAVAILABLE, "the home of the queue cannot be used: %.*s", (int)why.n,
	           why.p ? why.p : "");
	job_list_over(x, v);
}

static void jobs_on_outcome(struct request_context *x, struct job_list *v, const struct home_question *q)
{
	struct span text = q->text;
	int64_t next;

	if (q->outcome != HOME_ANSWERED)
		jobs_missed(x, v, q->text);
	else if (q->code != 'T' || !job_list_send_jobs(x, v, &text, &next))
		jobs_missed(x, v, JOB_NONSENSE);
	else
		jobs_go_on(x, v, text.n > 0, next);
}

void job_list_on_outcome(struct request_context *x, struct home_question *q)
{
	struct job_list *v = q->about;

	v->question = NULL;
	if (!v->pending->session)
		job_list_over(x, v);
	else
		jobs_on_outcome(x, v, q);
}
