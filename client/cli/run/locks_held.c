/* SPDX-License-Identifier: BSD-2-Clause */
/* See locks_held.h. */
#include "client/cli/run/locks_held.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/lib/display.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define CHECK_AGAIN_MS       100
#define PAUSE_US        500000 /* before a TAKE that the daemon cannot serve now is sent again */
#define RETRY_ANSWER_MS 30000 /* the daemon may repeat it at the home of the queue for that long */
#define RETRY_FIRST_MS  INT64_C(1000) /* the pause after the first attempt; then it doubles each time … */
#define RETRY_MOST_MS   INT64_C(300000) /* … up to here */

static bool code_is(const struct redlock *c, const char *code)
{
	return !strcmp(redlock_code(c), code);
}

/* --- taking a job, or giving it back --- */

int taken_job_retry(struct redlock *c, const char *queue, struct redlock_bytes id, const char *how)
{
	char line[4 * REDLOCK_NAME_BYTES + 4 * REDLOCK_JOB_BYTES + 96], quoted[4 * REDLOCK_NAME_BYTES], job[4 * REDLOCK_JOB_BYTES];

	if (redlock_quote((struct redlock_bytes){queue, strlen(queue)}, quoted, sizeof(quoted)) || redlock_quote(id, job, sizeof(job)))
		return -EMSGSIZE;
	snprintf(line, sizeof(line), "RETRY %s queue=%s%s", job, quoted, how);
	return redlock_request(c, line, RETRY_ANSWER_MS, NULL, NULL);
}

/* Reports that this attempt has failed. The pauses grow, so that a job does not use up its attempts while something that it needs is away. */
static int job_failed(struct redlock *c, const struct invocation *in, struct redlock_bytes id, int64_t attempt)
{
	int64_t pause_ms = MIN(RETRY_FIRST_MS << MAX(0, MIN(attempt - 1, 20)), RETRY_MOST_MS);
	char delay[40];

	snprintf(delay, sizeof(delay), " delay=%lldms", (long long)(in->delay_ms >= 0 ? in->delay_ms : pause_ms));
	return taken_job_retry(c, in->operand, id, delay);
}

/* Whether the daemon or the home of the queue cannot serve a TAKE now. */
static bool take_is_repeated(const struct redlock *c, int r)
{
	return r == -ECONNABORTED || (r == REDLOCK_REFUSED && (code_is(c, "UNAVAILABLE") || code_is(c, "QUORUM") || code_is(c, "DRAINING")));
}

/* Gives the job back after a complaint, because no environment variable can hold a NUL. 0: it was given back. */
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
	struct redlock_options options = {.size = sizeof(options), .wait_ms = w->in->wait_ms, .ttl_ms = w->in->ttl_ms};
	int64_t until = w->in->wait_ms < 0 ? INT64_MAX : redlock_now_us() + w->in->wait_ms * 1000;
	bool complained = false;
	int r;

	for (;;) {
		/* At least a millisecond is left, so that the answer is TIMEOUT and not BUSY. */
		if (w->in->wait_ms > 0)
			options.wait_ms = MAX(1, (until - redlock_now_us() + 999) / 1000);
		r = redlock_take_send(w->c, w->in->operand, &options);
		if (!r)
			r = waiting_answer(w, until, NULL);
		if (!r)
			r = redlock_taken(w->c, ret_job);
		if (r == -EILSEQ && !(r = job_give_back(w)))
			continue;
		if (!take_is_repeated(w->c, r) || w->in->wait_ms == 0 || redlock_now_us() >= until)
			break;
		if (r == REDLOCK_REFUSED && !complained)
			complain("%s", redlock_errmsg(w->c));
		complained |= r == REDLOCK_REFUSED;
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

/* --- reports of a loss --- */

static bool job_is_lost(const struct keeper_task *task, const struct redlock_line *push)
{
	const struct redlock_job *job = task->job;

	if (field_is(push, "job", job->id))
		return field_is(push, "queue", task->in->operand);
	return job->lock[0] && field_is(push, "name", job->lock) && redlock_line_number(push, "fence", 0) == job->fence;
}

/* Whether push is LOST for one of these grants, or for the job or its lock. */
static bool reports_loss(const struct keeper_task *task, const struct redlock_line *push)
{
	unsigned i = 0;

	if (!redlock_line_is(push, "LOST") || task->job)
		return redlock_line_is(push, "LOST") && job_is_lost(task, push);
	while (i < task->names_n && task->grants[i].fence != redlock_line_number(push, "fence", 0))
		i++;
	return i < task->names_n;
}

const struct redlock_line *locks_held_loss(const struct keeper_task *task)
{
	const struct redlock_line *push;

	do
		push = redlock_next_push(task->c);
	while (push && !reports_loss(task, push));
	return push;
}

bool loss_is_final(const struct redlock_line *push)
{
	return field_is(push, "reason", "evicted") || field_is(push, "reason", "broken");
}

bool loss_refused(const struct redlock *c)
{
	return code_is(c, "LOST") || code_is(c, "NOTHELD");
}

/* --- the locks --- */

void locks_held_shown(const char *const *names, unsigned n, char *out, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < n && at + 8 + 2 < size; i++) {
		if (i > 0)
			at = text_add(out, at, size, ", ");
		at += shown_text(span_of(names[i]), out + at, size - at);
	}
}

/* Sends CHECK again after QUORUM: a daemon that restarted since the grant soon learns whether the stores have the lock. */
static int name_check(struct keeper_task *task, unsigned i)
{
	struct pollfd front = {.fd = task->front};
	int64_t until = redlock_now_us() + ANSWER_TIMEOUT_MS * INT64_C(1000);
	int r;

	do
		r = task->job ? redlock_check_job(task->c, task->names[i], task->job->id, &task->grants[i])
			      : redlock_check(task->c, task->names[i], &task->grants[i]);
	while (r == REDLOCK_REFUSED && code_is(task->c, "QUORUM") && redlock_now_us() < until &&
	       poll(&front, 1, CHECK_AGAIN_MS) == 0);
	return r;
}

int locks_held_check(struct keeper_task *task)
{
	struct span permit;
	int r = 0;

	for (unsigned i = 0; !r && i < task->names_n; i++)
		r = name_check(task, i);
	if (r)
		return r;
	permit = field_of(redlock_answer(task->c), "permit");
	if (task->in->slots && permit.p && permit.n < sizeof(task->permit)) /* a semaphore has one name */
		memcpy(task->permit, permit.p, permit.n);
	task->grant = *locks_held_first(task);
	return 0;
}

const struct redlock_grant *locks_held_first(const struct keeper_task *task)
{
	const struct redlock_grant *first = &task->grants[0];

	for (unsigned i = 1; i < task->names_n; i++)
		if (task->grants[i].until_us < first->until_us)
			first = &task->grants[i];
	return first;
}

/* --- the end --- */

/*
 * Sends DONE, and again after the connection broke, because otherwise the job runs again. NOTHELD to a repeated DONE means that the first one worked,
 * unless there was a push LOST or the session is a new one.
 */
static int done_send(const struct keeper_task *task)
{
	int64_t until = redlock_now_us() + task->job->ttl_ms * 1000;
	char session[64];
	unsigned times = 0;
	int r;

	snprintf(session, sizeof(session), "%s", redlock_session_id(task->c));
	do
		r = redlock_done(task->c, task->in->operand, task->job->id);
	while (times++, r == -ECONNABORTED && redlock_now_us() < until);
	if (times == 1 || r != REDLOCK_REFUSED || !code_is(task->c, "NOTHELD") || strcmp(session, redlock_session_id(task->c)) != 0)
		return r;
	return locks_held_loss(task) ? r : 0;
}

int locks_held_unlock(const struct keeper_task *task, int64_t keep_ms, enum attempt attempt, unsigned *ret_at)
{
	struct redlock_bytes id = {task->job ? task->job->id : "", task->job ? strlen(task->job->id) : 0};
	int r = 0;

	*ret_at = 0;
	redlock_set_timeout(task->c, UNLOCK_MS);
	if (task->job && attempt == ATTEMPT_DONE)
		return done_send(task);
	if (task->job && attempt == ATTEMPT_FAILED)
		return job_failed(task->c, task->in, id, task->job->attempt);
	if (task->job)
		return taken_job_retry(task->c, task->in->operand, id, " failed=no");
	for (unsigned i = 0; !r && i < task->names_n; i++) {
		r = redlock_unlock(task->c, task->names[i], keep_ms);
		*ret_at = i;
	}
	return r;
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

/* --- the environment --- */

static int variable_set(const char *variable, const char *value)
{
	return (value ? setenv(variable, value, 1) : unsetenv(variable)) ? -errno : 0;
}

/*
 * Sets REDLOCK_NAME and REDLOCK_FENCE; for further names REDLOCK_NAME_2, REDLOCK_FENCE_2 and so on. Unsets those of an outer redlock, which may have
 * had more.
 */
static int name_environment(unsigned i, const char *name, int64_t fence)
{
	char name_variable[32] = "REDLOCK_NAME", fence_variable[32] = "REDLOCK_FENCE", value[24];
	int r;

	if (i > 0) {
		snprintf(name_variable, sizeof(name_variable), "REDLOCK_NAME_%u", i + 1);
		snprintf(fence_variable, sizeof(fence_variable), "REDLOCK_FENCE_%u", i + 1);
	}
	snprintf(value, sizeof(value), "%lld", (long long)fence);
	r = variable_set(name_variable, name);
	return r ? r : variable_set(fence_variable, name ? value : NULL);
}

int locks_held_environment(const struct keeper_task *task)
{
	const struct redlock_job *job = task->job;
	char attempt[24];
	int r = variable_set("REDLOCK_PERMIT", *task->permit ? task->permit : NULL);

	for (unsigned i = 0; !r && i < NAMES_MOST; i++)
		r = !job && i < task->names_n ? name_environment(i, task->names[i], task->grants[i].fence) : name_environment(i, NULL, 0);
	if (r || !job)
		return r;
	snprintf(attempt, sizeof(attempt), "%lld", (long long)job->attempt);
	r = variable_set("REDLOCK_QUEUE", task->in->operand);
	if (!r)
		r = variable_set("REDLOCK_JOB", job->id);
	if (!r)
		r = variable_set("REDLOCK_ATTEMPT", attempt);
	return r || !job->lock[0] ? r : name_environment(0, job->lock, job->fence);
}
