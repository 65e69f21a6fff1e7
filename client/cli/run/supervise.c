/* SPDX-License-Identifier: BSD-2-Clause */
/* See supervise.h. */
#include "client/cli/run/supervise.h"
#include "client/cli/io/complaint.h"
#include "client/cli/run/descendants.h"
#include "client/cli/run/descriptors.h"
#include "client/cli/run/taken_job.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/loss.h"
#include "client/cli/run/validity.h"
#include "client/cli/run/wakeups.h"
#include "client/lib/display.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRACE_US       200000 /* from SIGTERM to SIGKILL when somebody else may hold the lock already */
#define UNLOCK_MS      1000
#define SWEEP_US       5000
#define UNSTOPPABLE_US 1000000
#define LIVES_SWEEP_US 1000000

enum supervise_state {
	SUPERVISE_HELD,     /* CMD runs, the lock is believed */
	SUPERVISE_STOPPING, /* SIGTERM was sent; SIGKILL follows at kill_at */
	SUPERVISE_KILLING,  /* SIGKILL is sent until nothing is left, or until give_up_at */
	SUPERVISE_ON,       /* SIGKILL did not end CMD, and the session may hold the lock: this process holds on until one of the two has ended */
	SUPERVISE_DONE,     /* there is nothing more to stop, or to hold */
};

struct supervise {
	const struct keeper_task *task;
	struct descendants descendants;
	enum supervise_state state;
	struct wakeups wakeups;
	struct validity validity;
	int64_t kill_at, give_up_at;
	unsigned asked; /* the name that CHECK is asked about */
	bool front_gone, ending; /* ending: a signal has asked redlock to end */
	bool may_hold;  /* CMD is stopped although nobody said that the lock was lost */
	char name[200], one[200]; /* for a person: all names, and one of them */
	struct keeper_report *report;
};

static void __attribute__((format(printf, 3, 4))) supervise_says(struct supervise *h, int code, const char *format, ...)
{
	va_list args;

	h->report->code = code;
	h->report->lost = false;
	va_start(args, format);
	vsnprintf(h->report->text, sizeof(h->report->text), format, args);
	va_end(args);
}

/* --- stopping --- */

static void supervise_kill(struct supervise *h, int64_t now)
{
	h->state = SUPERVISE_KILLING;
	h->give_up_at = now + UNSTOPPABLE_US;
	descendants_kill(&h->descendants);
}

/* The end of the session would give the lock to somebody else while CMD runs on. */
static void supervise_hold_on(struct supervise *h)
{
	const int kept[] = {h->task->front, h->wakeups.children, h->wakeups.timer, redlock_fd(h->task->c)};

	h->state = SUPERVISE_ON;
	if (h->front_gone)
		supervise_says(h, EXIT_LOST, "redlock was killed, and the command could not be stopped; process %d holds on to %s", (int)getpid(), h->name);
	else
		supervise_says(h, EXIT_LOST,
			     "%s was lost (not confirmed in time), and the command could not be stopped; process %d keeps the lock if the session still has it",
			     h->name, (int)getpid());
	h->report->kind = KEEPER_ENDED, h->report->lingers = true;
	(void)!send(h->task->front, h->report, sizeof(*h->report), MSG_NOSIGNAL);
	if (h->front_gone && stderr_is_ready())
		complain("%s", h->report->text);
	descriptors_drop(kept, sizeof(kept) / sizeof(kept[0]));
}

/* No lock protects what CMD had left in the background before it was stopped. */
static void supervise_give_up(struct supervise *h)
{
	if (h->may_hold && descendants_lives(&h->descendants)) {
		supervise_hold_on(h);
		return;
	}
	supervise_says(h, EXIT_LOST, "%s was lost, and the command could not be stopped", h->name);
	h->state = SUPERVISE_DONE;
}

static void supervise_stop(struct supervise *h, int64_t kill_by, const char *name, const char *why)
{
	char still[STILL_BYTES];

	if (h->state == SUPERVISE_ON) {
		h->state = SUPERVISE_DONE;
		return;
	}
	descendants_mark_left(&h->descendants);
	supervise_says(h, EXIT_LOST, "%s was lost (%s%s); the command was stopped", name, why, validity_still(&h->validity, still));
	h->report->lost = true;
	h->state = SUPERVISE_STOPPING;
	h->kill_at = kill_by;
	descendants_end(&h->descendants);
}

/* Somebody else may hold the lock already. */
static void supervise_stop_now(struct supervise *h, const char *name, const char *why)
{
	supervise_stop(h, MIN(validity_kill_at(&h->validity), redlock_now_us() + GRACE_US), name, why);
}

/* One of the names, for a person. */
static const char *name_shown(struct supervise *h, unsigned i)
{
	if (h->task->job)
		return h->name;
	locks_held_shown(h->task->names + i, 1, h->one, sizeof(h->one));
	return h->one;
}

/* --- the connection --- */

static void supervise_hear_push(struct supervise *h)
{
	struct locks_held_loss loss;

	if (!locks_held_lost(h->task, &loss))
		return;
	if (loss.final)
		supervise_stop_now(h, h->task->job ? h->name : loss.names, loss.why);
	else
		supervise_stop(h, validity_kill_at(&h->validity), h->task->job ? h->name : loss.names, loss.why);
}

static void supervise_ask_next(struct supervise *h)
{
	int r = locks_held_check_send(h->task, h->asked);

	if (r)
		supervise_stop(h, validity_kill_at(&h->validity), h->name, redlock_errmsg(h->task->c));
}

/* A CHECK was answered. After the last name the validity is that of the one that ends first. */
static void supervise_told(struct supervise *h, const struct redlock_grant *grant)
{
	h->task->grants[h->asked] = *grant;
	if (++h->asked < h->task->names_n)
		supervise_ask_next(h);
	else
		validity_set(&h->validity, locks_held_first(h->task));
}

static void supervise_hear_answer(struct supervise *h)
{
	int r = redlock_finish(h->task->c, 0);
	struct redlock_grant grant;
	bool told = r == REDLOCK_OK && !locks_held_grant(h->task, &grant);

	if (told && grant.fence == h->task->grants[h->asked].fence)
		supervise_told(h, &grant);
	else if (r == -ECONNABORTED || (r == REDLOCK_REFUSED && !loss_refused(h->task->c)))
		validity_untold(&h->validity, redlock_now_us());
	else
		supervise_stop_now(h, name_shown(h, h->asked), told ? "it is another grant" : redlock_code(h->task->c));
}

static bool supervise_listens(const struct supervise *h)
{
	return h->state == SUPERVISE_HELD || h->state == SUPERVISE_ON;
}

static void supervise_listen(struct supervise *h)
{
	struct redlock *c = h->task->c;
	bool asked = redlock_in_flight(c);
	int r = redlock_process(c);

	supervise_hear_push(h);
	if (supervise_listens(h) && asked && !redlock_in_flight(c))
		supervise_hear_answer(h);
	/* Ask as soon as the daemon is back. */
	if (redlock_away(c) && !redlock_in_flight(c))
		h->validity.check_at = redlock_now_us();
	/* Whatever ended the connection, the lock is held until the moment that the daemon told. */
	if (r && supervise_listens(h))
		supervise_stop(h, validity_kill_at(&h->validity), h->name, redlock_errmsg(c));
}

static void supervise_ask(struct supervise *h, int64_t now)
{
	h->asked = 0;
	validity_asked(&h->validity, now);
	supervise_ask_next(h);
}

/* --- the end --- */

/* That CMD cannot be executed, or was to end with redlock, says nothing about the job. */
static enum attempt supervise_attempt(const struct supervise *h)
{
	if (h->descendants.ended && descendants_code(&h->descendants) == 0)
		return ATTEMPT_DONE;
	return h->descendants.ended && !h->ending ? ATTEMPT_FAILED : ATTEMPT_NONE;
}

/*
 * Waits first for the answer to a CHECK in flight. The waits for a lock are short: the end of the session frees it, too. But a job that is not said to be done
 * is run again, so its daemon may stay away for as long as the lease lasts.
 */
static int supervise_unlock(struct supervise *h, int64_t keep_ms, unsigned *ret_at)
{
	struct redlock *c = h->task->c;
	int64_t lease_ms = redlock_left_us(&h->validity.grant) / 1000;
	int r = redlock_in_flight(c) ? redlock_finish(c, h->task->job ? MAX(lease_ms, UNLOCK_MS) : UNLOCK_MS) : 0;

	redlock_set_timeout(c, UNLOCK_MS);
	return r < 0 && r != -ECONNABORTED ? r : locks_held_unlock(h->task, keep_ms, supervise_attempt(h), ret_at);
}

/*
 * CMD ended while the lock was believed: its exit code counts, unless the daemon says that somebody else may have held the lock. So it does if this process
 * stood still beyond the validity, but then the daemon must say so.
 */
static void supervise_finish(struct supervise *h)
{
	const struct redlock_line *push;
	char what[400];
	bool over = redlock_now_us() >= h->validity.grant.until_us;
	unsigned at = 0;
	int r = supervise_unlock(h, h->task->in->keep_ms, &at);

	h->state = SUPERVISE_DONE;
	h->report->code = descendants_code(&h->descendants);
	if (r == REDLOCK_REFUSED && loss_refused(h->task->c)) {
		push = locks_held_loss(h->task);
		if (!push || loss_is_final(push)) {
			supervise_says(h, EXIT_LOST, "%s was lost while the command ran", name_shown(h, at));
			h->report->lost = true;
		}
	} else if (r && over) {
		supervise_says(h, EXIT_LOST, "%s was lost (%s%s) while the command ran", h->name, redlock_errmsg(h->task->c),
			       validity_still(&h->validity, what));
		h->report->lost = true;
	} else if (r && (r == REDLOCK_REFUSED || h->task->in->keep_ms)) {
		/* The name was to be kept and is free: that is no success. */
		if (r == REDLOCK_REFUSED && h->task->in->keep_ms && h->report->code == 0)
			h->report->code = EXIT_FAILED;
		supervise_says(h, h->report->code, "unlocking %s: %s", name_shown(h, at), redlock_errmsg(h->task->c));
	} else if (h->task->job && !r && taken_job_is_over(h->task, what, sizeof(what))) {
		supervise_says(h, h->report->code, "%s; its last attempt ended with %d", what, h->report->code);
	}
}

static void supervise_reap(struct supervise *h, int64_t now)
{
	bool ended = h->descendants.ended, gone = descendants_reap(&h->descendants);

	if (h->state == SUPERVISE_HELD && h->descendants.ended && now < MAX(h->validity.grant.until_us, h->validity.late_until))
		supervise_finish(h);
	else if (h->state == SUPERVISE_HELD && h->descendants.ended)
		supervise_stop(h, 0, h->name, "not noticed in time");
	else if (gone || (h->state == SUPERVISE_ON && !descendants_lives(&h->descendants)))
		h->state = SUPERVISE_DONE;
	else if (h->state == SUPERVISE_STOPPING && !ended && h->descendants.ended)
		descendants_end(&h->descendants); /* the processes that CMD left are children of the keeper now */
}

/* --- the loop --- */

static const char *supervise_why(const struct supervise *h)
{
	if (redlock_away(h->task->c))
		return "redlockd went away and did not come back in time";
	return redlock_in_flight(h->task->c) ? "redlockd does not answer" : "redlockd could not renew it";
}

static void supervise_decide(struct supervise *h, int64_t now)
{
	bool asks = now >= h->validity.check_at && !redlock_in_flight(h->task->c);

	if (h->state == SUPERVISE_HELD && asks && validity_may_ask(&h->validity, now))
		supervise_ask(h, now);
	else if (h->state == SUPERVISE_HELD && now >= h->validity.term_at) {
		h->may_hold = true;
		supervise_stop(h, validity_kill_at(&h->validity), h->name, supervise_why(h));
	}
	if (h->state == SUPERVISE_ON)
		descendants_kill(&h->descendants);
	/* Even after the deadline: CMD runs in any case, and only the daemon knows whether the lock is taken. */
	if (h->state == SUPERVISE_ON && asks)
		supervise_ask(h, now);
	if (h->state == SUPERVISE_STOPPING && now >= h->kill_at)
		supervise_kill(h, now);
	else if (h->state == SUPERVISE_KILLING && now < h->give_up_at)
		descendants_kill(&h->descendants);
	else if (h->state == SUPERVISE_KILLING)
		supervise_give_up(h);
}

/* When the daemon is heard or asked next. */
static int64_t supervise_due(const struct supervise *h, int64_t unanswered)
{
	const struct redlock *c = h->task->c;

	return MIN(redlock_due_us(c), redlock_in_flight(c) ? unanswered : MIN(h->validity.check_at, unanswered));
}

static int64_t supervise_deadline(const struct supervise *h)
{
	switch (h->state) {
	case SUPERVISE_HELD:
		return supervise_due(h, h->validity.term_at);
	case SUPERVISE_STOPPING:
		return h->kill_at;
	case SUPERVISE_ON:
		return supervise_due(h, redlock_now_us() + LIVES_SWEEP_US);
	default:
		return redlock_now_us() + SWEEP_US;
	}
}

static void supervise_front(struct supervise *h)
{
	struct front_signal signal;
	ssize_t n = recv(h->task->front, &signal, sizeof(signal), MSG_DONTWAIT);

	if (n == sizeof(signal)) {
		h->ending |= signal.ending;
		if (!signal.had)
			descendants_signal(&h->descendants, signal.number);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	h->front_gone = true;
	if (h->state == SUPERVISE_HELD) {
		h->may_hold = true;
		descendants_mark_left(&h->descendants);
	}
	if (h->state < SUPERVISE_KILLING)
		supervise_kill(h, redlock_now_us());
}

static void supervise_sleep(struct supervise *h)
{
	struct pollfd fds[] = {
		{.fd = h->front_gone ? -1 : h->task->front, .events = POLLIN},
		{.fd = supervise_listens(h) ? redlock_fd(h->task->c) : -1, .events = redlock_events(h->task->c)},
	};

	validity_sleeps(&h->validity, supervise_deadline(h));
	if (!wakeups_await(&h->wakeups, supervise_deadline(h), fds, 2))
		return;
	validity_awake(&h->validity, redlock_now_us());
	if (fds[0].revents)
		supervise_front(h);
	if (supervise_listens(h) && (fds[1].revents || redlock_now_us() >= redlock_due_us(h->task->c)))
		supervise_listen(h);
}

static void supervise_loop(struct supervise *h)
{
	while (h->state != SUPERVISE_DONE) {
		int64_t now = redlock_now_us(); /* a pause behind this is noticed in the next turn */

		validity_awake(&h->validity, now);
		supervise_reap(h, now);
		if (h->state == SUPERVISE_DONE)
			break;
		supervise_decide(h, now);
		if (h->state != SUPERVISE_DONE)
			supervise_sleep(h);
	}
}

/* --- the beginning --- */

static void supervise_start(struct supervise *h)
{
	const struct keeper_task *task = h->task;
	int r = wakeups_open(&h->wakeups);

	if (!r)
		r = locks_held_environment(task);
	if (!r)
		r = descendants_start(&h->descendants, &task->start);
	if (r < 0)
		supervise_says(h, EXIT_FAILED, "cannot start: %s", strerror(-r));
	else if (r > 0)
		supervise_says(h, r == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC, "cannot execute %s: %s", task->start.argv[0], strerror(r));
	if (r)
		return;
	h->report->kind = KEEPER_STARTED;
	h->report->command = h->descendants.command;
	h->state = SUPERVISE_HELD;
	(void)!send(task->front, h->report, sizeof(*h->report), MSG_NOSIGNAL);
}

void supervise_run(const struct keeper_task *task, struct keeper_report *ret_report)
{
	struct supervise h = {.task = task, .state = SUPERVISE_DONE, .report = ret_report};
	unsigned at;

	locks_held_shown(task->names, task->names_n, h.name, sizeof(h.name));
	validity_set(&h.validity, &task->grant);
	validity_awake(&h.validity, redlock_now_us());
	supervise_start(&h);
	if (h.state == SUPERVISE_DONE)
		(void)!supervise_unlock(&h, 0, &at);
	else
		supervise_hear_push(&h); /* a push that came together with the answer to CHECK: the descriptor does not announce it */
	supervise_loop(&h);
}
