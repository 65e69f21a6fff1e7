/* SPDX-License-Identifier: BSD-2-Clause */
/* See take.h. */
#include "daemon/core/take.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/group.h"
#include "daemon/core/job.h"
#include "daemon/core/tell.h"
#include "daemon/core/terms.h"

#include <inttypes.h>
#include <stdlib.h>

#define LOOK_US    SEC       /* a message may have been lost, and locks that were refused may be free */
#define TROUBLE_US (250 * MSEC) /* before a home is asked again that cannot be asked now */
#define LIFE_MS    3000      /* how long the home remembers that this daemon waits */
#define PASS_MOST  64        /* jobs that one pass gives back */

static void queue_go_on(struct commander *x, struct job_queue *queue);

/* --- queues --- */

static struct job_queue *queue_new(struct commander *x, struct span name)
{
	struct job_queue *queue = mem_alloc(sizeof(*queue));

	queue->asker = ASKER_QUEUE;
	queue->name = job_text_keep(name);
	queue->timer.kind = TIMER_QUEUE;
	TAILQ_INIT(&queue->waiting);
	LIST_INSERT_HEAD(&x->queues, queue, in_all);
	return queue;
}

static void queue_free(struct commander *x, struct job_queue *queue)
{
	if (queue->question)
		queue->question->about = NULL;
	heap_cancel(&x->core->timers, &queue->timer);
	LIST_REMOVE(queue, in_all);
	for (unsigned i = 0; i < BUSY_LOCKS; i++)
		job_text_free(&queue->busy[i]);
	job_text_free(&queue->after_id);
	job_text_free(&queue->name);
	free(queue);
}

/* Nobody waits here any more. A question under way is waited for: what it brings is given back. */
static void queue_close_if_unused(struct commander *x, struct job_queue *queue)
{
	struct home_question *q;

	if (!TAILQ_EMPTY(&queue->waiting) || queue->asking > 0 || queue->question)
		return;
	if (queue->told) {
		q = job_question(x, queue->name, "leave", NULL);
		netstring_put(&q->words, span_of(x->core->daemon_id));
		home_ask(x->engine, q, 0);
	}
	queue_free(x, queue);
}

/* --- the end of a TAKE --- */

/* Takes it out of its queue and its session. */
static void take_free(struct commander *x, struct take *take)
{
	struct job_queue *queue = take->queue;

	heap_cancel(&x->core->timers, &take->timer);
	if (take->job)
		queue->asking--;
	else
		TAILQ_REMOVE(&queue->waiting, take, in_queue);
	LIST_REMOVE(take, in_session);
	take->session->waiting--;
	job_text_free(&take->payload);
	free(take);
}

static void take_answered(struct commander *x, struct take *take)
{
	struct job_queue *queue = take->queue;
	struct session *s = take->session;
	bool tagged = take->tag[0] != '\0';

	take_free(x, take);
	session_answered(x->sessions, s, tagged);
	queue_close_if_unused(x, queue);
}

static void reply_nothing(struct commander *x, const struct take *take, const char *word, int64_t retry_ms)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(take->tag), word);
	reply_text(&r, "queue", take->queue->name);
	if (take->patient)
		reply_ms(&r, "waited_ms", instant_diff(x->core->now, take->asked_at));
	else if (retry_ms >= 0)
		reply_int(&r, "retry_ms", retry_ms);
	tell_line(x, take->session, &r);
}

static void tell_trouble(struct commander *x, const struct take *take)
{
	tell_error(x, take->session, span_of(take->tag), ERROR_UNAVAILABLE, "the home of the queue cannot be used: %s", take->queue->why);
}

/* Nothing is due, as far as is known: in so many ms something may be; -1: not known. */
static void take_is_over(struct commander *x, struct take *take, int64_t retry_ms)
{
	if (take->queue->trouble)
		tell_trouble(x, take);
	else
		reply_nothing(x, take, take->patient ? "TIMEOUT" : "BUSY", retry_ms);
	take_answered(x, take);
}

/* The job goes back to its place. */
static void take_give_back(struct commander *x, struct take *take, bool wakes)
{
	struct job *job = take->job;

	take->job = NULL;
	take->group = NULL;
	job_text_free(&take->payload);
	take->queue->asking--;
	TAILQ_INSERT_HEAD(&take->queue->waiting, take, in_queue);
	job->wakes = wakes;
	job_end(x, job, JOB_BACK, NULL);
}

static void take_withdraw(struct commander *x, struct take *take)
{
	struct group *g = take->group;

	if (take->job)
		take_give_back(x, take, true);
	if (g)
		group_free(x, g);
}

static void take_refuse(struct commander *x, struct take *take, enum error code, const char *text)
{
	take_withdraw(x, take);
	tell_error(x, take->session, span_of(take->tag), code, "%s", text);
	take_answered(x, take);
}

/* --- a pass --- */

static void pass_begin(struct job_queue *queue)
{
	queue->again = false;
	if (queue->refused < PASS_MOST) {
		job_text_free(&queue->after_id);
		queue->after_ms = 0;
	} /* else it goes on where the last one stopped */
	queue->refused = 0;
	for (unsigned i = 0; i < BUSY_LOCKS; i++)
		job_text_free(&queue->busy[i]);
}

/* By the clock of the home, no later than the answer is of use; 0: that clock is not known. */
static int64_t take_not_after_ms(struct commander *x, const struct job_queue *queue)
{
	const struct member *m = &x->engine->members.node[home_node(x->core, HOME_OF_QUEUE, queue->name, 0)];

	return member_server_ms(m, instant_add(x->core->now, core_soon_us(x->core) + x->core->conf.timeout_us));
}

static unsigned takes_patient(const struct job_queue *queue)
{
	const struct take *take;
	unsigned n = 0;

	TAILQ_FOREACH(take, &queue->waiting, in_queue)
		n += take->patient;
	return n;
}

static void queue_ask(struct commander *x, struct job_queue *queue)
{
	const struct take *first = TAILQ_FIRST(&queue->waiting);
	unsigned patient = takes_patient(queue);
	struct home_question *q = queue->question = job_question(x, queue->name, "take", queue);

	lock_value_make(&x->engine->table, members_one_clock_us(&x->engine->members, x->core->now), &queue->value);
	queue->ttl_us = first->ttl_us;
	queue->stays = patient > (first->patient ? 1 : 0);
	q->joined = true;
	netstring_put(&q->words, value_in_text(x->core, &queue->value));
	netstring_put_int(&q->words, whole_ms(queue->ttl_us));
	netstring_put_int(&q->words, (int64_t)x->core->conf.limits.attempts);
	netstring_put_int(&q->words, take_not_after_ms(x, queue));
	netstring_put(&q->words, span_of(x->core->daemon_id));
	netstring_put_int(&q->words, patient > 0 ? LIFE_MS : 0);
	netstring_put_int(&q->words, queue->stays);
	netstring_put_int(&q->words, queue->after_ms);
	netstring_put(&q->words, queue->after_id);
	for (unsigned i = 0; i < BUSY_LOCKS && queue->busy[i].n > 0; i++)
		netstring_put(&q->words, queue->busy[i]);
	queue->told |= patient > 0;
	home_ask(x->engine, q, 0);
}

/* Asks for the first that waits, unless a question is under way. */
static void queue_go_on(struct commander *x, struct job_queue *queue)
{
	if (queue->question)
		return;
	if (TAILQ_EMPTY(&queue->waiting)) {
		queue_close_if_unused(x, queue);
		return;
	}
	heap_cancel(&x->core->timers, &queue->timer);
	queue_ask(x, queue);
}

/* Looks again from the beginning. */
static void queue_look(struct commander *x, struct job_queue *queue)
{
	queue->again = true;
	if (queue->question)
		return;
	pass_begin(queue);
	queue_go_on(x, queue);
}

/* Nothing more is due that may be taken. Whoever does not wait is told so. */
static void pass_over(struct commander *x, struct job_queue *queue, int64_t next_ms)
{
	struct take *take, *next;

	queue->asking++; /* so that it is not closed meanwhile */
	for (take = TAILQ_FIRST(&queue->waiting); take; take = next) {
		next = TAILQ_NEXT(take, in_queue);
		if (take->patient ? !instant_before(x->core->now, take->wait_until) : !take->late)
			take_is_over(x, take, next_ms);
		else
			take->late = false;
	}
	queue->asking--;
	if (TAILQ_EMPTY(&queue->waiting)) {
		queue_close_if_unused(x, queue);
	} else if (queue->again && !queue->trouble) {
		queue_look(x, queue);
	} else {
		int64_t us = queue->trouble ? TROUBLE_US : next_ms >= 0 && next_ms * MSEC < LOOK_US ? next_ms * MSEC + MSEC : LOOK_US;

		heap_set(&x->core->timers, &queue->timer, instant_add(x->core->now, us));
	}
}

static void queue_note_busy(struct job_queue *queue, const struct job *job, int64_t due_ms)
{
	unsigned i = queue->refused % BUSY_LOCKS;

	job_text_set(&queue->busy[i], job->lock);
	if (++queue->refused >= BUSY_LOCKS && due_ms >= queue->after_ms) {
		/* More locks are busy than the home is told: the jobs in front of this one are left out. */
		queue->after_ms = due_ms;
		job_text_set(&queue->after_id, job->id);
	}
}

/* --- a job --- */

/* The lock of the job is asked for, on behalf of this session, by an owner of its own. */
static void take_ask_lock(struct commander *x, struct take *take)
{
	char owner[JOB_OWNER_MAX];

	take->group = group_new_of_take(x, take->session, take, take->job->lock, job_owner(take->job, owner), take->ttl_us);
}

static bool job_read(struct commander *x, struct job_queue *queue, struct span text, struct job **ret_job, struct span *ret_payload, int64_t *ret_due_ms)
{
	struct span id, lock;
	int64_t attempt;

	if (!netstring_next(&text, &id) || id.n > JOB_ID_MAX || !netstring_next_int(&text, &attempt) || !netstring_next(&text, &lock) ||
	    lock.n > NAME_MAX_BYTES || !netstring_next(&text, ret_payload) || !netstring_next_int(&text, ret_due_ms) || attempt < 1 || attempt > UINT32_MAX)
		return false;
	*ret_job = job_new(x, queue->name, id, lock);
	(*ret_job)->attempt = (unsigned)attempt;
	return true;
}

/* A vote that is over at once, or nearly so, is of no use to anybody. */
static bool job_is_worth_it(const struct commander *x, const struct job *job)
{
	return instant_before(instant_add(x->core->now, job->ttl_us / 10), job_tell_at(job));
}

static void take_give(struct commander *x, struct take *take, struct job *job, struct span payload, int64_t due_ms)
{
	struct job_queue *queue = take->queue;

	TAILQ_REMOVE(&queue->waiting, take, in_queue);
	queue->asking++;
	take->job = job;
	take->payload = job_text_keep(payload);
	take->due_ms = due_ms;
	if (job->lock.n > 0)
		take_ask_lock(x, take);
	else
		take_won(x, take, NULL);
}

/* The home has leased a job to this daemon. It is for the first that waits, if that still asks for such a lease. */
static void queue_got(struct commander *x, struct job_queue *queue, const struct home_question *q)
{
	struct take *first = TAILQ_FIRST(&queue->waiting);
	bool joined = x->engine->members.node[q->node].state == MEMBER_JOINED;
	struct span payload;
	struct job *job;
	int64_t due_ms;

	if (!job_read(x, queue, q->text, &job, &payload, &due_ms))
		return;
	job->value = queue->value;
	job->ttl_us = queue->ttl_us;
	job->renew_at = q->calls.sent[q->node]; /* until job_hold() */
	job->until = vote_until(job->renew_at, job->ttl_us);
	if (first && joined && first->ttl_us == queue->ttl_us && job_is_worth_it(x, job)) {
		take_give(x, first, job, payload, due_ms);
		return;
	}
	job->wakes = true;
	job_end(x, job, JOB_BACK, NULL);
}

/* It is not known whether the home has leased a job: if so, it goes back. */
static void queue_got_perhaps(struct commander *x, struct job_queue *queue)
{
	struct job *job = job_new(x, queue->name, SPAN(""), SPAN(""));

	job->value = queue->value;
	job->ttl_us = queue->ttl_us;
	job->until = instant_add(x->core->now, queue->ttl_us);
	job->wakes = true;
	job_end(x, job, JOB_BACK, NULL);
}

void take_told(struct commander *x, struct home_question *q)
{
	struct job_queue *queue = q->about;
	struct span text = q->text, id;
	int64_t ms = -1;

	queue->question = NULL;
	queue->trouble = q->outcome != HOME_ANSWERED;
	if (queue->trouble) {
		core_keep(queue->why, sizeof(queue->why), q->text);
		if (q->outcome == HOME_UNKNOWN)
			queue_got_perhaps(x, queue);
		pass_over(x, queue, -1);
		return;
	}
	switch (q->code) {
	case 'J':
		queue->told &= queue->stays;
		queue->asking++; /* so that it is not closed meanwhile */
		queue_got(x, queue, q);
		queue->asking--;
		break;
	case 'C':
		if (netstring_next_int(&text, &ms) && netstring_next(&text, &id)) {
			queue->after_ms = ms;
			job_text_set(&queue->after_id, id);
		}
		break;
	case 'W':
		(void)netstring_next_int(&text, &ms);
		queue->refused = 0;
		pass_over(x, queue, ms);
		return;
	default: /* late */
		break;
	}
	queue_go_on(x, queue);
}

/* --- the lock of a job --- */

bool take_may_win(const struct commander *x, const struct take *take)
{
	return job_is_worth_it(x, take->job);
}

static void reply_taken(struct commander *x, const struct take *take, const struct claim *claim)
{
	const struct job *job = take->job;
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(take->tag), "OK");
	reply_text(&r, "queue", job->queue);
	reply_text(&r, "job", job->id);
	reply_int(&r, "attempt", job->attempt);
	reply_ms(&r, "valid_ms", job_valid_us(job, x->core->now));
	reply_ms(&r, "ttl_ms", job->ttl_us);
	if (claim) {
		reply_text(&r, "name", job->lock);
		reply_int(&r, "fence", claim->token);
	}
	reply_text(&r, "payload", take->payload);
	tell_line(x, take->session, &r);
}

void take_won(struct commander *x, struct take *take, const struct claim *claim)
{
	job_hold(x, take->job, take->session, take->job->renew_at);
	reply_taken(x, take, claim);
	take_answered(x, take);
}

static const char *refusal_text(enum refusal why)
{
	switch (why) {
	case REFUSED_QUORUM:
	case REFUSED_NOT_ADMITTED:
		return "too few stores can be asked for the lock of the job";
	case REFUSED_DRAINING:
		return "the daemon is stopping";
	default:
		return "the request was withdrawn";
	}
}

void take_refused(struct commander *x, struct take *take, enum refusal why)
{
	struct job_queue *queue = take->queue;
	bool trouble = why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED;

	queue_note_busy(queue, take->job, take->due_ms);
	take_give_back(x, take, why == REFUSED_DRAINING || why == REFUSED_CANCELLED);
	if (why == REFUSED_DRAINING || why == REFUSED_CANCELLED || (trouble && !take->patient)) {
		take_refuse(x, take, trouble ? ERROR_QUORUM : why == REFUSED_DRAINING ? ERROR_DRAINING : ERROR_CANCELLED, refusal_text(why));
	} else if (!instant_before(x->core->now, take->wait_until) && take->patient) {
		take_is_over(x, take, -1);
	} else if (queue->refused >= PASS_MOST || trouble) {
		if (!queue->question)
			pass_over(x, queue, -1);
	} else {
		queue_go_on(x, queue);
	}
}

/* --- the request --- */

static bool take_is_allowed(struct commander *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;
	const struct take *take;
	const struct job *job;
	uint64_t waiting = 0, jobs = 0;

	if (!name_is_allowed(x, s) || !ttl_is_allowed(x, s))
		return false;
	if (x->engine->draining) {
		tell_error(x, s, x->request.tag, ERROR_DRAINING, "the daemon is stopping");
		return false;
	}
	LIST_FOREACH(take, &s->takes, in_session)
		waiting++;
	LIST_FOREACH(job, &s->jobs, in_session)
		jobs++;
	if (patient && waiting >= conf->limits.waiting)
		tell_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " waiting requests (limits.waiting)", conf->limits.waiting);
	else if (jobs + waiting >= conf->limits.locks)
		tell_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " jobs (limits.locks)", conf->limits.locks);
	else
		return true;
	return false;
}

void serve_TAKE(struct commander *x, struct session *s)
{
	const struct request *r = &x->request;
	int64_t wait = request_has(r, FIELD_WAIT) ? r->field[FIELD_WAIT].number : 0;
	struct job_queue *queue;
	struct take *take;

	if (!take_is_allowed(x, s, wait > 0))
		return;
	queue = job_queue_find(x, r->word[0]);
	if (!queue)
		queue = queue_new(x, r->word[0]);
	take = mem_alloc(sizeof(*take));
	take->session = s;
	take->queue = queue;
	take->timer.kind = TIMER_TAKE;
	take->patient = wait > 0;
	take->asked_at = x->core->now;
	take->wait_until = wait == WAIT_FOREVER ? INSTANT_NEVER : instant_add(x->core->now, wait);
	take->ttl_us = request_has(r, FIELD_TTL) ? r->field[FIELD_TTL].number : x->core->conf.lease_us;
	take->late = queue->question != NULL;
	memcpy(take->tag, r->tag.p ? r->tag.p : "", r->tag.n);
	LIST_INSERT_HEAD(&s->takes, take, in_session);
	TAILQ_INSERT_TAIL(&queue->waiting, take, in_queue);
	s->waiting++;
	s->busy |= r->tag.n == 0;
	if (take->patient && wait != WAIT_FOREVER)
		heap_set(&x->core->timers, &take->timer, take->wait_until);
	queue_look(x, queue);
}

void takes_wake(struct commander *x, struct span name)
{
	struct job_queue *queue = job_queue_find(x, name);

	if (queue)
		queue_look(x, queue);
}

void takes_look(struct commander *x)
{
	struct job_queue *queue, *next;

	x->queue_due = false;
	for (queue = LIST_FIRST(&x->queues); queue; queue = next) {
		next = LIST_NEXT(queue, in_all);
		if (queue->again && !queue->question)
			queue_look(x, queue);
	}
}

void takes_fired(struct commander *x, struct job_queue *queue)
{
	queue_look(x, queue);
}

/* While the lock of a job is asked for, or the home, that decides. */
void take_fired(struct commander *x, struct take *take)
{
	if (!take->job && !(take->queue->question && take == TAILQ_FIRST(&take->queue->waiting)))
		take_is_over(x, take, -1);
}

struct take *take_waiting(const struct session *s, struct span tag)
{
	struct take *take;

	LIST_FOREACH(take, &s->takes, in_session)
		if (span_equal(span_of(take->tag), tag))
			return take;
	return NULL;
}

void take_cancel(struct commander *x, struct take *take)
{
	take_refuse(x, take, ERROR_CANCELLED, "the request was withdrawn");
}

void takes_finish_up(struct commander *x, struct session *s)
{
	struct take *take, *next;

	for (take = LIST_FIRST(&s->takes); take; take = next) {
		next = LIST_NEXT(take, in_session);
		if (!take->patient)
			continue;
		take->patient = false;
		heap_cancel(&x->core->timers, &take->timer);
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

void takes_end(struct commander *x, struct session *s)
{
	struct take *take;

	while ((take = LIST_FIRST(&s->takes))) {
		struct job_queue *queue = take->queue;

		take_withdraw(x, take);
		take_free(x, take);
		queue_close_if_unused(x, queue);
	}
}

void takes_refuse(struct commander *x, struct session *s)
{
	while (!LIST_EMPTY(&s->takes))
		take_refuse(x, LIST_FIRST(&s->takes), ERROR_DRAINING, "the daemon is stopping");
}

void takes_free_all(struct commander *x)
{
	struct job_queue *queue;
	struct take *take;
	struct session *s;

	for (uint32_t i = 0; i < x->sessions->slots; i++) {
		s = x->sessions->slot[i];
		while (s && (take = LIST_FIRST(&s->takes)))
			take_free(x, take);
	}
	while ((queue = LIST_FIRST(&x->queues)))
		queue_free(x, queue);
}
