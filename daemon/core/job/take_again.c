/* SPDX-License-Identifier: BSD-2-Clause */
/* See take_again.h. */
#include "daemon/core/job/take_again.h"

#include "daemon/base/netstring.h"
#include "daemon/core/job/job.h"
#include "daemon/core/job/take.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/tell.h"

/* The client may not know of it. */
static bool job_is_unknown(const struct job *job, struct span queue)
{
	return job_is_had(job) && !job->here && !job->known && span_equal(job->queue, queue);
}

/* Its lock is lost, and may be somebody else's by now. */
static bool job_lacks_lock(const struct request_context *x, const struct job *job)
{
	const struct claim *c = job->lock.n > 0 ? job_claim(x, job) : NULL;

	return job->lock.n > 0 && job->state == JOB_HELD && !(c && c->state == CLAIM_HELD);
}

/* Whether its session has it, and its lock, is not known yet. */
static bool job_is_undecided(const struct request_context *x, const struct job *job)
{
	const struct claim *c = job->state == JOB_HELD && job->lock.n > 0 ? job_claim(x, job) : NULL;

	return job->state == JOB_ADOPTING || (c && c->lock->lease.state == LEASE_ADOPTING);
}

/*
 * Of those that the client may not know of, the one that was taken first. Those that lack their locks go back: a client that has not read of the loss would
 * run them without.
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
		tell_error(x, s, r->tag, ERROR_UNAVAILABLE, "%s", job_is_adopted_text);
		return true;
	}
	if (!pendings_within_limit(x, s))
		return true;
	job->here = true; /* a further TAKE gets another one */
	q = job_question(x, job->queue, s->origin, "payload", NULL);
	q->pending = pending_of_request(x, s, NULL);
	netstring_put(&q->words, value_in_text(x->core, &job->value));
	home_ask(x->engine, q, 0);
	return true;
}

/* The job of the question; NULL: the session does not have it any more. */
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
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "the job that an earlier TAKE was answered with was lost meanwhile: ask again");
	else
		tell_error(x, s, tag, ERROR_UNAVAILABLE, "the home of the queue cannot be used: %.*s", (int)q->text.n, q->text.p ? q->text.p : "");
}

void take_again_told(struct request_context *x, struct home_question *q)
{
	struct pending *p = q->pending;
	struct session *s = p->session;

	if (s) {
		TAILQ_REMOVE(&s->pendings, p, in_session);
		take_again_answer(x, s, q);
		session_answered(x->sessions, s, p->tag[0] != '\0');
	}
	q->pending = NULL;
	pending_free(&x->engine->table.pendings, p);
}
