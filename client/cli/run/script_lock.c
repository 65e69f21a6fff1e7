/* SPDX-License-Identifier: BSD-2-Clause */
/* See script_lock.h. */
#include "client/cli/run/script_lock.h"
#include "client/cli/io/complaint.h"
#include "client/cli/run/late_quit.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/loss.h"
#include "client/cli/run/process.h"
#include "client/cli/run/release_socket.h"
#include "client/cli/run/signals.h"
#include "client/cli/run/validity.h"
#include "client/cli/run/wakeups.h"
#include "client/lib/display.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define GRACE_US  200000 /* from SIGTERM to SIGKILL when somebody else may hold the lock already */
#define UNLOCK_MS 1000

struct script_lock {
	struct keeper_task *task;
	struct script_lock_for whom;
	struct wakeups wakeups;
	struct validity validity;
	int asker;      /* whoever asked to let go, or -1 */
	int64_t kill_at;    /* when the process is killed; 0: the lock is held */
	bool done, killed;
	int code;
	char name[200]; /* for a person */
};

static void script_lock_end(struct script_lock *k, int code)
{
	k->done = true;
	k->code = code;
}

/* --- the loss --- */

static void script_lock_lost(struct script_lock *k, int64_t kill_by, const char *name, const char *why)
{
	bool process = k->whom.process >= 0;
	char still[STILL_BYTES];

	k->code = EXIT_LOST;
	if (stderr_is_ready())
		complain("%s was lost (%s%s)%s", name, why, validity_still(&k->validity, still),
			 process ? "; the process that it was held for is stopped" : "");
	if (!process) {
		k->done = true;
		return;
	}
	k->kill_at = MAX(kill_by, 1);
	process_signal(k->whom.process, SIGTERM);
	process_signal(k->whom.process, SIGCONT); /* a stopped process acts on SIGTERM when it goes on */
}

/* Somebody else may hold the lock already. */
static void script_lock_lost_now(struct script_lock *k, const char *name, const char *why)
{
	script_lock_lost(k, MIN(validity_kill_at(&k->validity), redlock_now_us() + GRACE_US), name, why);
}

/* --- the connection --- */

static bool script_lock_is_valid(const struct script_lock *k)
{
	return !k->done && !k->kill_at;
}

static void script_lock_hear_push(struct script_lock *k)
{
	struct locks_held_loss loss;

	if (!locks_held_lost(k->task, &loss))
		return;
	if (loss.final)
		script_lock_lost_now(k, loss.names, loss.why);
	else
		script_lock_lost(k, validity_kill_at(&k->validity), loss.names, loss.why);
}

static void script_lock_hear_answer(struct script_lock *k)
{
	int r = redlock_finish(k->task->c, 0);
	struct redlock_grant grant;
	bool told = r == REDLOCK_OK && !locks_held_grant(k->task, &grant);

	if (told && grant.fence == k->task->grant.fence)
		validity_set(&k->validity, &grant);
	else if (r == REDLOCK_REFUSED && !loss_refused(k->task->c))
		validity_untold(&k->validity, redlock_now_us());
	else
		script_lock_lost_now(k, k->name, told ? "it is another grant" : redlock_code(k->task->c));
}

static void script_lock_listen(struct script_lock *k)
{
	struct redlock *c = k->task->c;
	bool asked = redlock_in_flight(c);
	int r = redlock_process(c);

	script_lock_hear_push(k);
	if (script_lock_is_valid(k) && asked && !redlock_in_flight(c))
		script_lock_hear_answer(k);
	/* Ask as soon as the daemon is back. */
	if (redlock_away(c) && !redlock_in_flight(c))
		k->validity.check_at = redlock_now_us();
	if (r && script_lock_is_valid(k))
		script_lock_lost(k, validity_kill_at(&k->validity), k->name, redlock_errmsg(c));
}

static void script_lock_ask(struct script_lock *k, int64_t now)
{
	validity_asked(&k->validity, now);
	if (locks_held_check_send(k->task, 0))
		script_lock_lost(k, validity_kill_at(&k->validity), k->name, redlock_errmsg(k->task->c));
}

/* --- the loop --- */

static const char *script_lock_why(const struct script_lock *k)
{
	if (redlock_away(k->task->c))
		return "redlockd went away and did not come back in time";
	return redlock_in_flight(k->task->c) ? "redlockd does not answer" : "redlockd could not renew it";
}

static void script_lock_decide(struct script_lock *k, int64_t now)
{
	if (script_lock_is_valid(k) && now >= k->validity.check_at && validity_may_ask(&k->validity, now) && !redlock_in_flight(k->task->c))
		script_lock_ask(k, now);
	if (script_lock_is_valid(k) && now >= k->validity.term_at)
		script_lock_lost(k, validity_kill_at(&k->validity), k->name, script_lock_why(k));
	if (k->kill_at && now >= k->kill_at && !k->killed) {
		process_signal(k->whom.process, SIGKILL);
		k->killed = true;
	}
}

static int64_t script_lock_deadline(const struct script_lock *k)
{
	const struct redlock *c = k->task->c;
	int64_t unanswered = k->validity.term_at;

	if (k->kill_at)
		return k->killed ? INT64_MAX / 2 : k->kill_at;
	return MIN(redlock_due_us(c), redlock_in_flight(c) ? unanswered : MIN(k->validity.check_at, unanswered));
}

static void script_lock_hear_signal(struct script_lock *k)
{
	struct signalfd_siginfo info;

	if (read(k->whom.signals, &info, sizeof(info)) == sizeof(info))
		script_lock_end(k, 128 + (int)info.ssi_signo);
}

/* What a script writes to redlock says nothing; only the end counts. */
static void script_lock_hear_input(struct script_lock *k)
{
	char bytes[4096];
	ssize_t n = read(k->whom.input, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		script_lock_end(k, EXIT_SUCCESS);
}

static void script_lock_hear_asker(struct script_lock *k)
{
	k->asker = release_socket_accept(k->whom.listening);
	if (k->asker >= 0)
		script_lock_end(k, k->kill_at ? EXIT_LOST : EXIT_SUCCESS);
}

static void script_lock_sleep(struct script_lock *k)
{
	bool process = k->whom.process >= 0;
	struct pollfd fds[] = {
		{.fd = process ? k->whom.process : k->whom.input, .events = POLLIN},
		{.fd = script_lock_is_valid(k) ? redlock_fd(k->task->c) : -1, .events = redlock_events(k->task->c)},
		{.fd = k->whom.signals, .events = POLLIN},
		{.fd = k->whom.listening, .events = POLLIN},
	};

	validity_sleeps(&k->validity, script_lock_deadline(k));
	if (!wakeups_await(&k->wakeups, script_lock_deadline(k), fds, 4))
		return;
	validity_awake(&k->validity, redlock_now_us());
	if (fds[0].revents && process)
		script_lock_end(k, k->kill_at ? EXIT_LOST : EXIT_SUCCESS);
	else if (fds[0].revents)
		script_lock_hear_input(k);
	if (fds[2].revents)
		script_lock_hear_signal(k);
	if (fds[3].revents && !k->done)
		script_lock_hear_asker(k);
	if (script_lock_is_valid(k) && (fds[1].revents || redlock_now_us() >= redlock_due_us(k->task->c)))
		script_lock_listen(k);
}

/* Waits first for the answer to a CHECK in flight. All waits are short: the end of the session frees the lock, too, see script_lock_leave. */
static void script_lock_unlock(struct script_lock *k)
{
	struct redlock *c = k->task->c;
	int r = redlock_in_flight(c) ? redlock_finish(c, UNLOCK_MS) : 0;
	unsigned at;

	redlock_set_timeout(c, UNLOCK_MS);
	if (r >= 0)
		r = locks_held_unlock(k->task, k->task->in->keep_ms, ATTEMPT_DONE, &at);
	/* Whatever else becomes of the lock, the end of the session frees it; but a name that was to be kept is free then. */
	if (!r || k->code == EXIT_LOST || (r < 0 && !k->task->in->keep_ms))
		return;
	if (r == REDLOCK_REFUSED)
		k->code = loss_refused(c) ? EXIT_LOST : k->task->in->keep_ms && !k->code ? EXIT_FAILED : k->code;
	if (stderr_is_ready())
		complain("unlocking %s: %s", k->name, redlock_errmsg(c));
}

/*
 * Ends the session. A process in the background stays for that until the daemon is back, and so does whoever asked to let go: the lock is free when that
 * returns. A signal ends it at once; then the lock stays until the grace is over.
 */
static void script_lock_leave(struct script_lock *k)
{
	k->task->grant = k->validity.grant;
	if (k->whom.process >= 0 && k->code <= EXIT_LOST && late_quit_must(k->task) && !redlock_process(k->task->c))
		late_quit(k->task, k->asker);
	else
		redlock_close(k->task->c);
}

int script_lock_signals(void)
{
	static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!signal_is_ignored(ending[i]))
			sigaddset(&set, ending[i]);
	signal(SIGPIPE, SIG_IGN); /* whoever reads from redlock may end first, and the lock is to be freed all the same */
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int script_lock_run(struct keeper_task *task, const struct script_lock_for *whom)
{
	struct script_lock k = {.task = task, .whom = *whom, .asker = -1};

	locks_held_shown(task->names, task->names_n, k.name, sizeof(k.name));
	validity_set(&k.validity, &task->grant);
	validity_awake(&k.validity, redlock_now_us());
	if (wakeups_open(&k.wakeups)) {
		complain("cannot start: out of descriptors");
		script_lock_end(&k, EXIT_FAILED);
	} else {
		script_lock_hear_push(&k); /* a push that came together with the answer to CHECK: the descriptor does not announce it */
	}
	while (!k.done) {
		int64_t now = redlock_now_us();

		validity_awake(&k.validity, now);
		script_lock_decide(&k, now);
		if (!k.done)
			script_lock_sleep(&k);
	}
	script_lock_unlock(&k); /* also after a loss: a daemon that did not answer may still have the lock */
	script_lock_leave(&k);
	if (k.whom.listening >= 0)
		close(k.whom.listening); /* whoever hears the answer may hold the lock anew */
	release_socket_answer(k.asker, k.code);
	return k.code;
}
