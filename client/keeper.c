/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holding a lock for a command. CMD is gone before the moment until which the lock may be believed: SIGTERM when a fifth of the
 * validity is left, SIGKILL when a tenth is left, however the news came or failed to come. Deadlines count in CLOCK_BOOTTIME, by a
 * timer that a suspend does not stop.
 */
#include "client/keeper.h"
#include "client/person.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_US       200000 /* from SIGTERM to SIGKILL when the lock is already somebody else's */
#define UNLOCK_MS      1000
#define SWEEP_US       5000
#define UNSTOPPABLE_US 1000000

enum keeper_state {
	KEEPER_HOLDING,  /* CMD runs, the lock is believed */
	KEEPER_STOPPING, /* SIGTERM was sent; SIGKILL follows at kill_at */
	KEEPER_KILLING,  /* SIGKILL was sent; until nobody is left, or give_up_at */
	KEEPER_DONE,     /* there is nothing more to stop */
};

struct keeper {
	const struct keeper_task *task;
	struct family family;
	enum keeper_state state;
	int children, timer; /* signalfd of SIGCHLD, timerfd */
	struct redlock_grant grant;
	int64_t reach_us; /* the longest validity that was told, at most the ttl: what the margins are a share of */
	int64_t check_at, term_at, kill_at, give_up_at;
	bool front_gone;
	char name[200]; /* for a person */
	struct keeper_report *report;
};

static void __attribute__((format(printf, 3, 4))) keeper_says(struct keeper *k, int code, const char *format, ...)
{
	va_list args;

	k->report->code = code;
	va_start(args, format);
	vsnprintf(k->report->text, sizeof(k->report->text), format, args);
	va_end(args);
}

/* --- what may be believed --- */

/*
 * Asked every third of the ttl, so that a daemon that is stopped, not gone, is noticed; and shortly after the moment when the daemon
 * renews, which is when two thirds are left: that answer is worth most.
 */
static int64_t check_after(int64_t ttl_us, int64_t valid_us)
{
	int64_t renewal = valid_us - 2 * ttl_us / 3;

	return MIN(ttl_us / 3, (renewal > 0 ? renewal : 0) + ttl_us / 20);
}

static void belief_set(struct keeper *k, const struct redlock_grant *grant)
{
	int64_t valid_us = grant->valid_ms * 1000, ttl_us = (grant->ttl_ms ? grant->ttl_ms : k->grant.ttl_ms) * 1000;

	if (ttl_us <= 0)
		ttl_us = valid_us;
	if (MIN(ttl_us, valid_us) > k->reach_us)
		k->reach_us = MIN(ttl_us, valid_us);
	k->grant = *grant;
	k->grant.ttl_ms = ttl_us / 1000;
	k->check_at = grant->until_us - valid_us + check_after(ttl_us, valid_us);
	k->term_at = grant->until_us - k->reach_us / 5;
}

static int64_t belief_kill_at(const struct keeper *k)
{
	return k->grant.until_us - k->reach_us / 10;
}

/* --- stopping --- */

static void keeper_kill(struct keeper *k, int64_t now)
{
	k->state = KEEPER_KILLING;
	k->give_up_at = now + UNSTOPPABLE_US;
	family_kill(&k->family);
}

/* A stopped process acts on SIGTERM only once it goes on. */
static void family_end(const struct family *f)
{
	family_signal(f, SIGTERM);
	family_signal(f, SIGCONT);
}

static void keeper_stop(struct keeper *k, int64_t kill_by, const char *why)
{
	keeper_says(k, EXIT_LOST, "%s was lost (%s); the command was stopped", k->name, why);
	k->state = KEEPER_STOPPING;
	k->kill_at = kill_by;
	family_end(&k->family);
}

/* Somebody else may have it already. */
static void keeper_stop_now(struct keeper *k, const char *why)
{
	keeper_stop(k, MIN(belief_kill_at(k), redlock_now_us() + GRACE_US), why);
}

/* --- the connection --- */

/* The store or an admin took it: nothing protects it until the old deadline. */
static bool reason_is_final(struct redlock_bytes reason)
{
	return (reason.n == 7 && !memcmp(reason.p, "evicted", 7)) || (reason.n == 6 && !memcmp(reason.p, "broken", 6));
}

/* The LOST of this grant, or NULL. */
static const struct redlock_line *push_lost(struct keeper *k)
{
	const struct redlock_line *push;
	struct redlock_bytes code;

	while ((push = redlock_next_push(k->task->c))) {
		code = redlock_line_code(push);
		if (code.n == 4 && !memcmp(code.p, "LOST", 4) && redlock_line_number(push, "fence", 0) == k->grant.fence)
			return push;
	}
	return NULL;
}

static void keeper_hear_push(struct keeper *k)
{
	const struct redlock_line *push = push_lost(k);
	struct redlock_bytes reason;
	char why[32];

	if (!push)
		return;
	reason = redlock_line_find(push, "reason");
	shown_text((struct span){reason.p, reason.n}, why, sizeof(why));
	if (reason_is_final(reason))
		keeper_stop_now(k, why);
	else
		keeper_stop(k, belief_kill_at(k), why);
}

static bool refused_as_lost(const struct redlock *c)
{
	return !strcmp(redlock_code(c), "LOST") || !strcmp(redlock_code(c), "NOTHELD");
}

static void keeper_hear_answer(struct keeper *k)
{
	int r = redlock_finish(k->task->c, 0);
	struct redlock_grant grant;

	if (r == REDLOCK_OK && !redlock_grant(k->task->c, &grant))
		belief_set(k, &grant);
	else if (r == REDLOCK_REFUSED && !refused_as_lost(k->task->c))
		k->check_at = redlock_now_us() + k->reach_us / 20;
	else
		keeper_stop_now(k, redlock_code(k->task->c));
}

static void keeper_listen(struct keeper *k)
{
	struct redlock *c = k->task->c;
	bool asked = redlock_in_flight(c);
	int r = redlock_process(c);

	keeper_hear_push(k);
	if (k->state == KEEPER_HOLDING && asked && !redlock_in_flight(c))
		keeper_hear_answer(k);
	/* What it knows when it is back is asked for now. */
	if (redlock_away(c) && !redlock_in_flight(c))
		k->check_at = redlock_now_us();
	/* Whatever ended the connection, no daemon gives the lock away before the moment that it told. */
	if (r && k->state == KEEPER_HOLDING)
		keeper_stop(k, belief_kill_at(k), redlock_errmsg(c));
}

/* Who comes late himself gives the answer a moment before he acts on its absence. */
static void keeper_ask(struct keeper *k, int64_t now)
{
	int r = redlock_check_send(k->task->c, k->task->in->operand);
	int64_t answer_by = MIN(now + k->reach_us / 20, belief_kill_at(k));

	if (k->term_at < answer_by)
		k->term_at = answer_by;
	if (r)
		keeper_stop(k, belief_kill_at(k), redlock_errmsg(k->task->c));
}

/* --- the end --- */

static int status_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The CHECK in flight is answered first. Nothing is waited for longer than briefly: the end of the session frees the lock too. */
static int keeper_unlock(struct keeper *k, int64_t keep_ms)
{
	struct redlock *c = k->task->c;
	int r = redlock_in_flight(c) ? redlock_finish(c, UNLOCK_MS) : 0;

	redlock_set_timeout(c, UNLOCK_MS);
	return r < 0 ? r : redlock_unlock(c, k->task->in->operand, keep_ms);
}

/* CMD ended while the lock was believed, so that its code is the truth, unless the daemon says that somebody else could already have had the lock. */
static void keeper_finish(struct keeper *k)
{
	const struct redlock_line *push;
	int r = keeper_unlock(k, k->task->in->keep_ms);

	k->state = KEEPER_DONE;
	k->report->code = status_code(k->family.status);
	if (r == REDLOCK_REFUSED && refused_as_lost(k->task->c)) {
		push = push_lost(k);
		if (!push || reason_is_final(redlock_line_find(push, "reason")))
			keeper_says(k, EXIT_LOST, "%s was lost while the command ran", k->name);
	} else if (r && (r == REDLOCK_REFUSED || k->task->in->keep_ms)) {
		/* A name that should have stayed taken is free: that is no success. */
		if (r == REDLOCK_REFUSED && k->task->in->keep_ms && k->report->code == 0)
			k->report->code = EXIT_FAILED;
		keeper_says(k, k->report->code, "unlocking %s: %s", k->name, redlock_errmsg(k->task->c));
	}
}

static void keeper_reap(struct keeper *k)
{
	bool ended = k->family.ended, gone = family_reap(&k->family);

	if (k->state == KEEPER_HOLDING && k->family.ended && redlock_now_us() < k->grant.until_us)
		keeper_finish(k);
	else if (k->state == KEEPER_HOLDING && k->family.ended)
		keeper_stop(k, 0, "not noticed in time");
	else if (gone)
		k->state = KEEPER_DONE;
	else if (k->state == KEEPER_STOPPING && !ended && k->family.ended)
		family_end(&k->family); /* those it left behind are children now */
}

/* --- the loop --- */

static const char *keeper_why(const struct keeper *k)
{
	if (redlock_away(k->task->c))
		return "redlockd went away and did not come back in time";
	return redlock_in_flight(k->task->c) ? "redlockd does not answer" : "redlockd could not renew it";
}

static void keeper_decide(struct keeper *k, int64_t now)
{
	/* Beyond the deadline nothing is asked any more: it was believed for too long. */
	if (k->state == KEEPER_HOLDING && now >= k->check_at && !redlock_in_flight(k->task->c) && now < belief_kill_at(k))
		keeper_ask(k, now);
	else if (k->state == KEEPER_HOLDING && now >= k->term_at)
		keeper_stop(k, belief_kill_at(k), keeper_why(k));
	if (k->state == KEEPER_STOPPING && now >= k->kill_at)
		keeper_kill(k, now);
	else if (k->state == KEEPER_KILLING && now < k->give_up_at)
		family_kill(&k->family);
	else if (k->state == KEEPER_KILLING) {
		keeper_says(k, EXIT_LOST, "%s was lost, and the command could not be stopped", k->name);
		k->state = KEEPER_DONE;
	}
}

static int64_t keeper_deadline(const struct keeper *k)
{
	switch (k->state) {
	case KEEPER_HOLDING:
		return MIN(redlock_due_us(k->task->c), redlock_in_flight(k->task->c) ? k->term_at : MIN(k->check_at, k->term_at));
	case KEEPER_STOPPING:
		return k->kill_at;
	default:
		return redlock_now_us() + SWEEP_US;
	}
}

static void keeper_front(struct keeper *k)
{
	int signal;
	ssize_t n = recv(k->task->front, &signal, sizeof(signal), MSG_DONTWAIT);

	if (n == sizeof(signal)) {
		family_signal(&k->family, signal);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	k->front_gone = true;
	if (k->state < KEEPER_KILLING)
		keeper_kill(k, redlock_now_us());
}

static void keeper_sleep(struct keeper *k)
{
	int64_t at = keeper_deadline(k);
	struct itimerspec when = {.it_value = {at > 0 ? at / 1000000 : 0, at > 0 ? at % 1000000 * 1000 + 1 : 1}};
	struct pollfd fds[] = {
		{.fd = k->children, .events = POLLIN},
		{.fd = k->timer, .events = POLLIN},
		{.fd = k->front_gone ? -1 : k->task->front, .events = POLLIN},
		{.fd = k->state == KEEPER_HOLDING ? redlock_fd(k->task->c) : -1, .events = redlock_events(k->task->c)},
	};
	struct signalfd_siginfo drained;

	timerfd_settime(k->timer, TFD_TIMER_ABSTIME, &when, NULL);
	if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
		return;
	while (read(k->children, &drained, sizeof(drained)) > 0)
		;
	if (fds[2].revents)
		keeper_front(k);
	if (k->state == KEEPER_HOLDING && (fds[3].revents || redlock_now_us() >= redlock_due_us(k->task->c)))
		keeper_listen(k);
}

static void keeper_loop(struct keeper *k)
{
	while (k->state != KEEPER_DONE) {
		keeper_reap(k);
		if (k->state == KEEPER_DONE)
			break;
		keeper_decide(k, redlock_now_us());
		if (k->state != KEEPER_DONE)
			keeper_sleep(k);
	}
}

/* --- the beginning --- */

static int keeper_open(struct keeper *k)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	signal(SIGCHLD, SIG_DFL); /* ignored, as some parents leave it, it would swallow the exit code */
	k->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	k->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return k->children < 0 || k->timer < 0 ? -errno : 0;
}

static int keeper_environment(const struct keeper_task *task)
{
	char fence[24];

	snprintf(fence, sizeof(fence), "%lld", (long long)task->grant.fence);
	return setenv("REDLOCK_NAME", task->in->operand, 1) || setenv("REDLOCK_FENCE", fence, 1) ? -errno : 0;
}

static void keeper_start(struct keeper *k)
{
	const struct keeper_task *task = k->task;
	int r = keeper_open(k);

	if (!r)
		r = keeper_environment(task);
	if (!r)
		r = family_start(&k->family, &task->start);
	if (r < 0)
		keeper_says(k, EXIT_FAILED, "cannot start: %s", strerror(-r));
	else if (r > 0)
		keeper_says(k, r == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXEC, "cannot execute %s: %s", task->start.argv[0],
			    strerror(r));
	if (r)
		return;
	k->report->kind = KEEPER_STARTED;
	k->report->command = k->family.command;
	k->state = KEEPER_HOLDING;
	(void)!send(task->front, k->report, sizeof(*k->report), MSG_NOSIGNAL);
}

void keeper_hold(const struct keeper_task *task, struct keeper_report *ret_report)
{
	struct keeper k = {.task = task, .state = KEEPER_DONE, .report = ret_report};

	shown_text(span_of(task->in->operand), k.name, sizeof(k.name));
	belief_set(&k, &task->grant);
	keeper_start(&k);
	if (k.state == KEEPER_DONE)
		(void)!keeper_unlock(&k, 0);
	else
		keeper_hear_push(&k); /* read together with the answer to CHECK, so that the descriptor does not tell of it */
	keeper_loop(&k);
}
