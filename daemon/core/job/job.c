/* SPDX-License-Identifier: BSD-2-Clause */
/* See job.h. */
#include "daemon/core/job/job.h"

#include "daemon/base/netstring.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/reply/watch.h"

#define AGAIN_US (100 * MSEC) /* pause before a home that did not answer is asked again */

struct home_question *job_question(struct request_context *x, struct span queue, struct origin *o, const char *op, void *about)
{
	struct home_question *q = home_question_new(x->engine, HOME_OF_QUEUE, queue, o);

	netstring_put(&q->words, SPAN("j"));
	netstring_put(&q->words, span_of(op));
	q->about = about;
	return q;
}

static struct origin *job_origin(const struct job *job)
{
	return job->session ? job->session->origin : NULL;
}

/* --- reports to sessions --- */

static void push_begin(struct request_context *x, struct reply *r, const struct job *job, const char *word)
{
	reply_begin(r, session_line(x->sessions), SPAN(""), word);
	reply_text(r, "queue", job->queue);
	reply_text(r, "job", job->id);
}

static void job_send_lost(struct request_context *x, struct job *job)
{
	struct reply r;

	job->not_notified = false;
	push_begin(x, &r, job, "! LOST");
	reply_text(&r, "reason", span_of(loss_word(job->loss)));
	send_line(x, job->session, &r);
}

static void job_send_validity(struct request_context *x, const struct job *job, const char *word, const char *field)
{
	struct reply r;

	if (!session_reachable(job->session))
		return;
	push_begin(x, &r, job, word);
	reply_ms(&r, field, job_valid_us(job, x->core->now));
	send_line(x, job->session, &r);
}

static void job_lose(struct request_context *x, struct job *job, enum loss why)
{
	struct session *s = job->session;

	metric_add(&x->core->metrics, METRIC_JOBS_LOST, 1);
	heap_cancel(&x->core->timers, &job->timer);
	if (job->question)
		job->question->about = NULL;
	job->question = NULL;
	job_set_state(x, job, JOB_LOST);
	job->loss = why;
	record_job_lost(x, job);
	if (session_reachable(s))
		job_send_lost(x, job);
	else
		job->not_notified = true;
	session_wake(x->sessions, s);
}

void jobs_lose(struct request_context *x, struct session *s, enum loss why)
{
	struct job *job;

	LIST_FOREACH(job, &s->jobs, in_session)
		if (job_is_had(job))
			job_lose(x, job, why);
}

/* --- its lock --- */

static void job_free_lock(struct request_context *x, struct session *s, struct claim *c)
{
	record_freed(x, c);
	TAILQ_REMOVE(&s->claims, c, in_session);
	s->held--;
	if (c->state == CLAIM_HELD) {
		former(x, c, "released");
		watch(x, c, WATCH_RELEASED);
		hold_unlock(x->engine, c, 0, NULL);
		request_context_let_go(x, s);
	} else {
		hold_acknowledge(x->engine, c, &s->claims);
	}
}

/*
 * Each job with this lock and owner counts once, like each LOCK of a client. A job that was lost and taken again counts no longer. So the count alone does not
 * show whether the lock is still needed.
 */
static void job_unlock(struct request_context *x, const struct job *job)
{
	struct claim *c = job_claim(x, job);

	if (!c || (c->state != CLAIM_HELD && c->state != CLAIM_LOST))
		return;
	if (c->state == CLAIM_HELD && c->count > 1) {
		c->count--;
		record_held(x, c);
	} else if (!job_shares_lock(job)) {
		job_free_lock(x, job->session, c);
	}
}

void job_acknowledge(struct request_context *x, struct job *job)
{
	struct session *s = job->session;

	if (!job->superseded)
		record_job_over(x, job);
	job_unlock(x, job);
	job_free(x, job);
	session_note_vacant(x->sessions, s);
}

/* The session has an earlier attempt of the job. The home has ended that attempt, otherwise it would not have given the job away again. */
static void job_supersede(struct request_context *x, struct job *earlier, const struct job *job)
{
	if (job_is_had(earlier))
		job_lose(x, earlier, LOSS_EVICTED);
	earlier->superseded = true;
	if (span_equal(earlier->lock, job->lock)) {
		job_unlock(x, earlier); /* the next attempt is counted as well */
		mem_span_free(&earlier->lock);
	}
	if (earlier->state == JOB_LOST && !earlier->not_notified)
		job_acknowledge(x, earlier);
}

static void job_supersede_all(struct request_context *x, const struct job *job)
{
	for (struct job *next, *other = LIST_FIRST(&job->session->jobs); other; other = next) {
		next = LIST_NEXT(other, in_session);
		if (other != job && span_equal(other->queue, job->queue) && span_equal(other->id, job->id))
			job_supersede(x, other, job);
	}
}

/* --- the lease --- */

/* Sets its timer, to renew it or to lose it. */
static void job_schedule(struct request_context *x, struct job *job)
{
	struct instant report_at = job_loss_due(job);

	heap_set(&x->core->timers, &job->timer, job->question ? report_at : instant_min(report_at, job->renew_at));
}

static void job_vote(struct job *job, struct instant sent)
{
	job->until = instant_max(job->until, vote_until(sent, job->ttl_us));
	job->renew_at = instant_add(sent, job->ttl_us / 3);
}

static void job_renew(struct request_context *x, struct job *job)
{
	struct span value = value_in_text(x->core, &job->value);
	struct home_question *q = job->question = job_question(x, job->queue, job_origin(job), "renew", job);

	q->urgent = true;
	netstring_put(&q->words, value);
	netstring_put_int(&q->words, whole_ms(job->ttl_us));
	home_ask(x->engine, q, 0);
}

static void job_renewed(struct request_context *x, struct job *job, struct instant sent)
{
	bool adopted = job->state == JOB_ADOPTING;

	if (adopted) {
		job_set_state(x, job, JOB_HELD);
		job->until = INSTANT_PAST;
		mem_span_free(&job->former);
	}
	job_vote(job, sent);
	if (adopted)
		record_job(x, job);
	if (job->at_risk || (adopted && !(job->session && job->session->returns)))
		job_send_validity(x, job, "! SAFE", "valid_ms");
	job->at_risk = false;
	job_schedule(x, job);
	if (adopted)
		session_wake(x->sessions, job->session);
}

static void job_renewal_on_outcome(struct request_context *x, struct job *job, const struct home_question *q)
{
	if (q->outcome == HOME_ANSWERED && q->code == 'K') {
		job_renewed(x, job, q->calls.sent[q->node]);
	} else if (q->outcome == HOME_ANSWERED) {
		job_lose(x, job, LOSS_EVICTED);
	} else {
		if (!job->at_risk && job->state == JOB_HELD)
			job_send_validity(x, job, "! RISK", "left_ms");
		job->at_risk = true;
		job->renew_at = instant_add(x->core->now, AGAIN_US);
		job_schedule(x, job);
	}
}

void job_hold(struct request_context *x, struct job *job, struct session *s, struct instant sent)
{
	job_set_state(x, job, JOB_HELD);
	job->taken_at = x->core->now;
	job->until = INSTANT_PAST;
	job_vote(job, sent);
	job_set_session(job, s);
	job_schedule(x, job);
	job_supersede_all(x, job);
	record_job(x, job);
	metric_add(&x->core->metrics, METRIC_JOBS_TAKEN, 1);
}

/* --- the end --- */

static void job_send_end(struct request_context *x, struct job *job)
{
	static const char *const op[] = {[JOB_DONE] = "done", [JOB_FAILED] = "retry", [JOB_BACK] = "back"};
	struct home_question *q = job->question = job_question(x, job->queue, job_origin(job), op[job->end], job);

	netstring_put(&q->words, value_in_text(x->core, &job->value));
	if (job->end == JOB_FAILED) {
		netstring_put_int(&q->words, whole_ms(job->delay_us));
		netstring_put_int(&q->words, (int64_t)x->core->conf.limits.attempts);
	} else if (job->end == JOB_BACK) {
		netstring_put_int(&q->words, job->wakes);
	}
	home_ask(x->engine, q, 0);
}

void job_end(struct request_context *x, struct job *job, enum job_end end, struct pending *p)
{
	if (job->question)
		job->question->about = NULL;
	job->question = NULL;
	job_set_state(x, job, JOB_ENDING);
	job->end = end;
	job->pending = p;
	if (job->session)
		record_job_ending(x, job);
	job_send_end(x, job);
	heap_set(&x->core->timers, &job->timer, instant_max(job->until, x->core->now));
}

void job_end_again(struct request_context *x, struct job *job, struct pending *p)
{
	pending_free(&x->engine->table.pendings, job->pending);
	job->pending = p;
}

static void reply_ended(struct request_context *x, const struct job *job, struct session *s, struct span tag)
{
	struct reply r;

	reply_begin(&r, session_line(x->sessions), tag, "OK");
	reply_text(&r, "queue", job->queue);
	reply_text(&r, "job", job->id);
	if (job->end == JOB_FAILED && job->attempt >= x->core->conf.limits.attempts)
		reply_text(&r, "state", SPAN("dead"));
	send_line(x, s, &r);
}

enum ended { ENDED, ENDED_LOST, ENDED_UNKNOWN };

/* Its lock is released only when the home has ended the job, so nobody runs the job in parallel. */
static void job_ended(struct request_context *x, struct job *job, enum ended how)
{
	struct pending *p = job->pending;
	struct session *s = job->session;

	if (s && how != ENDED && !(p && p->session) && !job->superseded && !job->unreported) {
		job_end_again(x, job, NULL);
		job_lose(x, job, how == ENDED_LOST ? LOSS_EVICTED : LOSS_QUORUM);
		return;
	}
	if (s) {
		if (!job->superseded)
			record_job_over(x, job);
		job_unlock(x, job);
	}
	metric_add(&x->core->metrics, job->end == JOB_DONE ? METRIC_JOBS_DONE : METRIC_JOBS_RETURNED, how == ENDED);
	if (p && p->session) {
		core_answers(x->core, p->verb);
		if (how == ENDED)
			reply_ended(x, job, s, span_of(p->tag));
		else if (how == ENDED_LOST)
			send_error(x, s, span_of(p->tag), ERROR_LOST,
			           "the lease of the job was over before this request, so it is due again, or another session has it");
		else
			send_error(x, s, span_of(p->tag), ERROR_UNAVAILABLE,
			           "the home of the queue did not answer as long as the lease lasted: the job may be %s, or be due again",
			           job->end == JOB_DONE ? "done" : "given back");
	}
	if (p)
		pending_answered(x, p);
	if (how == ENDED && (job->end == JOB_FAILED || job->wakes))
		job_queue_note(x, job->queue);
	job_free(x, job);
	if (s)
		session_wake(x->sessions, s); /* its RESUME may wait for the lock */
}

/* After the end of the lease the home is not asked any more. That end may be sooner than was known. */
static void job_end_by(struct request_context *x, struct job *job)
{
	struct instant end = instant_max(job->until, x->core->now);

	if (!timer_is_set(&job->timer) || instant_before(end, job->timer.at))
		heap_set(&x->core->timers, &job->timer, end);
}

/* If no job has the value, an earlier try has succeeded, provided that one may have been executed and that the lease is not over. */
static void job_end_on_outcome(struct request_context *x, struct job *job, const struct home_question *q)
{
	bool over = !instant_before(x->core->now, job->until);

	if (q->outcome == HOME_ANSWERED && (q->code == 'R' || (job->unsure && !over))) {
		jobs_note_failed(x, job->queue, q->text);
		job_ended(x, job, ENDED);
	} else if (q->outcome == HOME_ANSWERED) {
		job_ended(x, job, ENDED_LOST);
	} else if (over) {
		job_ended(x, job, ENDED_UNKNOWN);
	} else {
		job->unsure |= q->outcome == HOME_UNKNOWN;
		heap_set(&x->core->timers, &job->timer, instant_min(job->until, instant_add(x->core->now, AGAIN_US)));
	}
}

/* Also for a job that is adopted: its TAKE must not be answered with it again later. */
static void job_becomes_known(struct request_context *x, struct job *job)
{
	if (job->known)
		return;
	job->known = true;
	record_job_known(x, job);
}

void job_check(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	bool more;
	struct job *job = job_find(s, q->word[0], q->field[FIELD_JOB].text, &more);
	struct reply r;

	if (job && job->state != JOB_LOST)
		job_becomes_known(x, job);
	if (!job) {
		send_error(x, s, q->tag, ERROR_NOTHELD, "this session does not have the job");
	} else if (job->state == JOB_LOST) {
		send_error(x, s, q->tag, ERROR_LOST, "reason=%s: lost before this request", loss_word(job->loss));
	} else if (job->state == JOB_ADOPTING) {
		send_error(x, s, q->tag, ERROR_UNAVAILABLE, "%s", job_is_adopted_text);
	} else {
		reply_begin(&r, session_line(x->sessions), q->tag, "OK");
		reply_text(&r, "queue", job->queue);
		reply_text(&r, "job", job->id);
		reply_int(&r, "attempt", job->attempt);
		reply_ms(&r, "valid_ms", job_valid_us(job, x->core->now));
		send_line(x, s, &r);
	}
}

void job_on_outcome(struct request_context *x, struct home_question *q)
{
	struct job *job = q->about;

	job->question = NULL;
	if (job->state == JOB_ENDING)
		job_end_on_outcome(x, job, q);
	else
		job_renewal_on_outcome(x, job, q);
}

void job_fired(struct request_context *x, struct job *job)
{
	if (job->state == JOB_ENDING) {
		if (!instant_before(x->core->now, job->until))
			job_ended(x, job, ENDED_UNKNOWN);
		else if (!job->question)
			job_send_end(x, job);
	} else if (!instant_before(x->core->now, job_loss_due(job))) {
		job_lose(x, job, LOSS_QUORUM);
	} else {
		if (!job->question)
			job_renew(x, job);
		job_schedule(x, job);
	}
}

void jobs_shorten(struct request_context *x, unsigned node, int64_t sooner_us)
{
	struct job *job, *next;

	for (job = LIST_FIRST(&x->jobs); job; job = next) {
		next = LIST_NEXT(job, in_all);
		if ((job->state != JOB_HELD && job->state != JOB_ENDING) || rendezvous_node(x->core, HOME_OF_QUEUE, job->queue, 0) != node)
			continue;
		job->until = instant_add(job->until, -sooner_us);
		if (job->state == JOB_ENDING && job->session)
			record_job_ending(x, job); /* the next run asks no longer than this one */
		if (job->state == JOB_ENDING)
			job_end_by(x, job);
		else if (!job->session) /* its lock is being asked for: job_hold() counts the vote from here */
			job->renew_at = instant_add(job->renew_at, -sooner_us);
		else if (instant_before(x->core->now, job_loss_due(job)))
			job_schedule(x, job);
		else
			job_lose(x, job, LOSS_QUORUM);
	}
}

/* --- sessions --- */

/* If its end is under way, the home is still asked for that. */
static void job_leave(struct request_context *x, struct job *job, bool sure)
{
	if (job->state == JOB_ENDING) {
		job_set_session(job, NULL);
		return;
	}
	if (job->state != JOB_HELD || !sure) {
		job_free(x, job);
		return;
	}
	job_set_session(job, NULL);
	job_end(x, job, JOB_FAILED, NULL);
}

void jobs_end(struct request_context *x, struct session *s, bool sure)
{
	while (!LIST_EMPTY(&s->jobs))
		job_leave(x, LIST_FIRST(&s->jobs), sure);
}

void jobs_take_over(struct session *to, struct session *from)
{
	while (!LIST_EMPTY(&from->jobs))
		job_set_session(LIST_FIRST(&from->jobs), to);
}

void jobs_detach(struct session *s)
{
	struct job *job;

	LIST_FOREACH(job, &s->jobs, in_session)
		job->here = false;
}

unsigned jobs_open(const struct session *s)
{
	const struct job *job;
	unsigned n = 0;

	LIST_FOREACH(job, &s->jobs, in_session)
		n += job->state == JOB_ADOPTING;
	return n;
}

unsigned jobs_send_rows(struct request_context *x, struct session *s, size_t begin, int64_t *more)
{
	const struct claim *c;
	struct job *job;
	struct reply r;
	unsigned n = 0;

	LIST_FOREACH(job, &s->jobs, in_session) {
		if (job->state != JOB_HELD)
			continue;
		if (rows_take_long(x, s->unsent - begin)) {
			++*more;
			continue;
		}
		row_begin(x, span_of(s->lasting->resume_tag), &r);
		reply_text(&r, "queue", job->queue);
		reply_text(&r, "job", job->id);
		reply_int(&r, "attempt", job->attempt);
		reply_ms(&r, "valid_ms", job_valid_us(job, x->core->now));
		if (job->lock.n > 0)
			reply_text(&r, "name", job->lock);
		c = job_claim(x, job);
		if (c && c->state == CLAIM_HELD)
			reply_int(&r, "fence", c->token);
		row_end(x, s, &r);
		n++;
	}
	return n;
}

void jobs_send_lost(struct request_context *x, struct session *s)
{
	struct job *job;

	LIST_FOREACH(job, &s->jobs, in_session)
		if (job->state == JOB_LOST && job->not_notified)
			job_send_lost(x, job);
}

void jobs_free_all(struct request_context *x)
{
	struct job *job;

	while ((job = LIST_FIRST(&x->jobs))) {
		pending_free(&x->engine->table.pendings, job->pending);
		job_free(x, job);
	}
}

/* --- the previous run --- */

void job_restore_over(struct request_context *x, struct session *s, const struct journal_record *r)
{
	bool more;
	struct job *job = job_find(s, r->queue, r->job, &more);

	if (job)
		job_free(x, job);
}

void job_restore_known(const struct session *s, const struct journal_record *r)
{
	bool more;
	struct job *job = job_find(s, r->queue, r->job, &more);

	if (job)
		job->known = true;
}

/* Ends it, after the last record. Until then it is in JOB_ADOPTING. */
void job_restore_ending(const struct session *s, const struct journal_record *r)
{
	bool more;
	struct job *job = job_find(s, r->queue, r->job, &more);

	if (!job || job->state != JOB_ADOPTING)
		return;
	job->unsure = true;
	job->end = (enum job_end)r->end;
	job->wakes = job->end == JOB_BACK;
	job->delay_us = r->delay_us;
	job->until = (struct instant){r->deadline_us};
}

bool job_restore(struct request_context *x, struct session *s, const struct journal_record *r)
{
	struct job *job;

	if (r->value.n >= VALUE_MAX)
		return false;
	job_restore_over(x, s, r);
	job = job_new(x, r->queue, r->job, r->lock);
	job_set_state(x, job, JOB_ADOPTING);
	job->former = mem_span(r->value);
	job->here = r->flags & JOURNAL_NOTIFIED;
	job->at_risk = r->flags & JOURNAL_RISK;
	job->attempt = (unsigned)r->attempt;
	job->ttl_us = r->ttl_us < x->core->conf.max_lease_us ? r->ttl_us : x->core->conf.max_lease_us;
	job_set_session(job, s);
	return true;
}

void job_restore_left(struct request_context *x, const struct journal_record *r)
{
	struct lease_value value;
	struct job *job;

	if (!value_read(x->core, r->value, &value))
		return;
	job = job_new(x, r->queue, SPAN(""), SPAN(""));
	job->value = value;
	job->until = (struct instant){r->deadline_us};
	job->delay_us = r->delay_us;
	job->wakes = r->end == JOB_BACK;
	job_end(x, job, (enum job_end)r->end, NULL);
}

/* If the client may not know of the loss, it is reported again. */
bool job_restore_lost(struct request_context *x, struct session *s, const struct journal_record *r)
{
	enum loss why;
	struct job *job;

	if (!loss_find(r->reason, &why))
		return false;
	job_restore_over(x, s, r);
	job = job_new(x, r->queue, r->job, r->lock);
	job_set_state(x, job, JOB_LOST);
	job->loss = why;
	job->not_notified = !(r->flags & JOURNAL_NOTIFIED);
	job_set_session(job, s);
	return true;
}

/*
 * The home is asked after this step, because no store is connected yet. If the value has the id of another daemon, the home does not know it: the job is lost.
 */
static void job_adopt(struct request_context *x, struct job *job)
{
	struct instant now = x->core->now, until = instant_add(now, job->ttl_us);
	bool ours = value_read(x->core, job->former, &job->value);

	if (job->unsure) {
		job_set_state(x, job, JOB_ENDING);
		job->unsure = ours;
		job->until = instant_min(job->until, until);
		heap_set(&x->core->timers, &job->timer, now);
		return;
	}
	job->until = until;
	job->renew_at = now;
	job_schedule(x, job);
}

void jobs_adopt(struct request_context *x, struct session *s)
{
	struct job *job;

	LIST_FOREACH(job, &s->jobs, in_session)
		if (job->state == JOB_ADOPTING)
			job_adopt(x, job);
}
