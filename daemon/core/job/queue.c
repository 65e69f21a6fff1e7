/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the home of a queue: for jobs, for the TAKEs that wait here, and with orders (DEFER, RETRY of a failed job). */
#include "daemon/core/job/job.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/group.h"

#include <inttypes.h>

#define LOOK_US    SEC       /* asks again after this: a message may have been lost, and refused locks may be free */
#define TROUBLE_US (250 * MSEC) /* pause before a home is asked again that could not be asked */
#define LIFE_MS    3000      /* how long the home remembers that this daemon waits */
#define PASS_MOST  64        /* jobs that one pass may give back */
#define WOKEN_US   (250 * MSEC) /* after a pass that gave back jobs, the next message begins another one only after this */

static void queue_pass_begin(struct job_queue *queue)
{
	queue->again = queue->woken = false;
	queue->pass++;
	if (queue->refused < PASS_MOST || queue->whole) {
		mem_span_free(&queue->after_id);
		queue->after_ms = 0;
	} /* otherwise it continues where the last one stopped */
	queue->refused = 0;
	queue->whole = false;
	for (unsigned i = 0; i < BUSY_LOCKS; i++)
		mem_span_free(&queue->busy[i]);
}

/* Until when the answer is useful, by the clock of the home; 0: that clock is not known. */
static int64_t take_not_after_ms(struct request_context *x, const struct job_queue *queue)
{
	const struct member *m = &x->engine->members.node[rendezvous_node(x->core, HOME_OF_QUEUE, queue->name, 0)];

	return member_server_ms(m, instant_add(x->core->now, core_soon_us(x->core) + x->core->conf.timeout_us));
}

/* NULL: for all of them take_is_behind() is true. */
static const struct take *queue_first(struct request_context *x, const struct job_queue *queue)
{
	struct take *take;

	TAILQ_FOREACH(take, &queue->waiting, in_queue)
		if (!take_is_behind(x, take))
			return take;
	return NULL;
}

static void queue_ask(struct request_context *x, struct job_queue *queue, const struct take *first)
{
	unsigned patient = queue->patient;
	struct home_question *q = queue->question = job_question(x, queue->name, first->bid.origin, "take", queue);

	lock_value_make(&x->engine->table, members_one_clock_us(&x->engine->members, x->core->now), &queue->value);
	queue->ttl_us = first->bid.ttl_us;
	queue->waits_on = patient > (first->bid.patient ? 1 : 0);
	q->joined = true;
	netstring_put(&q->words, value_in_text(x->core, &queue->value));
	netstring_put_int(&q->words, whole_ms(queue->ttl_us));
	netstring_put_int(&q->words, (int64_t)x->core->conf.limits.attempts);
	netstring_put_int(&q->words, take_not_after_ms(x, queue));
	netstring_put(&q->words, span_of(x->core->daemon_id));
	netstring_put_int(&q->words, patient > 0 ? LIFE_MS : 0);
	netstring_put_int(&q->words, queue->waits_on);
	netstring_put_int(&q->words, queue->after_ms);
	netstring_put(&q->words, queue->after_id);
	netstring_put_int(&q->words, whole_ms(x->core->conf.jobs_keep_us));
	for (unsigned i = 0; i < BUSY_LOCKS && queue->busy[i].n > 0; i++)
		netstring_put(&q->words, queue->busy[i]);
	queue->home_knows |= patient > 0;
	home_ask(x->engine, q, 0);
}

/* Asks for the first TAKE, unless a question is under way. */
static void queue_go_on(struct request_context *x, struct job_queue *queue)
{
	const struct take *first;

	if (queue->question)
		return;
	if (TAILQ_EMPTY(&queue->waiting)) {
		queue_close_if_unused(x, queue);
		return;
	}
	first = queue_first(x, queue);
	if (!first)
		return;
	heap_cancel(&x->core->timers, &queue->timer);
	if (!x->engine->draining) /* else the waiting TAKEs will be refused */
		queue_ask(x, queue, first);
}

void queue_look(struct request_context *x, struct job_queue *queue)
{
	queue->again = true;
	if (queue->question)
		return;
	queue_pass_begin(queue);
	queue_go_on(x, queue);
}

/* Nothing more is due that the TAKEs here may take. Answers those that do not wait. */
static void queue_pass_over(struct request_context *x, struct job_queue *queue, int64_t next_ms)
{
	struct take *take, *next;

	queue->asking++; /* so that it is not closed meanwhile */
	for (take = TAILQ_FIRST(&queue->ending); take; take = next) {
		next = TAILQ_NEXT(take, in_ending);
		if (take->bid.patient || !take->late)
			take_is_over(x, take, next_ms);
		else
			take->late = false;
	}
	queue->asking--;
	if (TAILQ_EMPTY(&queue->waiting) && queue->refused >= PASS_MOST && !queue->whole) {
		/* If a client asks again soon, the pass continues after the jobs that were given back. */
		heap_set(&x->core->timers, &queue->timer, instant_add(x->core->now, LOOK_US));
	} else if (TAILQ_EMPTY(&queue->waiting)) {
		queue_close_if_unused(x, queue);
	} else if ((queue->again || (queue->woken && queue->refused == 0)) && !queue->trouble) {
		queue_look(x, queue);
	} else {
		int64_t us = queue->trouble ? TROUBLE_US : next_ms >= 0 && next_ms * MSEC < LOOK_US ? next_ms * MSEC + MSEC : LOOK_US;

		heap_set(&x->core->timers, &queue->timer, instant_add(x->core->now, queue->woken && us > WOKEN_US ? WOKEN_US : us));
	}
}

static void queue_note_busy(struct job_queue *queue, const struct job *job, int64_t due_ms)
{
	unsigned i = queue->refused % BUSY_LOCKS;

	mem_span_set(&queue->busy[i], job->lock);
	if (++queue->refused >= BUSY_LOCKS && due_ms >= queue->after_ms) {
		/* More locks are busy than a question can name: leaves out the jobs before this one. */
		queue->after_ms = due_ms;
		mem_span_set(&queue->after_id, job->id);
	}
}

/* --- a job --- */

/* Asks for the lock of the job, for this session and by the owner of this job. */
static void take_ask_lock(struct request_context *x, struct take *take)
{
	char owner[JOB_OWNER_MAX];

	take->group = group_new_of_take(x, take->bid.session, take, take->job->lock, job_owner(take->job, owner), take->bid.ttl_us);
}

static struct instant due_by_our_clock(const struct member_clock *home, int64_t due_ms)
{
	if (!home->known || due_ms < 0 || due_ms > INT64_MAX / 2 / MSEC) /* as large as this, due_ms is no time */
		return INSTANT_PAST;
	return (struct instant){due_ms * MSEC - home->low - (home->high - home->low) / 2};
}

static void take_give(struct request_context *x, struct take *take, struct job *job, struct span payload, int64_t due_ms)
{
	struct job_queue *queue = take->queue;

	take_leave_line(x, take);
	queue->asking++;
	take->job = job;
	take->payload = mem_span(payload);
	take->due_ms = due_ms;
	if (job->lock.n > 0)
		take_ask_lock(x, take);
	else
		take_won(x, take, NULL);
}

/*
 * Nobody got the job. If the first TAKE may not have its lock, it moves to the end. The home is asked for the next TAKE, which may want another lease. A job
 * that none of them may have is left out.
 */
static bool queue_is_denied(struct request_context *x, struct job_queue *queue, const struct job *job, int64_t due_ms)
{
	struct take *first = TAILQ_FIRST(&queue->waiting);
	bool over = first && first->ends;

	if (!first || first->denied_in != queue->pass || job->lock.n == 0)
		return false;
	take_leave_line(x, first);
	take_join_line(x, first, NULL);
	if (over)
		take_end_with_pass(first);
	if (!take_may_have(x, queue, job))
		queue_note_busy(queue, job, due_ms);
	return true;
}

/* Some TAKE that waits may have the job, but wants another lease. The home is asked for that next, so no other daemon has to look. */
static bool queue_asks_anew(const struct request_context *x, const struct job_queue *queue, const struct job *job)
{
	return job->lock.n == 0 ? !TAILQ_EMPTY(&queue->waiting) : take_may_have(x, queue, job);
}

static void queue_has_trouble(struct job_queue *queue, struct span why)
{
	queue->trouble = true;
	core_keep(queue->why, sizeof(queue->why), why);
}

static void queue_answer_is_invalid(struct job_queue *queue)
{
	queue_has_trouble(queue, SPAN("its answer makes no sense"));
}

/* The home has leased a job to this daemon. If its answer takes longer than the lease, it is not asked again at once: that would never end. */
static void queue_got(struct request_context *x, struct job_queue *queue, const struct home_question *q)
{
	bool joined = x->engine->members.node[q->node].state == MEMBER_JOINED;
	struct span text = q->text;
	struct take *take = NULL;
	struct job_leased leased;
	struct job *job;
	bool worth;

	if (!job_read(&text, &leased)) {
		queue_answer_is_invalid(queue);
		return;
	}
	jobs_note_failed(x, queue->name, text);
	job = job_new(x, queue->name, leased.id, leased.lock);
	job->attempt = leased.attempt;
	job->value = queue->value;
	job->ttl_us = queue->ttl_us;
	job->renew_at = q->calls.sent[q->node]; /* when the question was sent; until job_hold() */
	job->until = vote_until(job->renew_at, job->ttl_us);
	worth = job_is_worth_it(x, job);
	if (joined && worth)
		take = take_for(x, queue, job);
	if (take) {
		take->due_at = due_by_our_clock(&x->engine->members.node[q->node].clock, leased.due_ms);
		take_give(x, take, job, leased.payload, leased.due_ms);
		return;
	}
	if (!worth)
		queue_has_trouble(queue, SPAN("its answer came when the lease of the job was nearly over"));
	job->wakes = worth && !queue_is_denied(x, queue, job, leased.due_ms) && !(joined && queue_asks_anew(x, queue, job));
	job_end(x, job, JOB_BACK, NULL);
}

/* The home may have leased a job, or not. If so, gives it back. */
static void queue_got_unknown(struct request_context *x, struct job_queue *queue)
{
	struct job *job = job_new(x, queue->name, SPAN(""), SPAN(""));

	job->value = queue->value;
	job->ttl_us = queue->ttl_us;
	job->until = instant_add(x->core->now, queue->ttl_us);
	job->wakes = true;
	job_end(x, job, JOB_BACK, NULL);
}

void queue_on_outcome(struct request_context *x, struct home_question *q)
{
	struct job_queue *queue = q->about;
	struct span text = q->text, id;
	int64_t ms = -1;

	queue->question = NULL;
	queue->trouble = false;
	if (q->outcome != HOME_ANSWERED) {
		queue_has_trouble(queue, q->text);
		if (q->outcome == HOME_UNKNOWN)
			queue_got_unknown(x, queue);
		queue_pass_over(x, queue, -1);
		return;
	}
	switch (q->code) {
	case 'J':
		queue->home_knows &= queue->waits_on;
		queue->asking++; /* so that it is not closed meanwhile */
		queue_got(x, queue, q);
		queue->asking--;
		if (queue->refused >= PASS_MOST || queue->trouble) {
			queue_pass_over(x, queue, -1);
			return;
		}
		break;
	case 'C':
		if (netstring_next_int(&text, &ms) && netstring_next(&text, &id)) {
			queue->after_ms = ms;
			mem_span_set(&queue->after_id, id);
		}
		jobs_note_failed(x, queue->name, text);
		break;
	case 'W':
		(void)netstring_next_int(&text, &ms);
		jobs_note_failed(x, queue->name, text);
		queue->whole = true; /* locks that are still being asked for may be refused, and would be busy as well */
		queue_pass_over(x, queue, ms);
		return;
	case 'L': /* the question came too late */
		break;
	default:
		queue_answer_is_invalid(queue);
		queue_pass_over(x, queue, -1);
		return;
	}
	queue_go_on(x, queue);
}

/* --- the lock of a job was refused --- */

static const char *refusal_text(const struct request_context *x, enum refusal why)
{
	switch (why) {
	case REFUSED_QUORUM:
	case REFUSED_NOT_ADMITTED:
		return "too few stores can be asked for the lock of the job";
	case REFUSED_DRAINING:
		return draining_text(x);
	default:
		return "the request was withdrawn";
	}
}

void take_refused(struct request_context *x, struct take *take, enum refusal why)
{
	struct job_queue *queue = take->queue;
	bool trouble = why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED;

	if (why == REFUSED_KIND)
		take->wrong_type_in = queue->pass;
	queue_note_busy(queue, take->job, take->due_ms);
	take_give_back(x, take, why == REFUSED_DRAINING || why == REFUSED_CANCELLED);
	if (why == REFUSED_DRAINING || why == REFUSED_CANCELLED || (trouble && !take->bid.patient)) {
		take_refuse(x, take, trouble ? ERROR_QUORUM : why == REFUSED_DRAINING ? ERROR_DRAINING : ERROR_CANCELLED, refusal_text(x, why));
	} else if (!instant_before(x->core->now, take->bid.wait_until) && take->bid.patient) {
		take_is_over(x, take, -1);
	} else if (queue->refused >= PASS_MOST || trouble) {
		if (!queue->question)
			queue_pass_over(x, queue, -1);
	} else {
		queue_go_on(x, queue);
	}
}

/*
 * Each TAKE that leaves jobs behind wakes another daemon. If others hold the locks of these jobs, each daemon gives back what it gets, and they would wake one
 * another forever. So there is a pause.
 */
void takes_wake(struct request_context *x, struct span name)
{
	struct job_queue *queue = job_queue_find(x, name);
	struct instant at = instant_add(x->core->now, WOKEN_US);

	if (!queue)
		return;
	queue->woken = true;
	if (queue->question)
		return; /* see queue_pass_over() */
	if (queue->refused == 0)
		queue_look(x, queue);
	else if (!timer_is_set(&queue->timer) || instant_before(at, queue->timer.at))
		heap_set(&x->core->timers, &queue->timer, at);
}

void takes_look(struct request_context *x)
{
	struct job_queue *queue, *next;

	x->queue_due = false;
	for (queue = LIST_FIRST(&x->queues); queue; queue = next) {
		next = LIST_NEXT(queue, in_all);
		if (queue->again && !queue->question)
			queue_look(x, queue);
	}
}

void takes_sent(struct request_context *x, const struct session *s)
{
	const struct take *take;

	for (take = take_first(s); take; take = take_next(take))
		if (!take->job && !take->queue->question)
			queue_look(x, take->queue);
}

/* If the lock of a job, or the home, is being asked, that decides. */
void take_fired(struct request_context *x, struct take *take)
{
	if (take->job)
		return;
	if (take->queue->question && take == TAILQ_FIRST(&take->queue->waiting))
		take_end_with_pass(take);
	else
		take_is_over(x, take, -1);
}

#define ORDER_US SEC          /* if the outcome is unknown, an order is sent again for this long, beyond the time for an answer */
#define AGAIN_US (100 * MSEC) /* pause before it is sent again */

struct job_order {
	enum job_asker asker;
	LIST_ENTRY(job_order) in_all;
	struct span queue, id;      /* owned */
	struct span words;          /* owned: the arguments after the id, as they are sent */
	struct origin *origin;      /* the peer for which `words` count; NULL: none */
	struct pending *pending;
	struct home_question *question;
	struct timer timer;
	struct instant until;
	bool unsure;                /* it may have been executed */
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
	mem_span_free(&o->queue);
	mem_span_free(&o->id);
	mem_span_free(&o->words);
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
	o->queue = mem_span(queue);
	o->id = mem_span(id);
	o->words = mem_span((struct span){buf_begin(words), buf_length(words)});
	o->timer.kind = TIMER_ORDER;
	o->until = job_order_until(x);
	o->pending = pending_of_request(x, s, NULL);
	o->pending->bytes = o->words.n;
	o->origin = o->words.n > 0 ? s->origin : NULL; /* an order keeps its origin only if it counts there */
	origin_order(o->origin, o->words.n);
	LIST_INSERT_HEAD(&x->all_orders, o, in_all);
	job_order_ask(x, o);
}

static void reply_order(struct request_context *x, const struct job_order *o, struct span found)
{
	int64_t due_ms = 0;
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(o->pending->tag), "OK");
	reply_text(&r, "queue", o->queue);
	reply_text(&r, "job", o->id);
	if (o->pending->verb == VERB_DEFER && netstring_next_int(&found, &due_ms))
		reply_int(&r, "due_ms", due_ms);
	send_line(x, o->pending->session, &r);
}

static bool job_order_is_done(const struct home_question *q)
{
	return q->outcome == HOME_ANSWERED && (q->code == 'D' || q->code == 'R');
}

/* For RETRY and DROP. If the outcome of an earlier try is unknown, "no such job" proves nothing: that try may have made it due, or removed it. */
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
		send_error(x, s, tag, ERROR_UNAVAILABLE, "the home of the queue did not answer a try of this request: the job may be %s, LIST jobs shows it",
		           o->pending->verb == VERB_DROP ? "gone" : "due again");
	} else if ((late || q->outcome != HOME_ANSWERED) && o->unsure) {
		send_error(x, s, tag, ERROR_UNAVAILABLE, "id=%.*s may be stored: repeat the request with this id. The home of the queue %s: %.*s",
		           (int)o->id.n, o->id.p, q->from_store ? "refuses" : "did not answer", (int)text.n, text.p);
	} else if (late || q->outcome != HOME_ANSWERED) {
		send_error(x, s, tag, ERROR_UNAVAILABLE, "the home of the queue cannot be used: %.*s", (int)text.n, text.p);
	} else if (q->code == 'F') {
		(void)netstring_next_int(&text, &count);
		send_error(x, s, tag, ERROR_LIMIT, "the queue has %" PRId64 " jobs, and may have at most %" PRIu64 " (limits.jobs)", count,
		           x->core->conf.limits.jobs);
	} else if (q->code == 'B') {
		stored_send_full(x, s, tag, netstring_next(&text, &word) ? word : SPAN(""));
	} else if (q->code == 'M') {
		send_error(x, s, tag, ERROR_NOTFOUND, o->pending->verb == VERB_DROP ? "that queue has no job of that id"
		           : "this session does not have the job, and that queue has none of that id that is due or has failed for good");
	} else if (q->code == 'H') {
		send_error(x, s, tag, ERROR_NOTHELD, "a session has taken the job: there DONE ends it, and nobody else can");
	} else if (!job_order_is_done(q)) {
		send_error(x, s, tag, ERROR_UNAVAILABLE, "the answer of the home of the queue makes no sense: it may have carried out the request");
	} else {
		reply_order(x, o, text);
		metric_add(&x->core->metrics, METRIC_JOBS_DEFERRED, o->pending->verb == VERB_DEFER);
	}
}

static void job_order_finish(struct request_context *x, struct job_order *o, const struct home_question *q)
{
	bool done = job_order_is_done(q) || job_order_may_be_done(o, q);

	if (o->pending->session)
		job_order_answer(x, o, q);
	pending_answered(x, o->pending);
	if (done)
		job_queue_note(x, o->queue);
	job_order_free(x, o);
}

void job_order_on_outcome(struct request_context *x, struct home_question *q)
{
	struct job_order *o = q->about;

	o->question = NULL;
	o->unsure |= q->outcome == HOME_UNKNOWN;
	if (q->outcome == HOME_ANSWERED || q->from_store || !o->unsure || !o->pending->session || !instant_before(x->core->now, o->until))
		job_order_finish(x, o, q);
	else
		heap_set(&x->core->timers, &o->timer, instant_add(x->core->now, AGAIN_US));
}

void job_order_fired(struct request_context *x, struct timer *t)
{
	job_order_ask(x, container_of(t, struct job_order, timer));
}
