/* SPDX-License-Identifier: BSD-2-Clause */
/* See taken_job.h. */
#include "client/cli/run/taken_job.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PAUSE_US     500000 /* before a TAKE that the daemon cannot serve now is sent again */
#define RETRY_ANSWER_MS 30000         /* the daemon may repeat it at the home of the queue for so long */
#define RETRY_FIRST_MS  INT64_C(1000) /* after the first attempt; then twice as long each time … */
#define RETRY_MOST_MS   INT64_C(300000) /* … up to here */

static bool code_is(const struct redlock *c, const char *code)
{
	return !strcmp(redlock_code(c), code);
}

int taken_job_retry(struct redlock *c, const char *queue, struct redlock_bytes id, const char *how)
{
	char line[4 * REDLOCK_NAME_BYTES + 4 * REDLOCK_JOB_BYTES + 96], quoted[4 * REDLOCK_NAME_BYTES], job[4 * REDLOCK_JOB_BYTES];

	if (redlock_quote((struct redlock_bytes){queue, strlen(queue)}, quoted, sizeof(quoted)) || redlock_quote(id, job, sizeof(job)))
		return -EMSGSIZE;
	snprintf(line, sizeof(line), "RETRY %s queue=%s%s", job, quoted, how);
	return redlock_request(c, line, RETRY_ANSWER_MS, NULL, NULL);
}

/* This attempt has failed. The pauses grow, so a dependency that is away for a while does not cost a job all its attempts. */
static int job_failed(struct redlock *c, const struct invocation *in, struct redlock_bytes id, int64_t attempt)
{
	int64_t pause_ms = MIN(RETRY_FIRST_MS << MAX(0, MIN(attempt - 1, 20)), RETRY_MOST_MS);
	char delay[40];

	snprintf(delay, sizeof(delay), " delay=%lldms", (long long)(in->delay_ms >= 0 ? in->delay_ms : pause_ms));
	return taken_job_retry(c, in->operand, id, delay);
}

static int take_send(const struct waiting *w, int64_t until)
{
	const struct invocation *in = w->in;
	struct redlock_options options = {.size = sizeof(options), .wait_ms = in->wait_ms, .ttl_ms = in->ttl_ms};

	/* A millisecond is left at least, so that the end is TIMEOUT and not BUSY. */
	if (in->wait_ms > 0)
		options.wait_ms = MAX(1, (until - redlock_now_us() + 999) / 1000);
	return redlock_take_send(w->c, in->operand, &options);
}

/* The daemon or the home of the queue cannot serve it now. */
static bool take_is_repeated(const struct waiting *w, int r)
{
	return r == -ECONNABORTED ||
	       (r == REDLOCK_REFUSED && (code_is(w->c, "UNAVAILABLE") || code_is(w->c, "QUORUM") || code_is(w->c, "DRAINING")));
}

/* 0: it was given back, with a complaint: no environment variable can hold its id, or the name of its lock. */
static int job_give_back(struct waiting *w)
{
	const struct redlock_line *answer = redlock_answer(w->c);
	struct redlock_bytes id = redlock_line_find(answer, "job");
	char job[SHOWN_BYTES], queue[SHOWN_BYTES];

	field_show(answer, "job", job, sizeof(job));
	complain("job %s of %s cannot be run: its id, or the name of its lock, has a NUL byte", job, shown(w->in->operand, queue));
	return job_failed(w->c, w->in, id, redlock_line_number(answer, "attempt", 1));
}

bool taken_job_take(struct waiting *w, struct redlock_job *ret_job)
{
	int64_t until = w->in->wait_ms < 0 ? INT64_MAX : redlock_now_us() + w->in->wait_ms * 1000;
	bool told = false;
	int r;

	for (;;) {
		r = take_send(w, until);
		if (!r)
			r = waiting_answer(w, until, NULL);
		if (!r)
			r = redlock_taken(w->c, ret_job);
		if (r == -EILSEQ && !(r = job_give_back(w)))
			continue;
		if (!take_is_repeated(w, r) || w->in->wait_ms == 0 || redlock_now_us() >= until)
			break;
		if (r == REDLOCK_REFUSED && !told)
			complain("%s", redlock_errmsg(w->c));
		told |= r == REDLOCK_REFUSED;
		if (r == REDLOCK_REFUSED)
			waiting_sleep(w, redlock_now_us() + PAUSE_US);
		if (w->abandoned)
			break;
	}
	if (!r)
		return true;
	w->exit = r == REDLOCK_BUSY || r == REDLOCK_TIMEOUT ? EXIT_SUCCESS : EXIT_FAILED;
	if (w->exit && !w->abandoned)
		complain("%s", r == -ETIMEDOUT ? "redlockd does not answer" : redlock_errmsg(w->c));
	return false;
}

bool taken_job_is_lost(const struct keeper_task *task, const struct redlock_line *push)
{
	const struct redlock_job *job = task->job;

	if (field_is(push, "job", job->id))
		return field_is(push, "queue", task->in->operand);
	return job->lock[0] && field_is(push, "name", job->lock) && redlock_line_number(push, "fence", 0) == job->fence;
}

/*
 * Said again after the connection broke, for else the job is run again. What the session does not have any more was done then, unless the session lost it, or
 * is another one: the first ended with the connection.
 */
static int done_say(const struct keeper_task *task)
{
	int64_t until = redlock_now_us() + task->job->ttl_ms * 1000;
	const struct redlock_line *push;
	char session[64];
	unsigned times = 0;
	int r;

	snprintf(session, sizeof(session), "%s", redlock_session_id(task->c));
	do
		r = redlock_done(task->c, task->in->operand, task->job->id);
	while (times++, r == -ECONNABORTED && redlock_now_us() < until);
	if (times == 1 || r != REDLOCK_REFUSED || !code_is(task->c, "NOTHELD") || strcmp(session, redlock_session_id(task->c)) != 0)
		return r;
	while ((push = redlock_next_push(task->c)))
		if (redlock_line_is(push, "LOST") && taken_job_is_lost(task, push))
			return r;
	return 0;
}

int taken_job_end(const struct keeper_task *task, enum attempt attempt)
{
	struct redlock_bytes id = {task->job->id, strlen(task->job->id)};

	if (attempt == ATTEMPT_DONE)
		return done_say(task);
	if (attempt == ATTEMPT_FAILED)
		return job_failed(task->c, task->in, id, task->job->attempt);
	return taken_job_retry(task->c, task->in->operand, id, " failed=no");
}

bool taken_job_is_over(const struct keeper_task *task, char *out, size_t size)
{
	char id[SHOWN_BYTES], queue[SHOWN_BYTES];

	if (!field_is(redlock_answer(task->c), "state", "dead"))
		return false;
	snprintf(out, size, "job %s of %s has failed for good, after %lld attempts", shown(task->job->id, id), shown(task->in->operand, queue),
		 (long long)task->job->attempt);
	return true;
}

int taken_job_environment(const struct keeper_task *task)
{
	const struct redlock_job *job = task->job;
	char attempt[24], fence[24];

	snprintf(attempt, sizeof(attempt), "%lld", (long long)job->attempt);
	snprintf(fence, sizeof(fence), "%lld", (long long)job->fence);
	if (setenv("REDLOCK_QUEUE", task->in->operand, 1) || setenv("REDLOCK_JOB", job->id, 1) || setenv("REDLOCK_ATTEMPT", attempt, 1))
		return -errno;
	if (job->lock[0] && (setenv("REDLOCK_NAME", job->lock, 1) || setenv("REDLOCK_FENCE", fence, 1)))
		return -errno;
	return 0;
}
