/* SPDX-License-Identifier: BSD-2-Clause */
/* See job_order.h. */
#include "daemon/core/job/job_order.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/stored_limits.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/tell.h"

#include <inttypes.h>

#define ORDER_US SEC          /* how long an order is given again, beyond the time of an answer, if it is not known whether it was carried out */
#define AGAIN_US (100 * MSEC) /* before it is given again */

struct job_order {
	enum job_asker asker;
	LIST_ENTRY(job_order) in_all;
	struct span queue, id;      /* owned */
	struct span words;          /* owned: the arguments behind the id, as they are sent */
	struct origin *origin;      /* for which they count; NULL: for none */
	struct pending *pending;
	struct home_question *question;
	struct timer timer;
	struct instant until;
	bool unsure;                /* it may have been carried out */
};

static void job_order_ask(struct request_context *x, struct job_order *o)
{
	enum verb verb = o->pending->verb;
	const char *op = verb == VERB_DEFER ? "defer" : verb == VERB_DROP ? "drop" : "revive";
	struct home_question *q = o->question = job_question(x, o->queue, o->pending->origin, op, o);

	netstring_put(&q->words, o->id);
	buf_append(&q->words, o->words.p, o->words.n);
	home_ask(x->engine, q, 0);
}

static void job_order_free(struct request_context *x, struct job_order *o)
{
	if (o->question)
		o->question->about = NULL;
	heap_cancel(&x->core->timers, &o->timer);
	LIST_REMOVE(o, in_all);
	origin_order_over(o->origin, o->words.n);
	job_text_free(&o->queue);
	job_text_free(&o->id);
	job_text_free(&o->words);
	mem_free(o);
}

void orders_free_all(struct request_context *x)
{
	struct job_order *o;

	while ((o = LIST_FIRST(&x->all_orders))) {
		pending_free(&x->engine->table.pendings, o->pending);
		job_order_free(x, o);
	}
}

struct instant job_order_until(const struct request_context *x)
{
	return instant_add(x->core->now, ORDER_US + x->core->conf.timeout_us);
}

void job_order_new(struct request_context *x, struct session *s, struct span queue, struct span id, struct buf *words)
{
	struct job_order *o = mem_alloc(sizeof(*o));

	o->asker = ASKER_ORDER;
	o->queue = job_text_keep(queue);
	o->id = job_text_keep(id);
	o->words = job_text_keep((struct span){buf_begin(words), buf_length(words)});
	o->timer.kind = TIMER_ORDER;
	o->until = job_order_until(x);
	o->pending = pending_of_request(x, s, NULL);
	o->pending->bytes = o->words.n;
	o->origin = o->words.n > 0 ? s->origin : NULL; /* only what counts for an origin keeps it */
	origin_order(o->origin, o->words.n);
	LIST_INSERT_HEAD(&x->all_orders, o, in_all);
	job_order_ask(x, o);
}

static void reply_order(struct request_context *x, const struct job_order *o, struct span told)
{
	int64_t due_ms = 0;
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(o->pending->tag), "OK");
	reply_text(&r, "queue", o->queue);
	reply_text(&r, "job", o->id);
	if (o->pending->verb == VERB_DEFER && netstring_next_int(&told, &due_ms))
		reply_int(&r, "due_ms", due_ms);
	tell_line(x, o->pending->session, &r);
}

static bool job_order_is_done(const struct home_question *q)
{
	return q->outcome == HOME_ANSWERED && (q->code == 'D' || q->code == 'R');
}

/* Of a RETRY or DROP. That there is no such job says nothing behind a try whose outcome is not known: that may have made it due, or removed it. */
static bool job_order_may_be_done(const struct job_order *o, const struct home_question *q)
{
	return o->pending->verb != VERB_DEFER && o->unsure && (q->outcome != HOME_ANSWERED || q->code == 'M');
}

static void job_order_answer(struct request_context *x, const struct job_order *o, const struct home_question *q)
{
	struct session *s = o->pending->session;
	bool late = q->outcome == HOME_ANSWERED && q->code == 'L';
	struct span tag = span_of(o->pending->tag), text = late ? SPAN("it was reached too late") : q->text;
	struct span word;
	int64_t count = 0;

	core_answers(x->core, o->pending->verb);
	if (job_order_may_be_done(o, q)) {
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "the home of the queue did not answer a try of this request: the job may be %s, LIST jobs shows it",
		           o->pending->verb == VERB_DROP ? "gone" : "due again");
	} else if ((late || q->outcome != HOME_ANSWERED) && o->unsure) {
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "id=%.*s may be stored: repeat the request with this id. The home of the queue %s: %.*s",
		           (int)o->id.n, o->id.p, q->said ? "refuses" : "did not answer", (int)text.n, text.p);
	} else if (late || q->outcome != HOME_ANSWERED) {
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "the home of the queue cannot be used: %.*s", (int)text.n, text.p);
	} else if (q->code == 'F') {
		(void)netstring_next_int(&text, &count);
		tell_error(x, s, tag, ERROR_LIMIT, "the queue has %" PRId64 " jobs, and may have at most %" PRIu64 " (limits.jobs)", count,
		           x->core->conf.limits.jobs);
	} else if (q->code == 'B') {
		tell_stored_full(x, s, tag, netstring_next(&text, &word) ? word : SPAN(""));
	} else if (q->code == 'M') {
		tell_error(x, s, tag, ERROR_NOTFOUND, o->pending->verb == VERB_DROP ? "that queue has no job of that id"
		           : "this session does not have the job, and that queue has none of that id that is due or has failed for good");
	} else if (q->code == 'H') {
		tell_error(x, s, tag, ERROR_NOTHELD, "a session has taken the job: there DONE ends it, and nobody else can");
	} else if (!job_order_is_done(q)) {
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "the answer of the home of the queue makes no sense: it may have carried out the request");
	} else {
		reply_order(x, o, text);
		metric_add(&x->core->metrics, METRIC_JOBS_DEFERRED, o->pending->verb == VERB_DEFER);
	}
}

static void job_order_conclude(struct request_context *x, struct job_order *o, const struct home_question *q)
{
	struct pending *p = o->pending;
	struct session *s = p->session;
	bool done = job_order_is_done(q) || job_order_may_be_done(o, q);

	if (s) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		job_order_answer(x, o, q);
		session_answered(x->sessions, s, p->tag[0] != '\0');
	}
	pending_free(&x->engine->table.pendings, p);
	if (done)
		job_queue_note(x, o->queue);
	job_order_free(x, o);
}

void job_order_told(struct request_context *x, struct home_question *q)
{
	struct job_order *o = q->about;

	o->question = NULL;
	o->unsure |= q->outcome == HOME_UNKNOWN;
	if (q->outcome == HOME_ANSWERED || q->said || !o->unsure || !o->pending->session || !instant_before(x->core->now, o->until))
		job_order_conclude(x, o, q);
	else
		heap_set(&x->core->timers, &o->timer, instant_add(x->core->now, AGAIN_US));
}

void job_order_fired(struct request_context *x, struct timer *t)
{
	job_order_ask(x, container_of(t, struct job_order, timer));
}
