/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run and try: a keeper gets the lock and holds it for the command. This process passes on signals, and exits as the command did. The lock does not
 * depend on it, so it may be stopped. Until the lock is granted, signals end this process; the keeper notices that, and gives up its request.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/locks_held.h"
#include "client/cli/run/once.h"
#include "client/cli/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNSTOPPABLE_US 1000000
#define ASK_AGAIN_US   100000 /* the pause between requests about the session. It is also taken over this soon, because max_grace may be short */
#define SESSION_GONE   1
#define TRUSTED_US     1000000 /* a request of work that lasted this long has no mistake */

/* How a run ended. */
struct run_end {
	bool granted; /* the lock was granted */
	bool started; /* CMD was executed */
	bool lost;    /* the lock was lost, and no process of CMD is left */
	int signal;   /* the last signal that asked CMD to end while it ran; 0: none did */
};

struct front {
	const struct invocation *in;
	int keeper, signals; /* descriptors; signals is -1 while a signal still ends this process */
	bool grouped;
	struct run_end end;
	bool alone;             /* this process began without children, so all its children descend from CMD */
	pid_t process;          /* the keeper */
	sigset_t mask;          /* the signal mask with which this process started */
	struct keeper_report last_report; /* the last report */
};

static void signal_pass(struct front *f, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	bool ends = signal == SIGTERM || signal == SIGINT || signal == SIGQUIT, ignored = signal_is_ignored(signal);
	bool terminal = info->ssi_code == SI_KERNEL, hangs_up = signal == SIGHUP || signal == SIGCONT;
	struct front_signal pass = {.number = signal};

	/* In a common process group the terminal has signalled the command, too. But it sends a hang-up to the leader of the session only. */
	pass.had = !f->grouped && terminal && !(hangs_up && getsid(0) == getpid());
	if (signal == SIGTSTP && terminal && !signal_has_shell()) {
		if (!f->grouped)
			kill(0, SIGCONT); /* the terminal has stopped CMD */
		return;
	}
	/* A SIGHUP from elsewhere may ask CMD to read its configuration again. */
	pass.ending = !ignored && (ends || (signal == SIGHUP && terminal));
	if (pass.ending)
		f->end.signal = signal;
	(void)!send(f->keeper, &pass, sizeof(pass), MSG_NOSIGNAL | MSG_DONTWAIT);
	/* Stops this process, so that the shell sees a stopped job. The keeper continues, and with it the lock. */
	if (signal == SIGTSTP && !ignored)
		raise(SIGSTOP);
}

/* --- after the keeper was killed --- */

/* Takes the session over. 0; SESSION_GONE; or a negative errno: the daemon cannot be asked now. */
static int session_take(const struct front *f, struct redlock **ret_c)
{
	char line[sizeof(f->last_report.session) + sizeof(f->last_report.secret) + 16];
	struct redlock *c;
	int r;

	if (!f->last_report.secret[0])
		return SESSION_GONE;
	r = redlock_open(f->in->addr, ANSWER_TIMEOUT_MS, &c);
	if (r)
		return r;
	snprintf(line, sizeof(line), "RESUME %s %s", f->last_report.session, f->last_report.secret);
	if (!redlock_request(c, line, 0, NULL, NULL)) {
		*ret_c = c;
		return 0;
	}
	r = strcmp(redlock_code(c), "NOTFOUND") ? -EAGAIN : SESSION_GONE;
	redlock_close(c);
	return r;
}

/* Ends the session, because nobody needs its grace. c: a connection that has taken it over, or NULL. */
static void session_end(const struct front *f, struct redlock *c)
{
	if (c || !session_take(f, &c))
		(void)!redlock_request(c, "QUIT", 0, NULL, NULL);
	redlock_close(c);
}

/* Takes the session over, or asks whether it still holds the lock. False: the lock is lost. */
static bool session_holds(const struct front *f, const char *const *names, unsigned n, struct redlock **c)
{
	struct redlock_grant grant;
	int r = 0;

	if (!*c)
		return session_take(f, c) != SESSION_GONE;
	for (unsigned i = 0; !r && i < n; i++)
		r = works(f->in) ? redlock_ping(*c) : redlock_check(*c, names[i], &grant);
	if (r == REDLOCK_REFUSED && loss_refused(*c))
		return false;
	if (r < 0) {
		redlock_close(*c);
		*c = NULL;
	}
	return true;
}

/* True: CMD has ended, and so have its descendants, as far as this process can distinguish them from other children. */
static bool command_killed(const struct front *f, struct descendants *descendants)
{
	if (f->alone) {
		descendants_kill(descendants);
		return descendants_reap(descendants);
	}
	kill(f->grouped ? -f->last_report.command : f->last_report.command, SIGKILL);
	return waitpid(f->last_report.command, NULL, WNOHANG) != 0;
}

/* The kernel killed CMD with the keeper, but not its descendants. Each of those becomes a child of this process. False: CMD was not stopped in this time. */
static bool command_end(const struct front *f, struct descendants *descendants)
{
	int64_t until = redlock_now_us() + ASK_AGAIN_US;
	bool gone;

	while (!(gone = command_killed(f, descendants)) && redlock_now_us() < until)
		(void)poll(NULL, 0, 5);
	return gone;
}

/* Reports that the session continues here, so that nobody else gets the lock while CMD lives. From now on signals end this process again. */
static void holding_report(const struct front *f, const char *name)
{
	if (stderr_is_ready())
		complain("the process that held the lock was killed, and the command could not be; redlock holds on to %s", name);
	sigprocmask(SIG_SETMASK, &f->mask, NULL);
}

/* Takes the session over if CMD does not end at once. */
static int keeper_lost(const struct front *f)
{
	struct descendants descendants = {.command = f->last_report.command, .grouped = f->grouped && f->last_report.command > 0};
	/* The keeper may have been killed after it started CMD and before it reported that. */
	bool may_run = f->last_report.command > 0 || (f->end.granted && f->alone), reported = false, held;
	int64_t unstoppable = redlock_now_us() + UNSTOPPABLE_US;
	struct redlock *c = NULL;
	char name[SHOWN_BYTES];
	unsigned n = f->in->any ? 1 : f->in->names_n;
	const char *const *names = f->in->names + (f->in->any ? f->last_report.name : 0);

	locks_held_shown(names, n, name, sizeof(name));
	waitpid(f->process, NULL, 0);
	while (may_run && !command_end(f, &descendants)) {
		held = session_holds(f, names, n, &c);
		if (redlock_now_us() < unstoppable)
			continue;
		if (!held) {
			complain("%s was lost, and the command could not be stopped", name);
			redlock_close(c);
			return EXIT_LOST;
		}
		if (!reported)
			holding_report(f, name);
		reported = true;
	}
	session_end(f, c);
	if (!reported)
		complain(f->end.granted ? "the process that held the lock was killed; so was the command"
				    : "the process that waited for the lock was killed");
	return f->end.granted ? EXIT_LOST : EXIT_FAILED;
}

/* Handles a report of the keeper. Returns -1, or the exit code. */
static int report_take(struct front *f)
{
	static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};
	struct front_signal go = {.number = 0};
	int r = 0;

	f->end.lost = f->last_report.lost;
	f->end.started |= f->last_report.kind == KEEPER_STARTED;
	if (f->last_report.kind == KEEPER_ENDED) {
		if (f->last_report.text[0])
			complain("%s", f->last_report.text);
		/* The keeper has nothing left to do; reap it. */
		if (!f->last_report.lingers)
			waitpid(f->process, NULL, 0);
		return f->last_report.code;
	}
	if (f->last_report.kind == KEEPER_GRANTED) {
		f->end.granted = true;
		f->signals = signals_take(passed_on, sizeof(passed_on) / sizeof(passed_on[0]), true);
		if (f->signals < 0 || send(f->keeper, &go, sizeof(go), MSG_NOSIGNAL) < 0)
			r = -errno;
	}
	if (!r)
		return -1;
	complain("cannot start: %s", strerror(-r));
	return EXIT_FAILED;
}

static int front_wait(struct front *f)
{
	struct signalfd_siginfo info;
	struct keeper_report report;
	ssize_t n;
	int r = -1;

	while (r < 0) {
		struct pollfd fds[] = {{.fd = f->keeper, .events = POLLIN}, {.fd = f->signals, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_FAILED;
		while (f->signals >= 0 && read(f->signals, &info, sizeof(info)) == sizeof(info))
			signal_pass(f, &info);
		n = recv(f->keeper, &report, sizeof(report), MSG_DONTWAIT);
		/* If the keeper left a signal unread, recv first returns ECONNRESET once, and then the last report. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
			continue;
		if (n != sizeof(report))
			return keeper_lost(f);
		f->last_report = report;
		r = report_take(f);
	}
	return r;
}

static _Noreturn void keeper_begin(const struct front *f, struct keeper_task *task, int end, pid_t group)
{
	sigset_t all;

	/* The keeper blocks all signals: a service manager signals each process of a service, and redlock passes its own on to CMD. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	close(f->keeper);
	setpgid(0, 0);
	prctl(PR_SET_NAME, "redlock-keeper");
	task->front = end;
	task->start.grouped = f->grouped;
	task->start.group = group;
	task->start.mask = &f->mask;
	keeper_main(task);
}

/* After the fork, the connection belongs to the keeper. */
static int front_run(struct front *f, struct keeper_task *task)
{
	pid_t group = getpgrp();
	int ends[2] = {-1, -1};

	sigprocmask(SIG_BLOCK, NULL, &f->mask);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	f->process = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? -1 : fork();
	f->keeper = ends[0];
	if (f->process == 0)
		keeper_begin(f, task, ends[1], group);
	if (f->process < 0)
		complain("cannot start: %s", strerror(errno));
	if (ends[1] >= 0)
		close(ends[1]);
	if (f->process < 0)
		return EXIT_FAILED;
	redlock_close(task->c);
	task->c = NULL;
	return front_wait(f);
}

/*
 * The controlling terminal stops a process outside of its foreground group that uses it. So CMD stays in the group of redlock, which a shell puts
 * into the foreground, even if standard input is a file or a pipe.
 */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Runs CMD once. c was just opened; this call closes it. Returns the exit code of run. The signals that CMD was to get stay blocked. */
static int run_once(const struct invocation *in, struct redlock *c, struct run_end *ret_end)
{
	struct front f = {.in = in, .keeper = -1, .signals = -1, .grouped = !has_terminal()};
	struct keeper_task task = {.in = in, .c = c, .start.argv = in->argv};
	siginfo_t who;
	int r;

	f.alone = waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
	r = front_run(&f, &task);
	redlock_close(task.c);
	if (f.keeper >= 0)
		close(f.keeper);
	if (f.signals >= 0)
		close(f.signals);
	*ret_end = f.end;
	return r;
}

/*
 * lead and work run CMD again and again: lead once for each term as leader, work once for each job of a queue. Each run has its own session and
 * keeper. So at each term redlock queues after the others that wait. Whatever happens to CMD, the keeper or the connection, a job is done or given
 * back. A run begins only when nothing is left of the CMD of the previous run. Between runs a signal ends this process.
 */

/* Whether lead or work continues. begun: there was an earlier run, or work lasted for some time. So the request has no mistake, and the trouble will pass. */
static bool runs_again(const struct invocation *in, const struct run_end *end, int code, bool begun)
{
	if (command_id(in) == CLI_LEAD)
		return end->lost ? !end->signal : begun && !end->granted;
	if (!works(in) || end->signal)
		return false;
	/* A CMD that cannot be executed would fail for every job. But a CMD that was executed, like a shell, may end with the same codes. */
	if (end->granted)
		return end->started || (code != EXIT_CANNOT_EXEC && code != EXIT_NOT_FOUND);
	return begun && code == EXIT_FAILED;
}

int run_main(const struct invocation *in)
{
	struct invocation first = *in;
	const struct invocation *now = &first;
	struct redlock *c = dial_waiting(&first, NULL);
	struct run_end end;
	bool begun = false;
	sigset_t mask;
	int code;

	if (!c)
		return EXIT_FAILED;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (;;) {
		int64_t from = redlock_now_us();

		code = run_once(now, c, &end);
		now = in;
		begun |= works(in) && (end.granted || redlock_now_us() - from > TRUSTED_US);
		if (!runs_again(in, &end, code, begun))
			break;
		begun = true;
		sigprocmask(SIG_SETMASK, &mask, NULL);
		if (!end.granted)
			redial_pause();
		c = redial(in->addr);
		/* Reaps a keeper that lingered, and background processes of CMD. Nothing else waits for them. */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return end.signal && (works(in) || (command_id(in) == CLI_LEAD && end.lost)) ? 128 + end.signal : code;
}

int once_main(const struct invocation *in)
{
	struct invocation now = *in;

	if (strlen(in->operand) > ONCE_NAME_MOST) {
		complain("the name is too long: at most %zu bytes", ONCE_NAME_MOST);
		return in->status ? EX_USAGE : EXIT_FAILED;
	}
	if (in->status)
		return once_status(in);
	now.wait_ms = 0;
	now.busy_exit = EXIT_SUCCESS;
	return run_main(&now);
}
