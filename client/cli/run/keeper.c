/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a keeper: it waits for the lock, holds it for the command, and ends the session. However it ends, it sends QUIT, so
 * that nobody waits for a grace that nobody needs. If it cannot be sent at that moment, the keeper lingers.
 */
#include "client/cli/run/keeper.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/run/taken_job.h"
#include "client/cli/run/late_quit.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/supervise.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

static void report_send(const struct keeper_task *task, struct keeper_report *report, int kind)
{
	report->kind = kind;
	snprintf(report->session, sizeof(report->session), "%s", redlock_session_id(task->c));
	snprintf(report->secret, sizeof(report->secret), "%s", redlock_session_secret(task->c));
	(void)!send(task->front, report, sizeof(*report), MSG_NOSIGNAL);
}

/* Waits until redlock passes on signals. False: redlock is gone. */
static bool front_agrees(const struct keeper_task *task)
{
	struct front_signal go;
	ssize_t n;

	do
		n = recv(task->front, &go, sizeof(go), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(go);
}

/* The locks, or a job. */
static bool things_take(struct keeper_task *task, struct waiting *w, int64_t *ret_ttl_ms, struct keeper_report *report)
{
	if (!task->job)
		return waiting_take(w, ret_ttl_ms, &report->name);
	if (!taken_job_take(w, task->job))
		return false;
	*ret_ttl_ms = task->job->ttl_ms;
	task->start.input = task->job->payload;
	task->start.input_n = task->job->payload_n;
	return true;
}

/*
 * True: CMD may start. The validity counts from a CHECK, because the LOCK may have waited for long, and redlock may have been
 * stopped since. Only the answer to LOCK tells the ttl.
 */
static bool lock_take(struct keeper_task *task, struct waiting *w, struct keeper_report *report)
{
	int64_t ttl_ms;

	if (!waiting_greet(w))
		return false;
	report_send(task, report, KEEPER_WAITING);
	if (!things_take(task, w, &ttl_ms, report))
		return false;
	if (task->in->any) {
		task->names = &task->in->names[report->name];
		task->names_n = 1;
	}
	report_send(task, report, KEEPER_GRANTED);
	w->exit = EXIT_FAILED;
	if (!front_agrees(task))
		return false;
	report->lost = true; /* unless CMD may start */
	/* The lease is known now. The grace must be as long: a lock can be believed for that long without an answer. */
	if (ttl_ms > MAX(w->in->ttl_ms, GRACE_MS) && redlock_session_secret(task->c)[0] && !waiting_regreet(w, ttl_ms))
		return false;
	if (locks_held_check(task)) {
		complain("%s", redlock_errmsg(task->c));
		return false;
	}
	task->grant.ttl_ms = task->grant.ttl_ms ? task->grant.ttl_ms : ttl_ms;
	report->lost = false;
	return true;
}

void keeper_main(struct keeper_task *task)
{
	struct waiting waiting = {.in = task->in, .c = task->c, .front = task->front, .signals = -1};
	struct keeper_report report = {.code = EXIT_FAILED};
	struct redlock_grant grants[NAMES_MOST];
	struct redlock_job job = {.payload = NULL};

	task->job = works(task->in) ? &job : NULL;
	task->names = task->in->names;
	task->names_n = task->in->names_n;
	task->grants = grants;
	if (lock_take(task, &waiting, &report))
		supervise_run(task, &report);
	else
		report.code = waiting.exit;
	report.lingers = late_quit_must(task) && !redlock_process(task->c);
	if (!report.lingers)
		redlock_close(task->c);
	report.kind = KEEPER_ENDED;
	(void)!send(task->front, &report, sizeof(report), MSG_NOSIGNAL);
	if (report.lingers)
		late_quit(task, -1);
	_exit(EXIT_SUCCESS);
}
