/* SPDX-License-Identifier: BSD-2-Clause */
/* See take.h. */
#include "daemon/core/job/take.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/job/job.h"
#include "daemon/core/job/take_places.h"
#include "daemon/core/reply/rows.h"
#include "daemon/core/reply/slow_log.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/rules.h"


/* --- queues --- */

struct job_queue *queue_new(struct request_context *x, struct span name)
{
	struct job_queue *queue = mem_alloc(sizeof(*queue));

	queue->asker = ASKER_QUEUE;
	queue->name = job_text_keep(name);
	queue->timer.kind = TIMER_QUEUE;
	TAILQ_INIT(&queue->waiting);
	TAILQ_INIT(&queue->ending);
	LIST_INSERT_HEAD(&x->queues, queue, in_all);
	x->queues_n++;
	return queue;
}

static void queue_free(struct request_context *x, struct job_queue *queue)
{
	if (queue->question)
		queue->question->about = NULL;
	heap_cancel(&x->core->timers, &queue->timer);
	LIST_REMOVE(queue, in_all);
	x->queues_n--;
	job_queue_count_for(queue, NULL);
	for (unsigned i = 0; i < BUSY_LOCKS; i++)
		job_text_free(&queue->busy[i]);
	job_text_free(&queue->after_id);
	job_text_free(&queue->name);
	mem_free(queue);
}

/* Nobody waits here any more. A question under way is waited for: what it brings is given back. */
void queue_close_if_unused(struct request_context *x, struct job_queue *queue)
{
	static enum job_asker closed = ASKER_CLOSED_QUEUE;
	struct home_question *q;

	if (!TAILQ_EMPTY(&queue->waiting) || queue->asking > 0 || queue->question)
		return;
	if (queue->told) {
		q = job_question(x, queue->name, queue->origin, "leave", &closed);
		netstring_put(&q->words, span_of(x->core->daemon_id));
		home_ask(x->engine, q, 0);
	}
	queue_free(x, queue);
}

/* --- the end of a TAKE --- */

/* Takes it out of its queue and its session. */
static void take_free(struct request_context *x, struct take *take)
{
	struct job_queue *queue = take->queue;

	heap_cancel(&x->core->timers, &take->timer);
	queue->takes--;
	if (take->job)
		queue->asking--;
	else
		take_leave_line(x, take);
	if (!TAILQ_EMPTY(&queue->waiting))
		job_queue_count_for(queue, TAILQ_FIRST(&queue->waiting)->session->origin);
	LIST_REMOVE(take, in_session);
	take->session->waiting--;
	take_share_leave(take);
	origin_thin(take->origin, 1);
	job_text_free(&take->payload);
	mem_free(take);
}

static void take_answered(struct request_context *x, struct take *take)
{
	struct job_queue *queue = take->queue;
	struct session *s = take->session;
	bool tagged = take->tag[0] != '\0';

	take_free(x, take);
	session_answered(x->sessions, s, tagged);
	queue_close_if_unused(x, queue);
}

static void reply_nothing(struct request_context *x, const struct take *take, const char *word, int64_t retry_ms)
{
	struct reply r;

	core_answers(x->core, VERB_TAKE);
	reply_begin(&r, session_line(x->sessions), span_of(take->tag), word);
	reply_text(&r, "queue", take->queue->name);
	if (take->patient)
		reply_ms(&r, "waited_ms", instant_diff(x->core->now, take->asked_at));
	else if (retry_ms >= 0)
		reply_int(&r, "retry_ms", retry_ms);
	tell_line(x, take->session, &r);
}

static void tell_denied(struct request_context *x, const struct take *take)
{
	static const char text[] = "what is due in this queue needs the right 'lock' for its lock as well, which";
	struct span tag = span_of(take->tag);

	metric_add(&x->core->metrics, METRIC_DENIED, 1);
	core_answers(x->core, VERB_TAKE);
	if (take->denied_by > 0)
		tell_error(x, take->session, tag, ERROR_DENIED, "%s the rule in line %u does not give", text, take->denied_by);
	else
		tell_error(x, take->session, tag, ERROR_DENIED, "%s no rule gives to this peer", text);
}

static void tell_trouble(struct request_context *x, const struct take *take)
{
	core_answers(x->core, VERB_TAKE);
	tell_error(x, take->session, span_of(take->tag), ERROR_UNAVAILABLE, "the home of the queue cannot be used: %s", take->queue->why);
}

static void tell_wrong_type(struct request_context *x, const struct take *take)
{
	core_answers(x->core, VERB_TAKE);
	tell_error(x, take->session, span_of(take->tag), ERROR_KIND,
	           "what is due in this queue needs a lock under whose name the stores have a key of another type: remove that key, or DROP the job");
}

/* Nothing is due, as far as is known: in so many ms something may be; -1: not known. */
void take_is_over(struct request_context *x, struct take *take, int64_t retry_ms)
{
	if (take->queue->trouble)
		tell_trouble(x, take);
	else if (take->denied_in == take->queue->pass)
		tell_denied(x, take);
	else if (take->wrong_type_in == take->queue->pass)
		tell_wrong_type(x, take);
	else
		reply_nothing(x, take, take->patient ? "TIMEOUT" : "BUSY", retry_ms);
	take_answered(x, take);
}

bool take_is_behind(struct request_context *x, struct take *take)
{
	if (!rows_are_long(x, take->session->unsent))
		return false;
	session_await(x->sessions, take->session);
	return true;
}

/* One that is behind gets it only if nobody else waits: it was not so when the home was asked. */
struct take *take_for(struct request_context *x, struct job_queue *queue, const struct job *job)
{
	struct take *take, *found = NULL;

	if (x->engine->draining)
		return NULL;
	TAILQ_FOREACH(take, &queue->waiting, in_queue) {
		if (job->lock.n > 0 && !session_may_lock(x->core, take->session, job->lock, &take->denied_by)) {
			take->denied_in = queue->pass;
			continue;
		}
		if (!take_is_behind(x, take)) {
			found = take;
			break;
		}
		found = found ? found : take;
	}
	return found && found->ttl_us == queue->ttl_us ? found : NULL;
}

bool take_may_have(const struct request_context *x, const struct job_queue *queue, const struct job *job)
{
	const struct take *take;
	unsigned line;

	TAILQ_FOREACH(take, &queue->waiting, in_queue)
		if (session_may_lock(x->core, take->session, job->lock, &line))
			return true;
	return false;
}

/* The job goes back to its place. */
void take_give_back(struct request_context *x, struct take *take, bool wakes)
{
	struct job *job = take->job;

	take->job = NULL;
	take->group = NULL;
	job_text_free(&take->payload);
	take->queue->asking--;
	take_join_line(x, take, TAILQ_FIRST(&take->queue->waiting));
	job->wakes = wakes;
	job_end(x, job, JOB_BACK, NULL);
}

static void take_withdraw(struct request_context *x, struct take *take)
{
	struct group *g = take->group;

	if (take->job)
		take_give_back(x, take, true);
	if (g)
		group_free(x, g);
}

void take_refuse(struct request_context *x, struct take *take, enum error code, const char *text)
{
	take_withdraw(x, take);
	core_answers(x->core, VERB_TAKE);
	tell_error(x, take->session, span_of(take->tag), code, "%s", text);
	take_answered(x, take);
}

/* --- a job --- */

/* A vote that is over at once, or nearly so, is of no use to anybody. */
bool job_is_worth_it(const struct request_context *x, const struct job *job)
{
	return instant_before(instant_add(x->core->now, job->ttl_us / 10), job_tell_at(job));
}

bool take_may_win(const struct request_context *x, const struct take *take)
{
	return job_is_worth_it(x, take->job);
}

/* The client relies on the job and its lock. */
static int64_t taken_valid_us(const struct request_context *x, const struct job *job, const struct claim *claim)
{
	int64_t job_us = job_valid_us(job, x->core->now), lock_us = claim ? lock_valid_us(&x->engine->table, claim->lock) : job_us;

	return job_us < lock_us ? job_us : lock_us;
}

void reply_taken(struct request_context *x, struct session *s, struct span tag, struct job *job, const struct claim *claim, struct span payload)
{
	struct reply r;

	job->here = true;
	core_answers(x->core, VERB_TAKE);
	reply_begin(&r, session_long_line(x->sessions, 4 * payload.n), tag, "OK");
	reply_widen(&r, 4 * payload.n);
	reply_text(&r, "queue", job->queue);
	reply_text(&r, "job", job->id);
	reply_int(&r, "attempt", job->attempt);
	reply_ms(&r, "valid_ms", taken_valid_us(x, job, claim));
	reply_ms(&r, "ttl_ms", job->ttl_us);
	if (claim) {
		reply_text(&r, "name", job->lock);
		reply_int(&r, "fence", claim->token);
	}
	reply_text(&r, "payload", payload);
	tell_line(x, s, &r);
}

void take_won(struct request_context *x, struct take *take, const struct claim *claim)
{
	job_hold(x, take->job, take->session, take->job->renew_at);
	reply_taken(x, take->session, span_of(take->tag), take->job, claim, take->payload);
	if (x->attends)
		slow_wait_of_take(x, take->session, take->job->queue, instant_max(take->asked_at, take->due_at));
	take_answered(x, take);
}

/* --- sessions --- */

struct take *take_waiting(const struct session *s, struct span tag)
{
	struct take *take;

	LIST_FOREACH(take, &s->takes, in_session)
		if (span_equal(span_of(take->tag), tag))
			return take;
	return NULL;
}

void take_cancel(struct request_context *x, struct take *take)
{
	take_refuse(x, take, ERROR_CANCELLED, "the request was withdrawn");
}

void takes_finish_up(struct request_context *x, struct session *s)
{
	struct take *take, *next;

	for (take = LIST_FIRST(&s->takes); take; take = next) {
		next = LIST_NEXT(take, in_session);
		if (!take->patient)
			continue;
		heap_cancel(&x->core->timers, &take->timer);
		take_wait_no_more(x, take);
		if (!take->job && !take->queue->question)
			take_cancel(x, take);
	}
}

bool takes_wait(const struct session *s, bool patient)
{
	const struct take *take;

	LIST_FOREACH(take, &s->takes, in_session)
		if (take->patient == patient)
			return true;
	return false;
}

static void takes_withdraw(struct request_context *x, struct session *s)
{
	struct take *take;

	while ((take = LIST_FIRST(&s->takes))) {
		struct job_queue *queue = take->queue;

		take_withdraw(x, take);
		take_free(x, take);
		queue_close_if_unused(x, queue);
	}
}

void takes_end(struct request_context *x, struct session *s)
{
	takes_withdraw(x, s);
	take_places_drop(s);
}

void takes_detach(struct request_context *x, struct session *s)
{
	const struct take *take;

	take_places_lapse(x, s);
	LIST_FOREACH(take, &s->takes, in_session)
		if (take->patient)
			take_places_keep(x, take);
	takes_withdraw(x, s);
}

bool takes_refuse(struct request_context *x, struct session *s, int64_t *left)
{
	for (; !LIST_EMPTY(&s->takes) && *left > 0; (*left)--)
		take_refuse(x, LIST_FIRST(&s->takes), ERROR_DRAINING, draining_text(x));
	return LIST_EMPTY(&s->takes);
}

/* Whether the rules deny it. Sets take->denied_by if it is the lock of its job that they deny. */
static bool take_is_denied(const struct request_context *x, struct session *s, struct take *take, bool *ret_queue)
{
	unsigned line;

	*ret_queue = !session_may_lock(x->core, s, take->queue->name, &line);
	return *ret_queue || (take->job && take->job->lock.n > 0 && !session_may_lock(x->core, s, take->job->lock, &take->denied_by));
}

bool takes_revoke(struct request_context *x, struct session *s, int64_t *left)
{
	struct take *take, *next;
	bool queue;

	for (take = LIST_FIRST(&s->takes); take; take = next) {
		next = LIST_NEXT(take, in_session);
		if (!take_is_denied(x, s, take, &queue))
			continue;
		if ((*left)-- <= 0)
			return false;
		take_withdraw(x, take);
		if (queue) {
			core_answers(x->core, VERB_TAKE);
			tell_revoked(x, s, span_of(take->tag));
		} else {
			tell_denied(x, take);
		}
		take_answered(x, take);
	}
	return true;
}

void takes_free_all(struct request_context *x)
{
	struct job_queue *queue;
	struct take *take;
	struct session *s;

	for (uint32_t i = 0; i < x->sessions->slots; i++) {
		s = x->sessions->slot[i];
		while (s && (take = LIST_FIRST(&s->takes)))
			take_free(x, take);
		if (s)
			take_places_drop(s);
	}
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		take_places_drop(s);
	while ((queue = LIST_FIRST(&x->queues)))
		queue_free(x, queue);
}
