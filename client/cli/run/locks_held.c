/* SPDX-License-Identifier: BSD-2-Clause */
/* See locks_held.h. */
#include "client/cli/run/locks_held.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/taken_job.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_MS 100

/* --- how the daemon tells that a grant was lost --- */

static bool tells_loss(const struct keeper_task *task, const struct redlock_line *push)
{
	int64_t fence = redlock_line_number(push, "fence", 0);

	if (!redlock_line_is(push, "LOST"))
		return false;
	if (task->job)
		return taken_job_is_lost(task, push);
	for (unsigned i = 0; i < task->names_n; i++)
		if (task->grants[i].fence == fence)
			return true;
	return false;
}

const struct redlock_line *locks_held_loss(const struct keeper_task *task)
{
	const struct redlock_line *push;

	do
		push = redlock_next_push(task->c);
	while (push && !tells_loss(task, push));
	return push;
}

bool loss_is_final(const struct redlock_line *push)
{
	return field_is(push, "reason", "evicted") || field_is(push, "reason", "broken");
}

bool loss_refused(const struct redlock *c)
{
	return !strcmp(redlock_code(c), "LOST") || !strcmp(redlock_code(c), "NOTHELD");
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

/* CHECK again after QUORUM: a daemon that restarted since the grant learns soon whether the stores have the lock. */
static int name_check(struct keeper_task *task, unsigned i)
{
	struct pollfd front = {.fd = task->front};
	int64_t until = redlock_now_us() + ANSWER_TIMEOUT_MS * INT64_C(1000);
	int r;

	do
		r = task->job ? redlock_check_job(task->c, task->names[i], task->job->id, &task->grants[i])
			      : redlock_check(task->c, task->names[i], &task->grants[i]);
	while (r == REDLOCK_REFUSED && !strcmp(redlock_code(task->c), "QUORUM") && redlock_now_us() < until &&
	       poll(&front, 1, SETTLE_MS) == 0);
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
	if (task->in->slots && permit.p && permit.n < sizeof(task->permit)) /* of one name */
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

int locks_held_unlock(const struct keeper_task *task, int64_t keep_ms, enum attempt attempt, unsigned *ret_at)
{
	int r = 0;

	*ret_at = 0;
	redlock_set_timeout(task->c, UNLOCK_MS);
	if (task->job)
		return taken_job_end(task, attempt);
	for (unsigned i = 0; !r && i < task->names_n; i++) {
		r = redlock_unlock(task->c, task->names[i], keep_ms);
		*ret_at = i;
	}
	return r;
}

/* REDLOCK_NAME and REDLOCK_FENCE; of further names REDLOCK_NAME_2, REDLOCK_FENCE_2 and so on. An outer redlock may have set more of them. */
static int name_environment(const struct keeper_task *task, unsigned i)
{
	char name[32] = "REDLOCK_NAME", fence[32] = "REDLOCK_FENCE", value[24];
	bool held = !task->job && i < task->names_n;

	if (i > 0) {
		snprintf(name, sizeof(name), "REDLOCK_NAME_%u", i + 1);
		snprintf(fence, sizeof(fence), "REDLOCK_FENCE_%u", i + 1);
	}
	if (!held)
		return unsetenv(name) || unsetenv(fence) ? -errno : 0;
	snprintf(value, sizeof(value), "%lld", (long long)task->grants[i].fence);
	return setenv(name, task->names[i], 1) || setenv(fence, value, 1) ? -errno : 0;
}

int locks_held_environment(const struct keeper_task *task)
{
	int r = 0;

	for (unsigned i = 0; !r && i < NAMES_MOST; i++)
		r = name_environment(task, i);
	if (r)
		return r;
	if (*task->permit ? setenv("REDLOCK_PERMIT", task->permit, 1) : unsetenv("REDLOCK_PERMIT"))
		return -errno;
	return task->job ? taken_job_environment(task) : 0;
}
