/* SPDX-License-Identifier: BSD-2-Clause */
/* See holding.h. */
#include "client/cli/holding.h"
#include "client/cli/belief.h"
#include "client/cli/complaint.h"
#include "client/cli/descriptors.h"
#include "client/cli/family.h"
#include "client/cli/loss.h"
#include "client/cli/several.h"
#include "client/cli/wakeups.h"
#include "client/cli/working.h"
#include "client/lib/person.h"

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

enum holding_state {
	HOLDING_HELD,     /* CMD runs, the lock is believed */
	HOLDING_STOPPING, /* SIGTERM was sent; SIGKILL follows at kill_at */
	HOLDING_KILLING,  /* SIGKILL is sent until nothing is left, or until give_up_at */
	HOLDING_ON,       /* SIGKILL did not end CMD, and the session may hold the lock: this process holds on until one of the two has ended */
	HOLDING_DONE,     /* there is nothing more to stop, or to hold */
};

struct holding {
	const struct keeper_task *task;
	struct family family;
	enum holding_state state;
	struct wakeups wakeups;
	struct belief belief;
	int64_t kill_at, give_up_at;
	unsigned asked; /* the name that CHECK is asked about */
	bool front_gone, ending; /* ending: a signal has asked redlock to end */
	bool may_hold;  /* CMD is stopped although nobody said that the lock was lost */
	char name[200], one[200]; /* for a person: all names, and one of them */
	struct keeper_report *report;
};

static void __attribute__((format(printf, 3, 4))) holding_says(struct holding *h, int code, const char *format, ...)
{
	va_list args;

	h->report->code = code;
	h->report->lost = false;
	va_start(args, format);
	vsnprintf(h->report->text, sizeof(h->report->text), format, args);
	va_end(args);
}

/* --- stopping --- */

static void holding_kill(struct holding *h, int64_t now)
{
	h->state = HOLDING_KILLING;
	h->give_up_at = now + UNSTOPPABLE_US;
	family_kill(&h->family);
}

/* The end of the session would give the lock to somebody else while CMD runs on. */
static void holding_hold_on(struct holding *h)
{
	const int kept[] = {h->task->front, h->wakeups.children, h->wakeups.timer, redlock_fd(h->task->c)};

	h->state = HOLDING_ON;
	if (h->front_gone)
		holding_says(h, EXIT_LOST, "redlock was killed, and the command could not be stopped; process %d holds on to %s", (int)getpid(), h->name);
	else
		holding_says(h, EXIT_LOST,
			     "%s was lost (not confirmed in time), and the command could not be stopped; process %d holds on if the lock still stands", h->name,
			     (int)getpid());
	h->report->kind = KEEPER_ENDED, h->report->lingers = true;
	(void)!send(h->task->front, h->report, sizeof(*h->report), MSG_NOSIGNAL);
	if (h->front_gone && stderr_is_ready())
		complain("%s", h->report->text);
	descriptors_drop(kept, sizeof(kept) / sizeof(kept[0]));
}

/* No lock protects what CMD had left in the background before it was stopped. */
static void holding_give_up(struct holding *h)
{
	if (h->may_hold && family_lives(&h->family)) {
		holding_hold_on(h);
		return;
	}
	holding_says(h, EXIT_LOST, "%s was lost, and the command could not be stopped", h->name);
	h->state = HOLDING_DONE;
}

static void holding_stop(struct holding *h, int64_t kill_by, const char *name, const char *why)
{
	char still[STILL_BYTES];

	if (h->state == HOLDING_ON) {
		h->state = HOLDING_DONE;
		return;
	}
	family_mark_left(&h->family);
	holding_says(h, EXIT_LOST, "%s was lost (%s%s); the command was stopped", name, why, belief_still(&h->belief, still));
	h->report->lost = true;
	h->state = HOLDING_STOPPING;
	h->kill_at = kill_by;
	family_end(&h->family);
}

/* Somebody else may hold the lock already. */
static void holding_stop_now(struct holding *h, const char *name, const char *why)
{
	holding_stop(h, MIN(belief_kill_at(&h->belief), redlock_now_us() + GRACE_US), name, why);
}

/* One of the names, for a person. */
static const char *name_shown(struct holding *h, unsigned i)
{
	if (h->task->job)
		return h->name;
	several_shown(h->task->names + i, 1, h->one, sizeof(h->one));
	return h->one;
}

/* --- the connection --- */

static void holding_hear_push(struct holding *h)
{
	struct several_loss loss;

	if (!several_lost(h->task, &loss))
		return;
	if (loss.final)
		holding_stop_now(h, h->task->job ? h->name : loss.names, loss.why);
	else
		holding_stop(h, belief_kill_at(&h->belief), h->task->job ? h->name : loss.names, loss.why);
}

static void holding_ask_next(struct holding *h)
{
	int r = several_check_send(h->task, h->asked);

	if (r)
		holding_stop(h, belief_kill_at(&h->belief), h->name, redlock_errmsg(h->task->c));
}

/* A CHECK was answered. Behind the last name the belief is that in the one that ends first. */
static void holding_told(struct holding *h, const struct redlock_grant *grant)
{
	h->task->grants[h->asked] = *grant;
	if (++h->asked < h->task->names_n)
		holding_ask_next(h);
	else
		belief_set(&h->belief, several_first(h->task));
}

static void holding_hear_answer(struct holding *h)
{
	int r = redlock_finish(h->task->c, 0);
	struct redlock_grant grant;
	bool told = r == REDLOCK_OK && !several_grant(h->task, &grant);

	if (told && grant.fence == h->task->grants[h->asked].fence)
		holding_told(h, &grant);
	else if (r == -ECONNABORTED || (r == REDLOCK_REFUSED && !loss_refused(h->task->c)))
		belief_untold(&h->belief, redlock_now_us());
	else
		holding_stop_now(h, name_shown(h, h->asked), told ? "it is another grant" : redlock_code(h->task->c));
}

static bool holding_listens(const struct holding *h)
{
	return h->state == HOLDING_HELD || h->state == HOLDING_ON;
}

static void holding_listen(struct holding *h)
{
	struct redlock *c = h->task->c;
	bool asked = redlock_in_flight(c);
	int r = redlock_process(c);

	holding_hear_push(h);
	if (holding_listens(h) && asked && !redlock_in_flight(c))
		holding_hear_answer(h);
	/* Ask as soon as the daemon is back. */
	if (redlock_away(c) && !redlock_in_flight(c))
		h->belief.check_at = redlock_now_us();
	/* Whatever ended the connection, the lock is held until the moment that the daemon told. */
	if (r && holding_listens(h))
		holding_stop(h, belief_kill_at(&h->belief), h->name, redlock_errmsg(c));
}

static void holding_ask(struct holding *h, int64_t now)
{
	h->asked = 0;
	belief_asked(&h->belief, now);
	holding_ask_next(h);
}

/* --- the end --- */

/* That CMD cannot be executed, or was to end with redlock, says nothing about the job. */
static enum attempt holding_attempt(const struct holding *h)
{
	if (h->family.ended && family_code(&h->family) == 0)
		return ATTEMPT_DONE;
	return h->family.ended && !h->ending ? ATTEMPT_FAILED : ATTEMPT_NONE;
}

/*
 * Waits first for the answer to a CHECK in flight. The waits for a lock are short: the end of the session frees it, too. But a job that is not said to be done
 * is run again, so its daemon may stay away for as long as the lease lasts.
 */
static int holding_unlock(struct holding *h, int64_t keep_ms, unsigned *ret_at)
{
	struct redlock *c = h->task->c;
	int64_t lease_ms = redlock_left_us(&h->belief.grant) / 1000;
	int r = redlock_in_flight(c) ? redlock_finish(c, h->task->job ? MAX(lease_ms, UNLOCK_MS) : UNLOCK_MS) : 0;

	redlock_set_timeout(c, UNLOCK_MS);
	return r < 0 && r != -ECONNABORTED ? r : several_unlock(h->task, keep_ms, holding_attempt(h), ret_at);
}

/*
 * CMD ended while the lock was believed: its exit code counts, unless the daemon says that somebody else may have held the lock. So it does if this process
 * stood still beyond the validity, but then the daemon must say so.
 */
static void holding_finish(struct holding *h)
{
	const struct redlock_line *push;
	char what[400];
	bool over = redlock_now_us() >= h->belief.grant.until_us;
	unsigned at = 0;
	int r = holding_unlock(h, h->task->in->keep_ms, &at);

	h->state = HOLDING_DONE;
	h->report->code = family_code(&h->family);
	if (r == REDLOCK_REFUSED && loss_refused(h->task->c)) {
		push = several_loss(h->task);
		if (!push || loss_is_final(push)) {
			holding_says(h, EXIT_LOST, "%s was lost while the command ran", name_shown(h, at));
			h->report->lost = true;
		}
	} else if (r && over) {
		holding_says(h, EXIT_LOST, "%s was lost (%s%s) while the command ran", h->name, redlock_errmsg(h->task->c), belief_still(&h->belief, what));
		h->report->lost = true;
	} else if (r && (r == REDLOCK_REFUSED || h->task->in->keep_ms)) {
		/* The name was to be kept and is free: that is no success. */
		if (r == REDLOCK_REFUSED && h->task->in->keep_ms && h->report->code == 0)
			h->report->code = EXIT_FAILED;
		holding_says(h, h->report->code, "unlocking %s: %s", name_shown(h, at), redlock_errmsg(h->task->c));
	} else if (h->task->job && !r && working_is_over(h->task, what, sizeof(what))) {
		holding_says(h, h->report->code, "%s; its last attempt ended with %d", what, h->report->code);
	}
}

static void holding_reap(struct holding *h, int64_t now)
{
	bool ended = h->family.ended, gone = family_reap(&h->family);

	if (h->state == HOLDING_HELD && h->family.ended && now < MAX(h->belief.grant.until_us, h->belief.late_until))
		holding_finish(h);
	else if (h->state == HOLDING_HELD && h->family.ended)
		holding_stop(h, 0, h->name, "not noticed in time");
	else if (gone || (h->state == HOLDING_ON && !family_lives(&h->family)))
		h->state = HOLDING_DONE;
	else if (h->state == HOLDING_STOPPING && !ended && h->family.ended)
		family_end(&h->family); /* the processes that CMD left are children of the keeper now */
}

/* --- the loop --- */

static const char *holding_why(const struct holding *h)
{
	if (redlock_away(h->task->c))
		return "redlockd went away and did not come back in time";
	return redlock_in_flight(h->task->c) ? "redlockd does not answer" : "redlockd could not renew it";
}

static void holding_decide(struct holding *h, int64_t now)
{
	bool asks = now >= h->belief.check_at && !redlock_in_flight(h->task->c);

	if (h->state == HOLDING_HELD && asks && belief_may_ask(&h->belief, now))
		holding_ask(h, now);
	else if (h->state == HOLDING_HELD && now >= h->belief.term_at) {
		h->may_hold = true;
		holding_stop(h, belief_kill_at(&h->belief), h->name, holding_why(h));
	}
	if (h->state == HOLDING_ON)
		family_kill(&h->family);
	/* Even after the deadline: CMD runs in any case, and only the daemon knows whether the lock is taken. */
	if (h->state == HOLDING_ON && asks)
		holding_ask(h, now);
	if (h->state == HOLDING_STOPPING && now >= h->kill_at)
		holding_kill(h, now);
	else if (h->state == HOLDING_KILLING && now < h->give_up_at)
		family_kill(&h->family);
	else if (h->state == HOLDING_KILLING)
		holding_give_up(h);
}

/* When the daemon is heard or asked next. */
static int64_t holding_due(const struct holding *h, int64_t unanswered)
{
	const struct redlock *c = h->task->c;

	return MIN(redlock_due_us(c), redlock_in_flight(c) ? unanswered : MIN(h->belief.check_at, unanswered));
}

static int64_t holding_deadline(const struct holding *h)
{
	switch (h->state) {
	case HOLDING_HELD:
		return holding_due(h, h->belief.term_at);
	case HOLDING_STOPPING:
		return h->kill_at;
	case HOLDING_ON:
		return holding_due(h, redlock_now_us() + LIVES_SWEEP_US);
	default:
		return redlock_now_us() + SWEEP_US;
	}
}

static void holding_front(struct holding *h)
{
	struct front_signal signal;
	ssize_t n = recv(h->task->front, &signal, sizeof(signal), MSG_DONTWAIT);

	if (n == sizeof(signal)) {
		h->ending |= signal.ending;
		if (!signal.had)
			family_signal(&h->family, signal.number);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	h->front_gone = true;
	if (h->state == HOLDING_HELD) {
		h->may_hold = true;
		family_mark_left(&h->family);
	}
	if (h->state < HOLDING_KILLING)
		holding_kill(h, redlock_now_us());
}

static void holding_sleep(struct holding *h)
{
	struct pollfd fds[] = {
		{.fd = h->front_gone ? -1 : h->task->front, .events = POLLIN},
		{.fd = holding_listens(h) ? redlock_fd(h->task->c) : -1, .events = redlock_events(h->task->c)},
	};

	belief_sleeps(&h->belief, holding_deadline(h));
	if (!wakeups_await(&h->wakeups, holding_deadline(h), fds, 2))
		return;
	belief_awake(&h->belief, redlock_now_us());
	if (fds[0].revents)
		holding_front(h);
	if (holding_listens(h) && (fds[1].revents || redlock_now_us() >= redlock_due_us(h->task->c)))
		holding_listen(h);
}

static void holding_loop(struct holding *h)
{
	while (h->state != HOLDING_DONE) {
		int64_t now = redlock_now_us(); /* a pause behind this is noticed in the next turn */

		belief_awake(&h->belief, now);
		holding_reap(h, now);
		if (h->state == HOLDING_DONE)
			break;
		holding_decide(h, now);
		if (h->state != HOLDING_DONE)
			holding_sleep(h);
	}
}

/* --- the beginning --- */

static void holding_start(struct holding *h)
{
	const struct keeper_task *task = h->task;
	int r = wakeups_open(&h->wakeups);

	if (!r)
		r = several_environment(task);
	if (!r)
		r = family_start(&h->family, &task->start);
	if (r < 0)
		holding_says(h, EXIT_FAILED, "cannot start: %s", strerror(-r));
	else if (r > 0)
		holding_says(h, r == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC, "cannot execute %s: %s", task->start.argv[0], strerror(r));
	if (r)
		return;
	h->report->kind = KEEPER_STARTED;
	h->report->command = h->family.command;
	h->state = HOLDING_HELD;
	(void)!send(task->front, h->report, sizeof(*h->report), MSG_NOSIGNAL);
}

void holding_run(const struct keeper_task *task, struct keeper_report *ret_report)
{
	struct holding h = {.task = task, .state = HOLDING_DONE, .report = ret_report};
	unsigned at;

	several_shown(task->names, task->names_n, h.name, sizeof(h.name));
	belief_set(&h.belief, &task->grant);
	belief_awake(&h.belief, redlock_now_us());
	holding_start(&h);
	if (h.state == HOLDING_DONE)
		(void)!holding_unlock(&h, 0, &at);
	else
		holding_hear_push(&h); /* a push that came together with the answer to CHECK: the descriptor does not announce it */
	holding_loop(&h);
}
