/* SPDX-License-Identifier: BSD-2-Clause */
/* See jobs.h. */
#include "daemon/core/session/jobs.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"

const char job_is_adopted_text[] = "the daemon was restarted, and the stores have not confirmed the job and its lock since: ask again in a moment";

static void job_count(struct request_context *x, const struct job *job, int n)
{
	x->jobs_at_stake += (unsigned)(job->state != JOB_LOST ? n : 0);
	metric_add(&x->core->metrics, METRIC_JOBS_HELD, job_is_had(job) ? n : 0);
}

struct job *job_new(struct request_context *x, struct span queue, struct span id, struct span lock)
{
	struct job *job = mem_alloc(sizeof(*job));

	job->asker = ASKER_JOB;
	job->queue = mem_span(queue);
	job->id = mem_span(id);
	job->lock = mem_span(lock);
	job->timer.kind = TIMER_JOB;
	job->until = job->renew_at = INSTANT_NEVER;
	LIST_INSERT_HEAD(&x->jobs, job, in_all);
	job_count(x, job, 1);
	return job;
}

void job_set_state(struct request_context *x, struct job *job, enum job_state to)
{
	job_count(x, job, -1);
	job->state = to;
	job_count(x, job, 1);
}

void job_free(struct request_context *x, struct job *job)
{
	if (job->question)
		job->question->about = NULL;
	heap_cancel(&x->core->timers, &job->timer);
	job_set_session(job, NULL);
	LIST_REMOVE(job, in_all);
	job_count(x, job, -1);
	mem_span_free(&job->queue);
	mem_span_free(&job->id);
	mem_span_free(&job->lock);
	mem_span_free(&job->former);
	mem_free(job);
}

void job_set_session(struct job *job, struct session *s)
{
	if (job->session)
		LIST_REMOVE(job, in_session);
	job->session = s;
	if (s)
		LIST_INSERT_HEAD(&s->jobs, job, in_session);
}

struct job *job_find(const struct session *s, struct span queue, struct span id, bool *ret_more)
{
	struct job *job, *found = NULL;

	*ret_more = false;
	LIST_FOREACH(job, &s->jobs, in_session) {
		if (job->state == JOB_ENDING || !span_equal(job->id, id) || (queue.n > 0 && !span_equal(job->queue, queue)))
			continue;
		*ret_more |= found && !span_equal(found->queue, job->queue);
		if (!found || found->state == JOB_LOST)
			found = job;
	}
	return found;
}

struct job *job_find_ending(const struct session *s, struct span queue, struct span id)
{
	struct job *job;

	LIST_FOREACH(job, &s->jobs, in_session) {
		bool waits = job->pending && job->pending->session;

		if (job->state == JOB_ENDING && !waits && !job->superseded && span_equal(job->id, id) && (queue.n == 0 || span_equal(job->queue, queue)))
			return job;
	}
	return NULL;
}

struct span job_owner(const struct job *job, char *out)
{
	char *at = out;

	memcpy(at, "job:", 4);
	at += 4;
	memcpy(at, job->queue.p, job->queue.n);
	at += job->queue.n;
	*at++ = '/';
	memcpy(at, job->id.p, job->id.n);
	at += job->id.n;
	return (struct span){out, (size_t)(at - out)};
}

struct claim *job_claim(const struct request_context *x, const struct job *job)
{
	char owner[JOB_OWNER_MAX];
	struct lock *l = job->lock.n > 0 ? lock_find(&x->engine->table, job->lock) : NULL;

	return l ? lock_claim_of(l, job->session, job_owner(job, owner)) : NULL;
}

bool job_shares_lock(const struct job *job)
{
	char own[JOB_OWNER_MAX], others[JOB_OWNER_MAX];
	const struct job *other;

	LIST_FOREACH(other, &job->session->jobs, in_session)
		if (other != job && span_equal(other->lock, job->lock) && span_equal(job_owner(other, others), job_owner(job, own)))
			return true;
	return false;
}

struct instant job_loss_due(const struct job *job)
{
	return instant_add(job->until, -loss_lead_us(job->ttl_us));
}

int64_t job_valid_us(const struct job *job, struct instant now)
{
	int64_t left = instant_diff(job->until, now);

	return left < 0 ? 0 : left < job->ttl_us ? left : job->ttl_us;
}

struct job_queue *job_queue_find(const struct request_context *x, struct span name)
{
	struct job_queue *queue;

	LIST_FOREACH(queue, &x->queues, in_all)
		if (span_equal(queue->name, name))
			return queue;
	return NULL;
}

void job_queue_count_for(struct job_queue *queue, struct origin *o)
{
	struct origin *before = queue->origin;

	if (o)
		o->queues++;
	queue->origin = o;
	if (!before)
		return;
	before->queues--;
	origin_drop_if_unused(before);
}

struct job_queue *job_queue_new(struct request_context *x, struct span name)
{
	struct job_queue *queue = mem_alloc(sizeof(*queue));

	queue->asker = ASKER_QUEUE;
	queue->name = mem_span(name);
	queue->timer.kind = TIMER_QUEUE;
	TAILQ_INIT(&queue->waiting);
	TAILQ_INIT(&queue->ending);
	LIST_INSERT_HEAD(&x->queues, queue, in_all);
	x->queues_n++;
	return queue;
}

void job_queue_free(struct request_context *x, struct job_queue *queue)
{
	if (queue->question)
		queue->question->about = NULL;
	heap_cancel(&x->core->timers, &queue->timer);
	LIST_REMOVE(queue, in_all);
	x->queues_n--;
	job_queue_count_for(queue, NULL);
	for (unsigned i = 0; i < BUSY_LOCKS; i++)
		mem_span_free(&queue->busy[i]);
	mem_span_free(&queue->after_id);
	mem_span_free(&queue->name);
	mem_free(queue);
}

void job_queue_note(struct request_context *x, struct span name)
{
	struct job_queue *queue = job_queue_find(x, name);

	if (!queue)
		return;
	queue->again = x->queue_due = true;
}

bool job_read(struct span *text, struct job_leased *j)
{
	int64_t attempt;

	if (!netstring_next(text, &j->id) || j->id.n > JOB_ID_MAX || !netstring_next_int(text, &attempt) || !netstring_next(text, &j->lock) ||
	    j->lock.n > NAME_MAX_BYTES || !netstring_next(text, &j->payload) || !netstring_next_int(text, &j->due_ms) || attempt < 1 ||
	    attempt > UINT32_MAX)
		return false;
	j->attempt = (unsigned)attempt;
	return true;
}

void jobs_note_failed(struct request_context *x, struct span queue, struct span ids)
{
	struct span id;

	while (netstring_next(&ids, &id)) {
		metric_add(&x->core->metrics, METRIC_JOBS_FAILED, 1);
		if (core_may_log(x->core, BURST_JOB))
			core_log(x->core, LOG_WARN, "job-failed", "queue=%s job=%s note=\"it has failed for good: RETRY makes it due again\"",
			         core_quoted(x->core, queue), core_quoted(x->core, id));
	}
}

struct take_share *take_share_find(const struct origin *o, const struct job_queue *queue)
{
	struct take_share *share;

	LIST_FOREACH(share, &o->takes, of_origin)
		if (share->queue == queue)
			return share;
	return NULL;
}

void take_share_join(struct take *take)
{
	take->share = take_share_find(take->bid.origin, take->queue);
	if (!take->share) {
		take->share = mem_alloc(sizeof(*take->share));
		take->share->queue = take->queue;
		LIST_INSERT_HEAD(&take->bid.origin->takes, take->share, of_origin);
	}
	take->share->n++;
}

void take_share_leave(struct take *take)
{
	if (!take->share || --take->share->n > 0)
		return;
	LIST_REMOVE(take->share, of_origin);
	mem_free(take->share);
}

static void patient_count(struct request_context *x, struct job_queue *queue, int n)
{
	queue->patient += (unsigned)n;
	metric_add(&x->core->metrics, METRIC_TAKES_WAITING, n);
}

void take_join_line(struct request_context *x, struct take *take, struct take *before)
{
	if (before)
		TAILQ_INSERT_BEFORE(before, take, in_queue);
	else
		TAILQ_INSERT_TAIL(&take->queue->waiting, take, in_queue);
	patient_count(x, take->queue, take->bid.patient);
	if (!take->bid.patient)
		take_end_with_pass(take);
}

void take_leave_line(struct request_context *x, struct take *take)
{
	TAILQ_REMOVE(&take->queue->waiting, take, in_queue);
	patient_count(x, take->queue, -take->bid.patient);
	if (take->ends)
		TAILQ_REMOVE(&take->queue->ending, take, in_ending);
	take->ends = false;
}

void take_wait_no_more(struct request_context *x, struct take *take)
{
	take->bid.patient = false;
	if (take->job)
		return;
	patient_count(x, take->queue, -1);
	take_end_with_pass(take);
}

void take_end_with_pass(struct take *take)
{
	if (!take->ends)
		TAILQ_INSERT_TAIL(&take->queue->ending, take, in_ending);
	take->ends = true;
}
