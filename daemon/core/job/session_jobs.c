/* SPDX-License-Identifier: BSD-2-Clause */
/* See session_jobs.h. */
#include "daemon/core/job/session_jobs.h"

#include "daemon/core/job/job.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/rows.h"

/* --- sessions --- */

/* One whose end is under way goes on to be told. */
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

unsigned jobs_tell(struct request_context *x, struct session *s, size_t begin, int64_t *more)
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

void jobs_tell_lost(struct request_context *x, struct session *s)
{
	struct job *job;

	LIST_FOREACH(job, &s->jobs, in_session)
		if (job->state == JOB_LOST && job->not_notified)
			job_tell_lost(x, job);
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

/* JOB_ADOPTING until the last record is read: then it ends. */
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
	job->former = job_text_keep(r->value);
	job->here = r->flags & JOURNAL_HEARD;
	job->at_risk = r->flags & JOURNAL_RISK;
	job->attempt = (unsigned)r->attempt;
	job->ttl_us = r->ttl_us < x->core->conf.max_lease_us ? r->ttl_us : x->core->conf.max_lease_us;
	job_set_session(job, s);
	return true;
}

/* If it is not known whether its client was told, it is told again. */
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
	job->not_notified = !(r->flags & JOURNAL_HEARD);
	job_set_session(job, s);
	return true;
}

/* The home is asked when the step is over: no store is connected yet. The home knows no job by the value of another daemon that is read here: it is lost. */
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
