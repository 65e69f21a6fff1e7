/* SPDX-License-Identifier: BSD-2-Clause */
/* A TAKE: it gets a job with its lock, or ends without; its place while its connection is gone; TAKE after RESUME. */
#include "daemon/core/job/job.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/group.h"

#define PLACES_MOST 256 /* also if limits.waiting is larger, because they are sorted one by one */

struct take_place {
	TAILQ_ENTRY(take_place) in_session; /* by number, the smallest first */
	struct span queue;             /* owned */
	uint64_t number;               /* see take.place */
};

static void place_free(struct session *s, struct take_place *p)
{
	TAILQ_REMOVE(&s->places, p, in_session);
	mem_span_free(&p->queue);
	mem_free(p);
}

static void take_places_drop(struct session *s)
{
	while (!TAILQ_EMPTY(&s->places))
		place_free(s, TAILQ_FIRST(&s->places));
}

/* Forgets the places when the time to repeat a TAKE is over. */
static void take_places_lapse(const struct request_context *x, struct session *s)
{
	if (s->resumed && !instant_before(x->core->now, s->lasting->repeat_until))
		take_places_drop(s);
}

/* The session loses its connection, and the waiting TAKE will be withdrawn. Keeps its place. */
static void take_places_keep(struct request_context *x, const struct take *take)
{
	struct session *s = take->bid.session;
	struct take_place *kept = mem_alloc(sizeof(*kept)), *p, *before = NULL;
	uint64_t n = 1;

	kept->queue = mem_span(take->queue->name);
	kept->number = take->place;
	TAILQ_FOREACH(p, &s->places, in_session) {
		if (p->number < kept->number)
			before = p;
		n++;
	}
	if (before)
		TAILQ_INSERT_AFTER(&s->places, before, kept, in_session);
	else
		TAILQ_INSERT_HEAD(&s->places, kept, in_session);
	if (n > under_way_most(x->core, PLACES_MOST)) /* these places were never asked for again */
		place_free(s, TAILQ_FIRST(&s->places));
}

/* Takes the first place that was kept for a TAKE of this queue. Returns its number; 0: there is none. */
static uint64_t place_again(struct request_context *x, struct session *s, struct span queue)
{
	struct take_place *p;

	take_places_lapse(x, s);
	TAILQ_FOREACH(p, &s->places, in_session)
		if (span_equal(p->queue, queue)) {
			uint64_t number = p->number;

			place_free(s, p);
			return number;
		}
	return 0;
}

void take_places_take_over(struct session *to, struct session *from)
{
	TAILQ_CONCAT(&to->places, &from->places, in_session);
}

void place_enqueue(struct request_context *x, struct take *take)
{
	struct take *other;

	take->place = take->bid.patient ? place_again(x, take->bid.session, take->queue->name) : 0;
	if (take->place == 0) {
		take->place = ++x->places;
		take_join_line(x, take, NULL);
		return;
	}
	TAILQ_FOREACH(other, &take->queue->waiting, in_queue)
		if (other->place > take->place)
			break;
	take_join_line(x, take, other);
}

/* --- queues --- */

void queue_close_if_unused(struct request_context *x, struct job_queue *queue)
{
	static enum job_asker closed = ASKER_CLOSED_QUEUE;
	struct home_question *q;

	if (!TAILQ_EMPTY(&queue->waiting) || queue->asking > 0 || queue->question)
		return;
	if (queue->home_knows) {
		q = job_question(x, queue->name, queue->origin, "leave", &closed);
		netstring_put(&q->words, span_of(x->core->daemon_id));
		home_ask(x->engine, q, 0);
	}
	job_queue_free(x, queue);
}

/* --- the end of a TAKE --- */

/* Removes it from its queue and its session, and frees it. */
static void take_free(struct request_context *x, struct take *take)
{
	struct job_queue *queue = take->queue;

	queue->takes--;
	if (take->job)
		queue->asking--;
	else
		take_leave_line(x, take);
	if (!TAILQ_EMPTY(&queue->waiting))
		job_queue_count_for(queue, TAILQ_FIRST(&queue->waiting)->bid.session->origin);
	take_share_leave(take);
	bid_answered(&take->bid, 1);
	bid_close(x, &take->bid);
	mem_span_free(&take->payload);
	mem_free(take);
}

static void take_answered(struct request_context *x, struct take *take)
{
	struct job_queue *queue = take->queue;
	struct session *s = take->bid.session;
	bool tagged = bid_is_tagged(&take->bid);

	take_free(x, take);
	session_answered(x->sessions, s, tagged);
	queue_close_if_unused(x, queue);
}

static void reply_nothing(struct request_context *x, const struct take *take, const char *word, int64_t retry_ms)
{
	struct reply r;

	core_answers(x->core, VERB_TAKE);
	reply_begin(&r, session_line(x->sessions), span_of(take->bid.tag), word);
	reply_text(&r, "queue", take->queue->name);
	if (take->bid.patient)
		reply_ms(&r, "waited_ms", instant_diff(x->core->now, take->bid.asked_at));
	else if (retry_ms >= 0)
		reply_int(&r, "retry_ms", retry_ms);
	send_line(x, take->bid.session, &r);
}

static void take_send_denied(struct request_context *x, const struct take *take)
{
	static const char text[] = "what is due in this queue needs the right 'lock' for its lock as well, which";
	struct span tag = span_of(take->bid.tag);

	metric_add(&x->core->metrics, METRIC_DENIED, 1);
	core_answers(x->core, VERB_TAKE);
	if (take->denied_by > 0)
		send_error(x, take->bid.session, tag, ERROR_DENIED, "%s the rule in line %u does not give", text, take->denied_by);
	else
		send_error(x, take->bid.session, tag, ERROR_DENIED, "%s no rule gives to this peer", text);
}

static void take_send_trouble(struct request_context *x, const struct take *take)
{
	core_answers(x->core, VERB_TAKE);
	send_error(x, take->bid.session, span_of(take->bid.tag), ERROR_UNAVAILABLE, "the home of the queue cannot be used: %s", take->queue->why);
}

static void take_send_wrong_type(struct request_context *x, const struct take *take)
{
	core_answers(x->core, VERB_TAKE);
	send_error(x, take->bid.session, span_of(take->bid.tag), ERROR_KIND,
	           "what is due in this queue needs a lock under whose name the stores have a key of another type: remove that key, or DROP the job");
}

void take_is_over(struct request_context *x, struct take *take, int64_t retry_ms)
{
	if (take->queue->trouble)
		take_send_trouble(x, take);
	else if (take->denied_in == take->queue->pass)
		take_send_denied(x, take);
	else if (take->wrong_type_in == take->queue->pass)
		take_send_wrong_type(x, take);
	else
		reply_nothing(x, take, take->bid.patient ? "TIMEOUT" : "BUSY", retry_ms);
	take_answered(x, take);
}

bool take_is_behind(struct request_context *x, struct take *take)
{
	if (!rows_are_long(x, take->bid.session->unsent))
		return false;
	session_await(x->sessions, take->bid.session);
	return true;
}

/* A TAKE of which take_is_behind() is true gets it only if nobody else waits. It was not so when the home was asked. */
struct take *take_for(struct request_context *x, struct job_queue *queue, const struct job *job)
{
	struct take *take, *found = NULL;

	if (x->engine->draining)
		return NULL;
	TAILQ_FOREACH(take, &queue->waiting, in_queue) {
		if (job->lock.n > 0 && !session_may_lock(x->core, take->bid.session, job->lock, &take->denied_by)) {
			take->denied_in = queue->pass;
			continue;
		}
		if (!take_is_behind(x, take)) {
			found = take;
			break;
		}
		found = found ? found : take;
	}
	return found && found->bid.ttl_us == queue->ttl_us ? found : NULL;
}

bool take_may_have(const struct request_context *x, const struct job_queue *queue, const struct job *job)
{
	const struct take *take;
	unsigned line;

	TAILQ_FOREACH(take, &queue->waiting, in_queue)
		if (session_may_lock(x->core, take->bid.session, job->lock, &line))
			return true;
	return false;
}

void take_give_back(struct request_context *x, struct take *take, bool wakes)
{
	struct job *job = take->job;

	take->job = NULL;
	take->group = NULL;
	mem_span_free(&take->payload);
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
	send_error(x, take->bid.session, span_of(take->bid.tag), code, "%s", text);
	take_answered(x, take);
}

/* --- a job --- */

/* A vote that is over already, or very soon, is useless. */
bool job_is_worth_it(const struct request_context *x, const struct job *job)
{
	return instant_before(instant_add(x->core->now, job->ttl_us / 10), job_loss_due(job));
}

bool take_may_win(const struct request_context *x, const struct take *take)
{
	return job_is_worth_it(x, take->job);
}

/* The client relies on the job and its lock, so this is the shorter of both validities. */
static int64_t taken_valid_us(const struct request_context *x, const struct job *job, const struct claim *claim)
{
	int64_t job_us = job_valid_us(job, x->core->now), lock_us = claim ? lock_valid_us(&x->engine->table, claim->lock) : job_us;

	return job_us < lock_us ? job_us : lock_us;
}

/* Sends OK for a job that the session has: see take_won(). */
static void reply_taken(struct request_context *x, struct session *s, struct span tag, struct job *job, const struct claim *claim, struct span payload)
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
	send_line(x, s, &r);
}

void take_won(struct request_context *x, struct take *take, const struct claim *claim)
{
	job_hold(x, take->job, take->bid.session, take->job->renew_at);
	reply_taken(x, take->bid.session, span_of(take->bid.tag), take->job, claim, take->payload);
	if (x->attends)
		slow_wait_of_take(x, take->bid.session, take->job->queue, instant_max(take->bid.asked_at, take->due_at));
	take_answered(x, take);
}

/* --- sessions --- */

void take_cancel(struct request_context *x, struct take *take)
{
	take_refuse(x, take, ERROR_CANCELLED, "the request was withdrawn");
}

void takes_finish_up(struct request_context *x, struct session *s)
{
	struct take *take, *next;

	for (take = take_first(s); take; take = next) {
		next = take_next(take);
		if (!take->bid.patient)
			continue;
		heap_cancel(&x->core->timers, &take->bid.timer);
		take_wait_no_more(x, take);
		if (!take->job && !take->queue->question)
			take_cancel(x, take);
	}
}

static void takes_withdraw(struct request_context *x, struct session *s)
{
	struct take *take;

	while ((take = take_first(s))) {
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
	for (take = take_first(s); take; take = take_next(take))
		if (take->bid.patient)
			take_places_keep(x, take);
	takes_withdraw(x, s);
}

bool takes_refuse(struct request_context *x, struct session *s, int64_t *left)
{
	for (; take_first(s) && *left > 0; (*left)--)
		take_refuse(x, take_first(s), ERROR_DRAINING, draining_text(x));
	return !take_first(s);
}

/* Whether the rules deny it. If they deny the lock of its job, sets take->denied_by. */
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

	for (take = take_first(s); take; take = next) {
		next = take_next(take);
		if (!take_is_denied(x, s, take, &queue))
			continue;
		if ((*left)-- <= 0)
			return false;
		take_withdraw(x, take);
		if (queue) {
			core_answers(x->core, VERB_TAKE);
			send_revoked(x, s, span_of(take->bid.tag));
		} else {
			take_send_denied(x, take);
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
		while (s && (take = take_first(s)))
			take_free(x, take);
		if (s)
			take_places_drop(s);
	}
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		take_places_drop(s);
	while ((queue = LIST_FIRST(&x->queues)))
		job_queue_free(x, queue);
}

/* The client may not know of the job. */
static bool job_is_unknown(const struct job *job, struct span queue)
{
	return job_is_had(job) && !job->here && !job->known && span_equal(job->queue, queue);
}

/* Its lock is lost, and somebody else may hold it now. */
static bool job_lacks_lock(const struct request_context *x, const struct job *job)
{
	const struct claim *c = job->lock.n > 0 ? job_claim(x, job) : NULL;

	return job->lock.n > 0 && job->state == JOB_HELD && !(c && c->state == CLAIM_HELD);
}

/* It is not known yet whether its session still has it and its lock. */
static bool job_is_undecided(const struct request_context *x, const struct job *job)
{
	const struct claim *c = job->state == JOB_HELD && job->lock.n > 0 ? job_claim(x, job) : NULL;

	return job->state == JOB_ADOPTING || (c && c->lock->lease.state == LEASE_ADOPTING);
}

/*
 * Returns the oldest job of which the client may not know. Jobs without their locks are given back: a client that has not read of the loss would run them
 * without the lock.
 */
static struct job *job_to_give(struct request_context *x, struct session *s, struct span queue)
{
	struct job *job, *next, *first = NULL;

	for (job = LIST_FIRST(&s->jobs); job; job = next) {
		next = LIST_NEXT(job, in_session);
		if (!job_is_unknown(job, queue))
			continue;
		if (job_lacks_lock(x, job)) {
			job->unreported = true;
			job_end(x, job, JOB_FAILED, NULL);
		} else if (!first || instant_before(job->taken_at, first->taken_at)) {
			first = job;
		}
	}
	return first;
}

bool take_again(struct request_context *x, struct session *s)
{
	const struct request *r = &x->request;
	struct job *job = s->resumed ? job_to_give(x, s, r->word[0]) : NULL;
	struct home_question *q;

	if (!job)
		return false;
	if (job_is_undecided(x, job)) {
		send_error(x, s, r->tag, ERROR_UNAVAILABLE, "%s", job_is_adopted_text);
		return true;
	}
	if (!pendings_within_limit(x, s))
		return true;
	job->here = true; /* a further TAKE gets another job */
	q = job_question(x, job->queue, s->origin, "payload", NULL);
	q->pending = pending_of_request(x, s, NULL);
	netstring_put(&q->words, value_in_text(x->core, &job->value));
	home_ask(x->engine, q, 0);
	return true;
}

/* Returns the job of the question; NULL: the session does not have it any longer. */
static struct job *job_of_question(struct request_context *x, const struct session *s, const struct home_question *q)
{
	struct span words = {buf_begin(&q->words), buf_length(&q->words)}, value = SPAN("");
	struct job *job;

	for (int i = 0; i < 3; i++) /* "j", "payload", and the value */
		if (!netstring_next(&words, &value))
			return NULL;
	LIST_FOREACH(job, &s->jobs, in_session)
		if (job->state == JOB_HELD && span_equal(value_in_text(x->core, &job->value), value))
			return job;
	return NULL;
}

static void take_again_answer(struct request_context *x, struct session *s, const struct home_question *q)
{
	struct job *job = job_of_question(x, s, q);
	struct span tag = span_of(q->pending->tag), text = q->text, payload;
	const struct claim *c;

	core_answers(x->core, VERB_TAKE);
	if (job && q->outcome == HOME_ANSWERED && q->code == 'P' && netstring_next(&text, &payload) && !job_lacks_lock(x, job)) {
		c = job->lock.n > 0 ? job_claim(x, job) : NULL;
		reply_taken(x, s, tag, job, c, payload);
		return;
	}
	if (job)
		job->here = false;
	if (q->outcome == HOME_ANSWERED)
		send_error(x, s, tag, ERROR_UNAVAILABLE, "the job that an earlier TAKE was answered with was lost meanwhile: ask again");
	else
		send_error(x, s, tag, ERROR_UNAVAILABLE, "the home of the queue cannot be used: %.*s", (int)q->text.n, q->text.p ? q->text.p : "");
}

void take_again_on_outcome(struct request_context *x, struct home_question *q)
{
	if (q->pending->session)
		take_again_answer(x, q->pending->session, q);
	pending_answered(x, q->pending);
	q->pending = NULL;
}
