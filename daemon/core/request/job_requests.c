/* SPDX-License-Identifier: BSD-2-Clause */
/* See requests.h. */
#include "daemon/core/request/requests.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/job/job.h"
#include "daemon/core/rate/rate.h"
#include "daemon/core/reply/send.h"

#include <inttypes.h>
#include <stdio.h>

_Static_assert(2 * NAME_MAX_BYTES + PAYLOAD_MAX <= JOB_TEXT_MAX, "stores keep the longest job");

#define QUEUES_OF_PEER 1024 /* in which TAKEs of one peer's sessions wait, … */
#define QUEUES_OF_ALL  4096 /* … and of all peers: each queue is a key at its home, and each TAKE looks through all queues */
#define TAKES_OF_QUEUE 8192 /* that wait in one queue: each answer of the home is for one of them, and all are looked through … */
#define TAKES_OF_PEER  4096 /* … and of one peer, so that others have room */

/* --- DEFER --- */

static bool text_is_allowed(struct request_context *x, struct session *s, struct span text, const char *what, uint64_t most)
{
	bool has_nul = text.n > 0 && memchr(text.p, 0, text.n);

	if (text.n > 0 && text.n <= most && !has_nul)
		return true;
	if (has_nul)
		send_invalid(x, s, ERROR_ARG, "the %s has a NUL byte, which no command line and no environment variable can hold: write it as text", what);
	else if (text.n == 0)
		send_invalid(x, s, ERROR_ARG, "the %s has no text: 1 to %" PRIu64 " bytes are right", what, most);
	else
		send_invalid(x, s, ERROR_LIMIT, "the %s may have at most %" PRIu64 " bytes", what, most);
	return false;
}

static struct span field_text(const struct request *q, enum field f)
{
	return request_has(q, f) ? q->field[f].text : SPAN("");
}

static bool job_terms_are_allowed(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;

	if (!text_is_allowed(x, s, q->word[0], "name of the queue", x->core->conf.limits.name) ||
	    (request_has(q, FIELD_LOCK) && !text_is_allowed(x, s, q->field[FIELD_LOCK].text, "name of the lock", x->core->conf.limits.name)) ||
	    (request_has(q, FIELD_ID) && !text_is_allowed(x, s, q->field[FIELD_ID].text, "id", JOB_ID_MAX)) ||
	    !bound_is_kept(x, s, FIELD_DELAY, DURATION_MAX, "ten years"))
		return false;
	if (x->engine->stopping)
		send_draining(x, s, q->tag);
	else if (q->word[1].n > PAYLOAD_MAX)
		send_invalid(x, s, ERROR_LIMIT, "the payload may have at most %d bytes", PAYLOAD_MAX);
	else
		return pendings_within_limit(x, s);
	return false;
}

/* Also the id of the job if the request has none. If jobs become due in the same millisecond, ids keep the order of the DEFERs of this daemon. */
static struct span nonce_make(struct request_context *x, char *out)
{
	int n = snprintf(out, JOB_ID_MAX, "%.16s-%010" PRIu64, x->core->daemon_id, ++x->orders);

	return (struct span){out, (size_t)n};
}

static int64_t delay_ms(const struct request *q)
{
	return request_has(q, FIELD_DELAY) ? whole_ms(q->field[FIELD_DELAY].number) : 0;
}

/* By the clock of the home; 0: that clock is not known. */
static int64_t order_not_after_ms(const struct request_context *x, struct span queue)
{
	return member_server_ms(&x->engine->members.node[rendezvous_node(x->core, HOME_OF_QUEUE, queue, 0)], job_order_until(x));
}

static bool orders_have_room(struct request_context *x, struct session *s, size_t bytes)
{
	uint64_t output = x->core->conf.limits.output;
	unsigned times = origin_orders_full(s->origin, bytes, output);

	if (times > 0)
		send_invalid(x, s, ERROR_LIMIT, "%s may have at most %" PRIu64 " bytes of jobs in flight at the stores (%u times limits.output)",
		             times == CROWD_OF_ALL ? "all sessions together" : "the sessions of one peer", times * output, times);
	return times == 0;
}

void serve_DEFER(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	char room[JOB_ID_MAX];
	struct buf words = {0};
	struct span nonce;

	if (!job_terms_are_allowed(x, s))
		return;
	nonce = nonce_make(x, room);
	netstring_put(&words, q->word[1]);
	netstring_put(&words, field_text(q, FIELD_LOCK));
	netstring_put_int(&words, delay_ms(q));
	netstring_put_int(&words, (int64_t)x->core->conf.limits.jobs);
	netstring_put(&words, nonce);
	netstring_put_int(&words, order_not_after_ms(x, q->word[0]));
	stored_put_terms(x, s, &words);
	netstring_put_int(&words, whole_ms(x->core->conf.jobs_keep_us));
	if (orders_have_room(x, s, buf_length(&words)))
		job_order_new(x, s, q->word[0], request_has(q, FIELD_ID) ? q->field[FIELD_ID].text : nonce, &words);
	buf_release(&words);
}

/* --- TAKE --- */

static bool take_is_allowed(struct request_context *x, struct session *s, bool patient)
{
	const struct core_conf *conf = &x->core->conf;
	const struct take *take;
	const struct job *job;
	uint64_t waiting = 0, jobs = 0;

	if (!name_is_allowed(x, s) || !ttl_is_allowed(x, s))
		return false;
	if (x->engine->draining) {
		send_draining(x, s, x->request.tag);
		return false;
	}
	for (take = take_first(s); take; take = take_next(take))
		waiting++;
	LIST_FOREACH(job, &s->jobs, in_session)
		jobs++;
	if (patient && waiting >= conf->limits.waiting)
		send_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " waiting requests (limits.waiting)", conf->limits.waiting);
	else if (jobs + waiting >= conf->limits.locks)
		send_error(x, s, x->request.tag, ERROR_LIMIT, "a session may have at most %" PRIu64 " jobs (limits.locks)", conf->limits.locks);
	else
		return true;
	return false;
}

static bool queues_have_room(struct request_context *x, struct session *s)
{
	bool all = x->queues_n >= QUEUES_OF_ALL;

	if (!all && (s->origin->queues < QUEUES_OF_PEER || session_is_owner(x->core, s)))
		return true;
	send_error(x, s, x->request.tag, ERROR_LIMIT, "%s may wait for the jobs of at most %d queues",
	           all ? "all sessions together" : "the sessions of one peer", all ? QUEUES_OF_ALL : QUEUES_OF_PEER);
	return false;
}

static bool queue_has_room(struct request_context *x, struct session *s, const struct job_queue *queue)
{
	const struct take_share *share;

	if (!queue)
		return queues_have_room(x, s);
	share = session_is_owner(x->core, s) ? NULL : take_share_find(s->origin, queue);
	if (queue->takes >= TAKES_OF_QUEUE)
		send_error(x, s, x->request.tag, ERROR_LIMIT, "at most %d TAKEs may wait for the jobs of one queue", TAKES_OF_QUEUE);
	else if (share && share->n >= TAKES_OF_PEER)
		send_error(x, s, x->request.tag, ERROR_LIMIT, "at most %d TAKEs of the sessions of one peer may wait for the jobs of one queue", TAKES_OF_PEER);
	else
		return true;
	return false;
}

void serve_TAKE(struct request_context *x, struct session *s)
{
	const struct request *r = &x->request;
	int64_t wait = request_has(r, FIELD_WAIT) ? r->field[FIELD_WAIT].number : 0;
	struct job_queue *queue;
	struct take *take;

	if (!take_is_allowed(x, s, wait > 0) || take_again(x, s))
		return;
	queue = job_queue_find(x, r->word[0]);
	if (!crowd_has_room(x, s) || !queue_has_room(x, s, queue))
		return;
	if (!queue) {
		queue = job_queue_new(x, r->word[0]);
		job_queue_count_for(queue, s->origin);
	}
	take = mem_alloc(sizeof(*take));
	bid_open_request(x, &take->bid, BID_TAKE, s, 1);
	take->queue = queue;
	queue->takes++;
	if (!session_is_owner(x->core, s))
		take_share_join(take);
	take->late = queue->question != NULL;
	place_enqueue(x, take);
	if (take->bid.patient)
		heap_set(&x->core->timers, &take->bid.timer, take->bid.wait_until);
	queue_look(x, queue);
}

/* --- DONE and RETRY --- */

/* Returns the job that the session has; NULL: the request was answered, or the session has no job of that id. */
static struct job *job_of_request(struct request_context *x, struct session *s, bool *ret_answered)
{
	const struct request *q = &x->request;
	bool more;
	struct job *job = job_find(s, field_text(q, FIELD_QUEUE), q->word[0], &more);

	*ret_answered = job != NULL;
	if (!job)
		return NULL;
	if (more) {
		send_invalid(x, s, ERROR_ARG, "this session has a job of that id in several queues: say queue=");
	} else if (job->state == JOB_LOST) {
		send_error(x, s, q->tag, ERROR_LOST, "reason=%s: lost before this request", loss_word(job->loss));
		job_acknowledge(x, job);
	} else if (job->state == JOB_ADOPTING) {
		send_error(x, s, q->tag, ERROR_UNAVAILABLE, "%s", job_is_adopted_text);
	} else {
		*ret_answered = !pendings_within_limit(x, s);
		return *ret_answered ? NULL : job;
	}
	return NULL;
}

/* The request repeats one whose answer the client may not have read. False: it does not. */
static bool end_is_repeated(struct request_context *x, struct session *s, enum job_end end)
{
	struct job *job = job_find_ending(s, field_text(&x->request, FIELD_QUEUE), x->request.word[0]);

	if (!job || job->end != end)
		return false;
	if (pendings_within_limit(x, s))
		job_end_again(x, job, pending_of_request(x, s, NULL));
	return true;
}

void serve_DONE(struct request_context *x, struct session *s)
{
	bool answered;
	struct job *job = job_of_request(x, s, &answered);

	if (job)
		job_end(x, job, JOB_DONE, pending_of_request(x, s, NULL));
	else if (!answered && !end_is_repeated(x, s, JOB_DONE))
		send_error(x, s, x->request.tag, ERROR_NOTHELD, "this session does not have the job");
}

/* RETRY of a job that the session does not have: it may have failed for good, or be delayed. It becomes due. */
static void retry_stored(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct buf words = {0};

	if (!request_has(q, FIELD_QUEUE)) {
		send_error(x, s, q->tag, ERROR_NOTHELD,
		           "this session does not have the job. To make one due that has failed for good or is delayed, say its queue=");
		return;
	}
	if (!text_is_allowed(x, s, q->word[0], "id", JOB_ID_MAX) ||
	    !text_is_allowed(x, s, q->field[FIELD_QUEUE].text, "name of the queue", x->core->conf.limits.name) || !pendings_within_limit(x, s))
		return;
	netstring_put_int(&words, delay_ms(q));
	job_order_new(x, s, q->field[FIELD_QUEUE].text, q->word[0], &words);
	buf_release(&words);
}

void serve_RETRY(struct request_context *x, struct session *s)
{
	bool answered, failed = !request_has(&x->request, FIELD_FAILED) || x->request.field[FIELD_FAILED].number;
	struct job *job;

	if (!bound_is_kept(x, s, FIELD_DELAY, DURATION_MAX, "ten years"))
		return;
	job = job_of_request(x, s, &answered);
	if (job) {
		job->wakes = !failed;
		job->delay_us = delay_ms(&x->request) * MSEC;
		job_end(x, job, failed ? JOB_FAILED : JOB_BACK, pending_of_request(x, s, NULL));
	} else if (!answered && !end_is_repeated(x, s, failed ? JOB_FAILED : JOB_BACK)) {
		retry_stored(x, s);
	}
}

void serve_DROP(struct request_context *x, struct session *s)
{
	const struct request *q = &x->request;
	struct buf words = {0};

	if (text_is_allowed(x, s, q->word[0], "name of the queue", x->core->conf.limits.name) && text_is_allowed(x, s, q->word[1], "id", JOB_ID_MAX) &&
	    pendings_within_limit(x, s))
		job_order_new(x, s, q->word[0], q->word[1], &words);
}
