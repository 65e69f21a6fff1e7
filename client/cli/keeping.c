/* SPDX-License-Identifier: BSD-2-Clause */
/* See keeping.h. */
#include "client/cli/keeping.h"
#include "client/cli/belief.h"
#include "client/cli/complaint.h"
#include "client/cli/letting.h"
#include "client/cli/linger.h"
#include "client/cli/loss.h"
#include "client/cli/process.h"
#include "client/cli/several.h"
#include "client/cli/signals.h"
#include "client/cli/wakeups.h"
#include "client/lib/person.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define GRACE_US  200000 /* from SIGTERM to SIGKILL when somebody else may hold the lock already */
#define UNLOCK_MS 1000

struct keeping {
	struct keeper_task *task;
	struct keeping_for whom;
	struct wakeups wakeups;
	struct belief belief;
	int asker;      /* whoever asked to let go, or -1 */
	int64_t kill_at;    /* when the process is killed; 0: the lock is held */
	bool done, killed;
	int code;
	char name[200]; /* for a person */
};

static void keeping_end(struct keeping *k, int code)
{
	k->done = true;
	k->code = code;
}

/* --- the loss --- */

static void keeping_lost(struct keeping *k, int64_t kill_by, const char *name, const char *why)
{
	bool process = k->whom.process >= 0;
	char still[STILL_BYTES];

	k->code = EXIT_LOST;
	if (stderr_is_ready())
		complain("%s was lost (%s%s)%s", name, why, belief_still(&k->belief, still), process ? "; the process that it was held for is stopped" : "");
	if (!process) {
		k->done = true;
		return;
	}
	k->kill_at = MAX(kill_by, 1);
	process_signal(k->whom.process, SIGTERM);
	process_signal(k->whom.process, SIGCONT); /* a stopped process acts on SIGTERM when it goes on */
}

/* Somebody else may hold the lock already. */
static void keeping_lost_now(struct keeping *k, const char *name, const char *why)
{
	keeping_lost(k, MIN(belief_kill_at(&k->belief), redlock_now_us() + GRACE_US), name, why);
}

/* --- the connection --- */

static bool keeping_believes(const struct keeping *k)
{
	return !k->done && !k->kill_at;
}

static void keeping_hear_push(struct keeping *k)
{
	struct several_loss loss;

	if (!several_lost(k->task, &loss))
		return;
	if (loss.final)
		keeping_lost_now(k, loss.names, loss.why);
	else
		keeping_lost(k, belief_kill_at(&k->belief), loss.names, loss.why);
}

static void keeping_hear_answer(struct keeping *k)
{
	int r = redlock_finish(k->task->c, 0);
	struct redlock_grant grant;
	bool told = r == REDLOCK_OK && !several_grant(k->task, &grant);

	if (told && grant.fence == k->task->grant.fence)
		belief_set(&k->belief, &grant);
	else if (r == REDLOCK_REFUSED && !loss_refused(k->task->c))
		belief_untold(&k->belief, redlock_now_us());
	else
		keeping_lost_now(k, k->name, told ? "it is another grant" : redlock_code(k->task->c));
}

static void keeping_listen(struct keeping *k)
{
	struct redlock *c = k->task->c;
	bool asked = redlock_in_flight(c);
	int r = redlock_process(c);

	keeping_hear_push(k);
	if (keeping_believes(k) && asked && !redlock_in_flight(c))
		keeping_hear_answer(k);
	/* Ask as soon as the daemon is back. */
	if (redlock_away(c) && !redlock_in_flight(c))
		k->belief.check_at = redlock_now_us();
	if (r && keeping_believes(k))
		keeping_lost(k, belief_kill_at(&k->belief), k->name, redlock_errmsg(c));
}

static void keeping_ask(struct keeping *k, int64_t now)
{
	belief_asked(&k->belief, now);
	if (several_check_send(k->task, 0))
		keeping_lost(k, belief_kill_at(&k->belief), k->name, redlock_errmsg(k->task->c));
}

/* --- the loop --- */

static const char *keeping_why(const struct keeping *k)
{
	if (redlock_away(k->task->c))
		return "redlockd went away and did not come back in time";
	return redlock_in_flight(k->task->c) ? "redlockd does not answer" : "redlockd could not renew it";
}

static void keeping_decide(struct keeping *k, int64_t now)
{
	if (keeping_believes(k) && now >= k->belief.check_at && belief_may_ask(&k->belief, now) && !redlock_in_flight(k->task->c))
		keeping_ask(k, now);
	if (keeping_believes(k) && now >= k->belief.term_at)
		keeping_lost(k, belief_kill_at(&k->belief), k->name, keeping_why(k));
	if (k->kill_at && now >= k->kill_at && !k->killed) {
		process_signal(k->whom.process, SIGKILL);
		k->killed = true;
	}
}

static int64_t keeping_deadline(const struct keeping *k)
{
	const struct redlock *c = k->task->c;
	int64_t unanswered = k->belief.term_at;

	if (k->kill_at)
		return k->killed ? INT64_MAX / 2 : k->kill_at;
	return MIN(redlock_due_us(c), redlock_in_flight(c) ? unanswered : MIN(k->belief.check_at, unanswered));
}

static void keeping_hear_signal(struct keeping *k)
{
	struct signalfd_siginfo info;

	if (read(k->whom.signals, &info, sizeof(info)) == sizeof(info))
		keeping_end(k, 128 + (int)info.ssi_signo);
}

/* What a script writes to redlock says nothing; only the end counts. */
static void keeping_hear_input(struct keeping *k)
{
	char bytes[4096];
	ssize_t n = read(k->whom.input, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		keeping_end(k, EXIT_SUCCESS);
}

static void keeping_hear_asker(struct keeping *k)
{
	k->asker = letting_accept(k->whom.listening);
	if (k->asker >= 0)
		keeping_end(k, k->kill_at ? EXIT_LOST : EXIT_SUCCESS);
}

static void keeping_sleep(struct keeping *k)
{
	bool process = k->whom.process >= 0;
	struct pollfd fds[] = {
		{.fd = process ? k->whom.process : k->whom.input, .events = POLLIN},
		{.fd = keeping_believes(k) ? redlock_fd(k->task->c) : -1, .events = redlock_events(k->task->c)},
		{.fd = k->whom.signals, .events = POLLIN},
		{.fd = k->whom.listening, .events = POLLIN},
	};

	belief_sleeps(&k->belief, keeping_deadline(k));
	if (!wakeups_await(&k->wakeups, keeping_deadline(k), fds, 4))
		return;
	belief_awake(&k->belief, redlock_now_us());
	if (fds[0].revents && process)
		keeping_end(k, k->kill_at ? EXIT_LOST : EXIT_SUCCESS);
	else if (fds[0].revents)
		keeping_hear_input(k);
	if (fds[2].revents)
		keeping_hear_signal(k);
	if (fds[3].revents && !k->done)
		keeping_hear_asker(k);
	if (keeping_believes(k) && (fds[1].revents || redlock_now_us() >= redlock_due_us(k->task->c)))
		keeping_listen(k);
}

/* Waits first for the answer to a CHECK in flight. All waits are short: the end of the session frees the lock, too, see keeping_leave. */
static void keeping_unlock(struct keeping *k)
{
	struct redlock *c = k->task->c;
	int r = redlock_in_flight(c) ? redlock_finish(c, UNLOCK_MS) : 0;
	unsigned at;

	redlock_set_timeout(c, UNLOCK_MS);
	if (r >= 0)
		r = several_unlock(k->task, k->task->in->keep_ms, ATTEMPT_DONE, &at);
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
static void keeping_leave(struct keeping *k)
{
	k->task->grant = k->belief.grant;
	if (k->whom.process >= 0 && k->code <= EXIT_LOST && linger_must(k->task) && !redlock_process(k->task->c))
		linger(k->task, k->asker);
	else
		redlock_close(k->task->c);
}

int keeping_signals(void)
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

int keeping_run(struct keeper_task *task, const struct keeping_for *whom)
{
	struct keeping k = {.task = task, .whom = *whom, .asker = -1};

	several_shown(task->names, task->names_n, k.name, sizeof(k.name));
	belief_set(&k.belief, &task->grant);
	belief_awake(&k.belief, redlock_now_us());
	if (wakeups_open(&k.wakeups)) {
		complain("cannot start: out of descriptors");
		keeping_end(&k, EXIT_FAILED);
	} else {
		keeping_hear_push(&k); /* a push that came together with the answer to CHECK: the descriptor does not announce it */
	}
	while (!k.done) {
		int64_t now = redlock_now_us();

		belief_awake(&k.belief, now);
		keeping_decide(&k, now);
		if (!k.done)
			keeping_sleep(&k);
	}
	keeping_unlock(&k); /* also after a loss: a daemon that did not answer may still have the lock */
	keeping_leave(&k);
	if (k.whom.listening >= 0)
		close(k.whom.listening); /* whoever hears the answer may hold the lock anew */
	letting_answer(k.asker, k.code);
	return k.code;
}
