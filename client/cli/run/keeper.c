/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a keeper. It waits for the lock, holds it for the command, and ends the session. It always ends it with QUIT, so that others need not
 * wait for the grace. If it cannot send QUIT at that moment, the keeper lingers.
 */
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/lease.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/once.h"
#include "client/cli/run/process.h"
#include "client/cli/run/waiting.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#define SWEEP_US       5000
#define UNSTOPPABLE_US 1000000
#define LIVES_SWEEP_US 1000000

enum supervise_state {
	SUPERVISE_HELD,     /* CMD runs, and the lock is valid */
	SUPERVISE_STOPPING, /* SIGTERM was sent; SIGKILL follows at kill_at */
	SUPERVISE_KILLING,  /* SIGKILL is sent until nothing is left, or until give_up_at */
	SUPERVISE_ON,       /* SIGKILL did not end CMD, and the session may hold the lock: this process keeps it until one of the two has ended */
	SUPERVISE_DONE,     /* nothing is left to stop or to hold */
};

struct supervise {
	struct lease lease;
	struct descendants descendants;
	enum supervise_state state;
	int64_t kill_at, give_up_at;
	bool front_gone, ending; /* ending: a signal has asked redlock to end */
	struct keeper_report *report;
};

static void report_send(const struct keeper_task *task, struct keeper_report *report, int kind)
{
	report->kind = kind;
	snprintf(report->session, sizeof(report->session), "%s", redlock_session_id(task->c));
	snprintf(report->secret, sizeof(report->secret), "%s", redlock_session_secret(task->c));
	(void)!send(task->front, report, sizeof(*report), MSG_NOSIGNAL);
}

/* lost: the lock was lost, and no process of CMD is left. */
static void __attribute__((format(printf, 4, 5))) supervise_report(struct supervise *h, int code, bool lost, const char *format, ...)
{
	va_list args;

	h->report->code = code;
	h->report->lost = lost;
	va_start(args, format);
	vsnprintf(h->report->text, sizeof(h->report->text), format, args);
	va_end(args);
}

/* --- stopping --- */

static void supervise_kill(struct supervise *h, int64_t now)
{
	h->state = SUPERVISE_KILLING;
	h->lease.deaf = true;
	h->give_up_at = now + UNSTOPPABLE_US;
	descendants_kill(&h->descendants);
}

/* Keeps the session. Its end would give the lock to somebody else while CMD still runs. */
static void supervise_hold_on(struct supervise *h)
{
	const int kept[] = {h->lease.task->front, h->lease.children, h->lease.timer, redlock_fd(h->lease.task->c)};

	h->state = SUPERVISE_ON;
	h->lease.deaf = false;
	if (h->front_gone)
		supervise_report(h, EXIT_LOST, false, "redlock was killed, and the command could not be stopped; process %d holds on to %s", (int)getpid(),
			       h->lease.name);
	else
		supervise_report(h, EXIT_LOST, false,
			     "%s was lost (not confirmed in time), and the command could not be stopped; process %d keeps the lock if the session still has it",
			     h->lease.name, (int)getpid());
	h->report->lingers = true;
	report_send(h->lease.task, h->report, KEEPER_ENDED);
	if (h->front_gone && stderr_is_ready())
		complain("%s", h->report->text);
	descriptors_drop(kept, sizeof(kept) / sizeof(kept[0]));
}

static void supervise_stop(struct lease *l, int64_t kill_by, const char *name, const char *why)
{
	struct supervise *h = (struct supervise *)l;
	char still[STILL_BYTES];

	if (h->state == SUPERVISE_ON) {
		h->state = SUPERVISE_DONE;
		return;
	}
	supervise_report(h, EXIT_LOST, true, "%s was lost (%s%s); the command was stopped", name, why, validity_still(&l->validity, still));
	h->state = SUPERVISE_STOPPING;
	l->deaf = true;
	h->kill_at = kill_by;
	descendants_end(&h->descendants);
}

/* --- the end --- */

static int supervise_unlock(struct supervise *h, int64_t keep_ms, unsigned *ret_at)
{
	const struct keeper_task *task = h->lease.task;
	int r = lease_finish_check(&h->lease), code = descendants_code(&h->descendants);
	enum attempt attempt = ATTEMPT_NONE; /* a CMD that cannot be executed, or that was ended with redlock, does not count as an attempt */

	if (h->descendants.ended && (code == 0 || !h->ending))
		attempt = code == 0 ? ATTEMPT_DONE : ATTEMPT_FAILED;
	if (!r && task->once && h->descendants.ended)
		once_record(task, code);
	return r ? r : locks_held_unlock(task, keep_ms, attempt, ret_at);
}

/*
 * CMD ended while the lock was valid. Its exit code counts, unless the daemon reports that somebody else may have held the lock. If this process
 * was paused beyond the validity, its exit code counts only if the daemon confirms the lock.
 */
static void supervise_finish(struct supervise *h)
{
	struct lease *l = &h->lease;
	const struct keeper_task *task = l->task;
	bool over = redlock_now_us() >= l->validity.grant.until_us;
	int code = descendants_code(&h->descendants), r;
	const struct redlock_line *push;
	unsigned at = 0;
	char what[400];

	r = supervise_unlock(h, task->in->keep_ms, &at);
	h->state = SUPERVISE_DONE;
	h->report->code = code;
	if (r == REDLOCK_REFUSED && loss_refused(task->c)) {
		push = locks_held_loss(task);
		if (!push || loss_is_final(push))
			supervise_report(h, EXIT_LOST, true, "%s was lost while the command ran", lease_name(l, at));
	} else if (r && over) {
		supervise_report(h, EXIT_LOST, true, "%s was lost (%s%s) while the command ran", l->name, redlock_errmsg(task->c),
			       validity_still(&l->validity, what));
	} else if (r == REDLOCK_REFUSED || (r && task->in->keep_ms)) {
		/* The name was to be kept, but is free: this is a failure. */
		code = code || r < 0 || !task->in->keep_ms ? code : EXIT_FAILED;
		supervise_report(h, code, false, "unlocking %s: %s", lease_name(l, at), redlock_errmsg(task->c));
	} else if (task->job && !r && taken_job_is_over(task, what, sizeof(what))) {
		supervise_report(h, code, false, "%s; its last attempt ended with %d", what, code);
	}
}

static void supervise_reap(struct supervise *h, int64_t now)
{
	bool ended = h->descendants.ended, gone = descendants_reap(&h->descendants);

	if (h->state == SUPERVISE_HELD && h->descendants.ended && now < MAX(h->lease.validity.grant.until_us, h->lease.validity.late_until))
		supervise_finish(h);
	else if (h->state == SUPERVISE_HELD && h->descendants.ended)
		supervise_stop(&h->lease, 0, h->lease.name, "not noticed in time");
	else if (gone)
		h->state = SUPERVISE_DONE;
	else if (h->state == SUPERVISE_STOPPING && !ended && h->descendants.ended)
		descendants_end(&h->descendants); /* the processes that CMD left are now children of the keeper */
}

/* --- the loop --- */

static void supervise_decide(struct supervise *h, int64_t now)
{
	switch (h->state) {
	case SUPERVISE_HELD:
		lease_decide(&h->lease, now);
		break;
	case SUPERVISE_STOPPING:
		if (now >= h->kill_at)
			supervise_kill(h, now);
		break;
	case SUPERVISE_KILLING:
		descendants_kill(&h->descendants);
		if (now >= h->give_up_at && h->lease.unreported) {
			supervise_hold_on(h);
		} else if (now >= h->give_up_at) {
			supervise_report(h, EXIT_LOST, false, "%s was lost, and the command could not be stopped", h->lease.name);
			h->state = SUPERVISE_DONE;
		}
		break;
	case SUPERVISE_ON:
		descendants_kill(&h->descendants);
		/* Ask even after the deadline: CMD runs in any case, and only the daemon knows whether the lock is taken. */
		if (now >= h->lease.validity.check_at && !redlock_in_flight(h->lease.task->c))
			lease_ask(&h->lease, now);
		break;
	case SUPERVISE_DONE:
		break;
	}
}

static int64_t supervise_deadline(const struct supervise *h)
{
	switch (h->state) {
	case SUPERVISE_HELD:
		return lease_due_us(&h->lease, h->lease.validity.term_at);
	case SUPERVISE_STOPPING:
		return h->kill_at;
	case SUPERVISE_ON:
		return lease_due_us(&h->lease, redlock_now_us() + LIVES_SWEEP_US);
	default:
		return redlock_now_us() + SWEEP_US;
	}
}

static void supervise_front(struct supervise *h)
{
	struct front_signal signal;
	ssize_t n = recv(h->lease.task->front, &signal, sizeof(signal), MSG_DONTWAIT);

	if (n == sizeof(signal)) {
		h->ending |= signal.ending;
		if (!signal.had)
			descendants_signal(&h->descendants, signal.number);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	h->front_gone = true;
	h->lease.unreported |= h->state == SUPERVISE_HELD;
	if (h->state < SUPERVISE_KILLING)
		supervise_kill(h, redlock_now_us());
}

/* --- the start --- */

static void supervise_start(struct supervise *h)
{
	const struct keeper_task *task = h->lease.task;
	int r = lease_begin(&h->lease);

	if (!r)
		r = locks_held_environment(task);
	if (!r)
		r = descendants_start(&h->descendants, &task->start);
	if (r < 0)
		supervise_report(h, EXIT_FAILED, false, "cannot start: %s", strerror(-r));
	else if (r > 0)
		supervise_report(h, r == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC, false, "cannot execute %s: %s", task->start.argv[0], strerror(r));
	if (r)
		return;
	if (task->once)
		task->once->begun_us = once_begin(&task->once->run);
	h->report->command = h->descendants.command;
	h->state = SUPERVISE_HELD;
	report_send(task, h->report, KEEPER_STARTED);
}

void supervise_run(struct keeper_task *task, struct keeper_report *ret_report)
{
	struct supervise h = {.lease = {.task = task, .lost = supervise_stop}, .state = SUPERVISE_DONE, .report = ret_report};
	unsigned at;

	supervise_start(&h);
	if (h.state == SUPERVISE_DONE)
		(void)!supervise_unlock(&h, 0, &at);
	else
		lease_process(&h.lease);
	while (h.state != SUPERVISE_DONE) {
		struct pollfd front = {.fd = h.front_gone ? -1 : h.lease.task->front, .events = POLLIN};
		int64_t now = redlock_now_us(); /* a pause after this line is noticed in the next turn */

		validity_awake(&h.lease.validity, now);
		supervise_reap(&h, now);
		if (h.state != SUPERVISE_DONE)
			supervise_decide(&h, now);
		if (h.state == SUPERVISE_DONE || !lease_sleep(&h.lease, supervise_deadline(&h), &front, 1))
			continue;
		if (front.revents)
			supervise_front(&h);
		lease_process(&h.lease);
	}
}

/* --- the session --- */

/* Takes the locks or a job. */
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

/* True: CMD may start. */
static bool lock_take(struct keeper_task *task, struct waiting *w, struct keeper_report *report)
{
	struct front_signal go;
	int64_t ttl_ms;
	ssize_t n;

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
	/* Waits until redlock passes on signals, or has ended. */
	do
		n = recv(task->front, &go, sizeof(go), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(go))
		return false;
	if (task->once && !once_is_due(task, &w->exit))
		return false;
	report->lost = true; /* until CMD may start */
	if (lease_confirm(task, w, ttl_ms, EXIT_FAILED))
		return false;
	report->lost = false;
	return true;
}

void keeper_main(struct keeper_task *task)
{
	struct waiting waiting = {.in = task->in, .c = task->c, .front = task->front, .signals = -1};
	struct keeper_report report = {.code = EXIT_FAILED};
	struct redlock_grant grants[NAMES_MOST];
	struct redlock_job job = {.payload = NULL};
	struct keeper_once once = {.begun_us = 0};

	task->job = works(task->in) ? &job : NULL;
	task->once = task->in->every_ms > 0 ? &once : NULL;
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
	report.kind = KEEPER_ENDED; /* the connection is closed: no more reports about the session follow */
	(void)!send(task->front, &report, sizeof(report), MSG_NOSIGNAL);
	if (report.lingers)
		late_quit(task, -1);
	_exit(EXIT_SUCCESS);
}
