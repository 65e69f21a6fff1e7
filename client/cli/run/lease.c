/* SPDX-License-Identifier: BSD-2-Clause */
/* See lease.h. */
#include "client/cli/run/lease.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define GRACE_US 200000 /* from SIGTERM to SIGKILL, if somebody else may hold the lock already */
#define TERM_SHARE 5  /* the share of the validity that is left when the command is stopped */
#define KILL_SHARE 10 /* … and when it is killed */
#define STILL_LEAST_US 100000 /* a smaller delay is no pause: the process was only waiting for a processor */
#define ANSWER_LEAST_US 200000 /* time for the answer that says whether the lock is still held */
#define ASK_SHARE  20 /* the share of the validity that an answer may take, and after which a daemon that did not know is asked again */

void validity_set(struct validity *b, const struct redlock_grant *grant)
{
	int64_t valid_us = grant->valid_ms * 1000, ttl_us = (grant->ttl_ms ? grant->ttl_ms : b->grant.ttl_ms) * 1000;

	if (ttl_us <= 0)
		ttl_us = valid_us;
	b->longest_us = MAX(b->longest_us, MIN(ttl_us, valid_us));
	b->grant = *grant;
	b->grant.ttl_ms = ttl_us / 1000;
	if (!b->awake_us)
		b->awake_us = grant->until_us - valid_us; /* the process may be stopped before it first looks at the clock */
	/*
	 * CHECK is sent every third of the ttl, which also notices a daemon that is stopped but not gone. The best moment is shortly after the daemon
	 * renews, which it does when two thirds of the ttl are left.
	 */
	b->check_at = grant->until_us - valid_us + MIN(ttl_us / 3, MAX(valid_us - 2 * ttl_us / 3, 0) + ttl_us / 20);
	b->term_at = grant->until_us - b->longest_us / TERM_SHARE;
	if (b->term_at > b->late_until) {
		b->paused_us = b->late_until = 0;
		return;
	}
	b->term_at = b->late_until; /* this is the answer to a CHECK that was sent before the pause */
}

int64_t validity_kill_at(const struct validity *b)
{
	return b->grant.until_us - b->longest_us / KILL_SHARE;
}

void validity_asked(struct validity *b, int64_t now)
{
	b->term_at = MAX(b->term_at, MIN(now + b->longest_us / ASK_SHARE, validity_kill_at(b)));
}

void validity_awake(struct validity *b, int64_t now)
{
	int64_t late = now - b->awake_us, wait = MAX(b->longest_us / ASK_SHARE, ANSWER_LEAST_US), kill_at = validity_kill_at(b);

	b->awake_us = now;
	if (late < STILL_LEAST_US || late < b->longest_us / ASK_SHARE)
		return;
	b->paused_us += late;
	b->late_until = now < kill_at ? MIN(now + wait, kill_at) : now + wait; /* before the validity is over, nobody else has the lock */
	b->term_at = MAX(b->term_at, b->late_until);
}

void validity_sleeps(struct validity *b, int64_t due)
{
	b->awake_us = MAX(b->awake_us, due);
}

const char *validity_still(const struct validity *b, char out[STILL_BYTES])
{
	char age[AGE_BYTES];

	out[0] = '\0';
	if (b->paused_us)
		snprintf(out, STILL_BYTES, "; this process was paused for %s", age_text(b->paused_us / 1000, age));
	return out;
}

bool validity_may_ask(const struct validity *b, int64_t now)
{
	return now < MAX(validity_kill_at(b), b->late_until);
}

void validity_unknown(struct validity *b, int64_t now)
{
	b->check_at = now + b->longest_us / ASK_SHARE;
}

/* --- the daemon --- */

static void lease_lost(struct lease *l, int64_t kill_by, const char *name, const char *why)
{
	l->lost(l, MIN(kill_by, validity_kill_at(&l->validity)), name, why);
}

/* When CMD must have ended if somebody else may hold the lock already. */
static int64_t soon(void)
{
	return redlock_now_us() + GRACE_US;
}

static void lease_take_push(struct lease *l)
{
	const struct redlock_line *push;
	int64_t kill_by = INT64_MAX;
	char names[SHOWN_BYTES] = "", why[32];
	bool lost = false;
	size_t at = 0;

	for (; (push = locks_held_loss(l->task)); lost = true) {
		if (at > 0)
			at = text_add(names, at, sizeof(names), ", ");
		if (at + 8 < sizeof(names))
			at += field_show(push, "name", names + at, sizeof(names) - at);
		field_show(push, "reason", why, sizeof(why));
		if (loss_is_final(push))
			kill_by = soon();
	}
	if (lost)
		lease_lost(l, kill_by, l->task->job ? l->name : names, why);
}

static void lease_ask_next(struct lease *l)
{
	const struct keeper_task *task = l->task;
	const char *name = task->names[l->asked];

	if (task->job ? redlock_check_job_send(task->c, name, task->job->id) : redlock_check_send(task->c, name))
		lease_lost(l, INT64_MAX, l->name, redlock_errmsg(task->c));
}

const char *lease_name(struct lease *l, unsigned i)
{
	return l->task->job ? l->name : shown(l->task->names[i], l->one);
}

static void lease_take_answer(struct lease *l)
{
	const struct keeper_task *task = l->task;
	struct redlock *c = task->c;
	int r = redlock_finish(c, 0);
	struct redlock_grant grant;
	bool granted = r == REDLOCK_OK && !(task->job ? redlock_job_grant(c, &grant) : redlock_grant(c, &grant));

	if (granted && grant.fence == task->grants[l->asked].fence) {
		task->grants[l->asked] = grant;
		/* After the last name, the validity is that of the lock that ends first. */
		if (++l->asked < task->names_n)
			lease_ask_next(l);
		else
			validity_set(&l->validity, locks_held_first(task));
	} else if (r == -ECONNABORTED || (r == REDLOCK_REFUSED && !loss_refused(c))) {
		validity_unknown(&l->validity, redlock_now_us());
	} else {
		lease_lost(l, soon(), lease_name(l, l->asked), granted ? "it is another grant" : redlock_code(c));
	}
}

void lease_ask(struct lease *l, int64_t now)
{
	l->asked = 0;
	validity_asked(&l->validity, now);
	lease_ask_next(l);
}

void lease_decide(struct lease *l, int64_t now)
{
	const struct redlock *c = l->task->c;
	const char *why = redlock_in_flight(c) ? "redlockd does not answer" : "redlockd could not renew it";

	if (now >= l->validity.check_at && !redlock_in_flight(c) && validity_may_ask(&l->validity, now)) {
		lease_ask(l, now);
	} else if (now >= l->validity.term_at) {
		l->unreported = true;
		lease_lost(l, INT64_MAX, l->name, redlock_away(c) ? "redlockd went away and did not come back in time" : why);
	}
}

int64_t lease_due_us(const struct lease *l, int64_t unanswered)
{
	const struct redlock *c = l->task->c;

	return MIN(redlock_due_us(c), redlock_in_flight(c) ? unanswered : MIN(l->validity.check_at, unanswered));
}

int lease_confirm(struct keeper_task *task, struct waiting *w, int64_t ttl_ms, int code)
{
	int r;

	/* The lock may be relied on for that long without an answer. */
	if (ttl_ms > MAX(w->in->ttl_ms, GRACE_MS) && redlock_session_secret(task->c)[0] && !waiting_regreet(w, ttl_ms))
		return w->exit;
	r = locks_held_check(task);
	if (r) {
		complain("%s%s", redlock_errmsg(task->c), silence_hint(r));
		w->exit = code;
		return code;
	}
	if (!task->grant.ttl_ms) /* only the answer to LOCK has it */
		task->grant.ttl_ms = ttl_ms;
	return 0;
}

int lease_begin(struct lease *l)
{
	sigset_t child;

	locks_held_shown(l->task->names, l->task->names_n, l->name, sizeof(l->name));
	validity_set(&l->validity, &l->task->grant);
	validity_awake(&l->validity, redlock_now_us());
	l->ready = POLLIN; /* a push may have come with the answer to CHECK, which the descriptor does not show */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	signal(SIGCHLD, SIG_DFL); /* if the parent ignores it, the exit code would be lost */
	l->children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	l->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->children < 0 || l->timer < 0)
		return -errno;
	return 0;
}

bool lease_sleep(struct lease *l, int64_t due_us, struct pollfd *more, unsigned n)
{
	struct itimerspec when = {.it_value = {due_us > 0 ? due_us / 1000000 : 0, due_us > 0 ? due_us % 1000000 * 1000 + 1 : 1}};
	struct pollfd fds[3 + LEASE_MORE] = {{.fd = l->children, .events = POLLIN}, {.fd = l->timer, .events = POLLIN}};
	struct signalfd_siginfo drained;
	const struct redlock *c = l->task->c;

	fds[2] = (struct pollfd){.fd = l->deaf ? -1 : redlock_fd(c), .events = redlock_events(c)};
	memcpy(fds + 3, more, n * sizeof(*more));
	validity_sleeps(&l->validity, due_us);
	timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &when, NULL);
	if (poll(fds, 3 + n, -1) < 0)
		return false;
	while (read(l->children, &drained, sizeof(drained)) > 0)
		;
	memcpy(more, fds + 3, n * sizeof(*more));
	l->ready = fds[2].revents;
	return true;
}

void lease_process(struct lease *l)
{
	struct redlock *c = l->task->c;
	bool asked = redlock_in_flight(c);
	int r;

	if (l->deaf || (!l->ready && redlock_now_us() < redlock_due_us(c)))
		return;
	r = redlock_process(c);
	validity_awake(&l->validity, redlock_now_us()); /* a pause before this may be the reason for what was read */
	lease_take_push(l);
	if (!l->deaf && asked && !redlock_in_flight(c))
		lease_take_answer(l);
	/* Ask as soon as the daemon is back. */
	if (redlock_away(c) && !redlock_in_flight(c))
		l->validity.check_at = redlock_now_us();
	/* Whatever ended the connection, the lock is held until the moment that the daemon promised. */
	if (r && !l->deaf)
		lease_lost(l, INT64_MAX, l->name, redlock_errmsg(c));
}

/*
 * A job without DONE runs again, so this waits for a daemon that is away, for as long as the lease lasts. A lock needs no such wait: the end of the
 * session frees it.
 */
int lease_finish_check(const struct lease *l)
{
	int64_t left_ms = l->task->job ? redlock_left_us(&l->validity.grant) / 1000 : 0;
	int r = redlock_in_flight(l->task->c) ? redlock_finish(l->task->c, MAX(left_ms, UNLOCK_MS)) : 0;

	return r < 0 && r != -ECONNABORTED ? r : 0;
}

/* --- the end of the session --- */

/* Only UNLOCK keeps a name. QUIT does everything else. */
static bool keeps_name(const struct keeper_task *task)
{
	return task->in->keep_ms && task->grant.until_us;
}

bool late_quit_must(const struct keeper_task *task)
{
	return redlock_away(task->c) || (keeps_name(task) && redlock_in_flight(task->c));
}

void late_quit(const struct keeper_task *task, int asker)
{
	struct redlock *c = task->c;
	int64_t grace_ms = MAX(task->grant.ttl_ms, MAX(task->in->ttl_ms, GRACE_MS)), now;
	/* When both the grace and the lease have ended, the daemon keeps nothing of the session. */
	int64_t until = MAX(redlock_now_us(), task->grant.until_us) + grace_ms * 1000;
	const int kept[] = {redlock_fd(c), asker};
	int r = 0;

	descriptors_drop(kept, 2); /* closes front, too */
	while (!r && late_quit_must(task) && (now = redlock_now_us()) < until) {
		struct pollfd fd = {.fd = redlock_fd(c), .events = redlock_events(c)};
		int64_t next = MIN(until, redlock_due_us(c));

		(void)!poll(&fd, 1, next > now ? (int)MIN((next - now) / 1000 + 1, 60000) : 0);
		r = redlock_process(c);
	}
	redlock_set_timeout(c, UNLOCK_MS);
	/* Some of several names may be kept already, because their UNLOCK was answered before the connection broke. */
	for (unsigned i = 0; keeps_name(task) && !redlock_in_flight(c) && r >= 0 && i < task->names_n; i++)
		r = redlock_unlock(c, task->names[i], task->in->keep_ms);
	redlock_close(c);
}
