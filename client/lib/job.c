/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions about deferred work (redlock.h). The library repeats TAKE, but no other of these requests. */
#include "client/lib/exchange.h"
#include "client/lib/boottime.h"
#include "client/lib/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define END_MS 30000 /* how long the daemon may repeat a DONE or a RETRY at the home of the queue: for the length of the lease */

int redlock_defer(struct redlock *c, const char *queue, struct redlock_bytes payload, const struct redlock_deferral *options, char *ret_id)
{
	struct redlock_deferral taken, *o = &taken;
	struct draft *d = &c->draft;
	int r = conn_take(c, o, options);

	if (!r)
		r = conn_name(c, queue, NAME_MAX_BYTES, "the name of a queue");
	if (!r && o->lock)
		r = conn_name(c, o->lock, NAME_MAX_BYTES, "the name of a lock");
	if (!r && o->id)
		r = conn_name(c, o->id, REDLOCK_JOB_BYTES - 1, "the id of a job");
	if (!r && payload.n > PAYLOAD_MAX)
		r = conn_error(c, -EMSGSIZE, "a payload has at most %d bytes", PAYLOAD_MAX);
	if (r)
		return r;
	draft_begin(d, "DEFER", queue);
	draft_bytes(d, " ", payload);
	draft_positive(d, "delay", o->delay_ms, "ms");
	draft_quoted(d, " lock=", o->lock);
	draft_quoted(d, " id=", o->id);
	r = await_draft(c, PENDING_ONCE, ONCE_MS, NULL, NULL);
	if (!r && ret_id)
		line_copy(&c->answer, "job", ret_id, REDLOCK_JOB_BYTES);
	return r;
}

static bool has_nul(struct redlock_bytes text)
{
	return text.n > 0 && memchr(text.p, 0, text.n);
}

int redlock_taken(struct redlock *c, struct redlock_job *ret_job)
{
	const struct redlock_line *answer = redlock_answer(c);
	struct redlock_bytes payload;
	struct redlock_job job;

	if (!answer || answer->parsed.kind != LINE_OK)
		return conn_error(c, -EINVAL, "no job was taken");
	if (has_nul(redlock_line_find(answer, "job")) || has_nul(redlock_line_find(answer, "name")))
		return conn_error(c, -EILSEQ, "the id of the job, or the name of its lock, has a NUL byte");
	payload = redlock_line_find(answer, "payload");
	job = (struct redlock_job){
		.attempt = redlock_line_number(answer, "attempt", 0),
		.fence = redlock_line_number(answer, "fence", 0),
		.ttl_ms = line_bounded(&answer->parsed, "ttl_ms", 0),
		.payload_n = payload.n,
	};
	line_copy(answer, "job", job.id, sizeof(job.id));
	line_copy(answer, "name", job.lock, sizeof(job.lock));
	if (!job.id[0] || !payload.p)
		return conn_break(c, -EPROTO, "redlockd's answer lacks job or payload");
	job.payload = malloc(payload.n + 1);
	if (!job.payload)
		return conn_break(c, -ENOMEM, "out of memory");
	memcpy(job.payload, payload.p, payload.n);
	job.payload[payload.n] = '\0';
	*ret_job = job;
	return 0;
}

/* Nobody else knows of a job that was just taken. So CHECK is sent again over the next connection, within the same time. */
static int taken_check(struct redlock *c, const char *queue, const char *id, struct redlock_grant *ret_grant)
{
	int64_t timeout_ms = c->timeout_ms, until = boottime_after(timeout_ms);
	int r = redlock_check_job(c, queue, id, ret_grant);

	while (r == -ECONNABORTED && redlock_now_us() < until) {
		c->timeout_ms = boottime_poll_ms(until) > 0 ? boottime_poll_ms(until) : 1;
		r = redlock_check_job(c, queue, id, ret_grant);
	}
	c->timeout_ms = timeout_ms;
	if (r && r != REDLOCK_REFUSED)
		unchecked_jobs_give_up(&c->unchecked, queue, id);
	return r;
}

int redlock_take_send(struct redlock *c, const char *queue, const struct redlock_options *options)
{
	struct redlock_options taken, *o = &taken;
	struct draft *d = &c->draft;
	int r = conn_take(c, o, options);

	if (!r)
		r = conn_name(c, queue, NAME_MAX_BYTES, "the name of a queue");
	if (r)
		return r;
	draft_begin(d, o->cancellable ? TAG_TO_CANCEL "TAKE" : "TAKE", queue);
	draft_wait(d, o->wait_ms);
	if (o->ttl_ms)
		draft_ms(d, "ttl", o->ttl_ms);
	return exchange_send(c, PENDING_TAKE, "", o->wait_ms < 0 ? o->wait_ms : o->wait_ms + ONCE_MS);
}

/* The validity is that of a CHECK, because the TAKE may have waited for long. */
int redlock_take(struct redlock *c, const char *queue, const struct redlock_options *options, struct redlock_job *ret_job)
{
	struct redlock_grant grant;
	struct redlock_job job;
	int r = await_answer(c, redlock_take_send(c, queue, options));

	if (!r)
		r = redlock_taken(c, &job);
	if (r)
		return r;
	r = taken_check(c, queue, job.id, &grant);
	if (r) {
		free(job.payload);
		return r;
	}
	job.until_us = grant.until_us;
	*ret_job = job;
	return 0;
}

int redlock_check_job_send(struct redlock *c, const char *queue, const char *id)
{
	draft_begin(&c->draft, "CHECK", queue);
	draft_quoted(&c->draft, " job=", id);
	return exchange_send(c, PENDING_ONCE, "", 0);
}

int redlock_job_grant(const struct redlock *c, struct redlock_grant *ret_grant)
{
	int64_t valid = c->answered ? redlock_line_number(&c->answer, "valid_ms", -1) : -1;

	if (valid < 0 || valid > DURATION_MAX / US_PER_MS || c->answer.parsed.kind != LINE_OK)
		return -EINVAL;
	*ret_grant = (struct redlock_grant){.valid_ms = valid, .until_us = c->answer_sent_us + valid * US_PER_MS};
	return 0;
}

int redlock_check_job(struct redlock *c, const char *queue, const char *id, struct redlock_grant *ret_grant)
{
	int r = await_answer(c, redlock_check_job_send(c, queue, id));

	if (!r && redlock_job_grant(c, ret_grant))
		r = conn_break(c, -EPROTO, "redlockd's answer lacks valid_ms");
	return r;
}

static int job_ask(struct redlock *c, const char *verb, const char *queue, const char *id, int64_t delay_ms)
{
	struct draft *d = &c->draft;

	draft_begin(d, verb, id);
	draft_quoted(d, " queue=", queue);
	draft_positive(d, "delay", delay_ms, "ms");
	return await_draft(c, PENDING_ONCE, END_MS, NULL, NULL);
}

int redlock_done(struct redlock *c, const char *queue, const char *id)
{
	return job_ask(c, "DONE", queue, id, 0);
}

int redlock_drop(struct redlock *c, const char *queue, const char *id)
{
	struct draft *d = &c->draft;

	draft_begin(d, "DROP", queue);
	draft_quoted(d, " ", id);
	return await_draft(c, PENDING_ONCE, END_MS, NULL, NULL);
}

int redlock_retry(struct redlock *c, const char *queue, const char *id, int64_t delay_ms)
{
	return job_ask(c, "RETRY", queue, id, delay_ms);
}
