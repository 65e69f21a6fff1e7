/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run and try: let a keeper get the lock and hold it for the command, pass on signals, end as the command did. Only signals and the
 * exit code are handled here; nothing that a stop of this process could delay matters to the lock. Until the lock is granted signals
 * end this process as they end any: the keeper sees that, and leaves the line.
 */
#include "client/commands.h"
#include "client/complaint.h"
#include "client/dial.h"
#include "client/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNSTOPPABLE_US 1000000

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

struct front {
	const struct invocation *in;
	int keeper, signals; /* descriptors; signals -1: they still end this process as they end any */
	bool grouped, granted;
	bool alone; /* it began without children, which a shell may leave to what it executes: all that it has descends from CMD */
	pid_t process, command; /* of the keeper; 0: CMD does not run yet */
	sigset_t mask;          /* as it was at the beginning */
	char session[64], secret[128];
};

static int signals_take(struct front *f)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return f->signals < 0 ? -errno : 0;
}

/* In a common process group the terminal has told the command already; but that it is gone it tells the leader of its session alone. */
static bool terminal_told_both(const struct front *f, const struct signalfd_siginfo *info)
{
	return !f->grouped && info->ssi_code == SI_KERNEL && !(info->ssi_signo == SIGHUP && getsid(0) == getpid());
}

static void signal_pass(const struct front *f, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (!terminal_told_both(f, info))
		(void)!send(f->keeper, &signal, sizeof(signal), MSG_NOSIGNAL | MSG_DONTWAIT);
	/* The shell sees the job stop; the keeper goes on, so the lock stays believed. */
	if (signal == SIGTSTP)
		raise(SIGSTOP);
}

static void signals_pass(const struct front *f)
{
	struct signalfd_siginfo info;

	while (read(f->signals, &info, sizeof(info)) == sizeof(info))
		signal_pass(f, &info);
}

/* The grace of a session was for the keeper alone. */
static void session_end(const struct front *f)
{
	char line[sizeof(f->session) + sizeof(f->secret) + 16];
	struct redlock *c;

	if (!f->secret[0] || redlock_open(f->in->addr, ANSWER_TIMEOUT_MS, &c))
		return;
	snprintf(line, sizeof(line), "RESUME %s %s", f->session, f->secret);
	if (!redlock_request(c, line, 0, NULL, NULL))
		(void)!redlock_request(c, "QUIT", 0, NULL, NULL);
	redlock_close(c);
}

static bool has_no_children(void)
{
	siginfo_t who;

	return waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* True: it has ended, and, where strangers cannot be meant, what descends from it, too. */
static bool command_killed(const struct front *f, struct family *family)
{
	if (f->alone) {
		family_kill(family);
		return family_reap(family);
	}
	if (f->grouped)
		kill(-f->command, SIGKILL);
	return waitpid(f->command, NULL, WNOHANG) != 0;
}

/* The kernel has killed the command with the keeper, but not its descendants. All of them are children of this process, one after the other. */
static void command_end(const struct front *f)
{
	struct timespec pause = {0, 2000000};
	int64_t until = redlock_now_us() + UNSTOPPABLE_US;
	struct family family = {.command = f->command, .grouped = f->grouped};

	while (!command_killed(f, &family) && redlock_now_us() < until)
		nanosleep(&pause, NULL);
}

static int keeper_lost(const struct front *f)
{
	waitpid(f->process, NULL, 0);
	if (f->command > 0)
		command_end(f);
	session_end(f);
	complain(f->granted ? "the process that held the lock was killed; so was the command"
			    : "the process that waited for the lock was killed");
	return f->granted ? EXIT_LOST : EXIT_FAILED;
}

static int granted(struct front *f)
{
	int go = 0, r = signals_take(f);

	f->granted = true;
	if (r)
		return r;
	return send(f->keeper, &go, sizeof(go), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int ended(const struct front *f, const struct keeper_report *report)
{
	if (report->text[0])
		complain("%s", report->text);
	/* It has nothing left to do, and no zombie is left to others. */
	if (!report->lingers)
		waitpid(f->process, NULL, 0);
	return report->code;
}

/* -1, or what redlock ends with. */
static int report_take(struct front *f, const struct keeper_report *report)
{
	int r = 0;

	if (report->kind == KEEPER_ENDED)
		return ended(f, report);
	if (report->kind == KEEPER_STARTED)
		f->command = report->command;
	memcpy(f->session, report->session, sizeof(f->session));
	memcpy(f->secret, report->secret, sizeof(f->secret));
	if (report->kind == KEEPER_GRANTED)
		r = granted(f);
	if (!r)
		return -1;
	complain("cannot start: %s", strerror(-r));
	return EXIT_FAILED;
}

static int front_wait(struct front *f)
{
	struct keeper_report report;
	ssize_t n;
	int r = -1;

	while (r < 0) {
		struct pollfd fds[] = {{.fd = f->keeper, .events = POLLIN}, {.fd = f->signals, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_FAILED;
		if (f->signals >= 0)
			signals_pass(f);
		n = recv(f->keeper, &report, sizeof(report), MSG_DONTWAIT);
		/* A reset comes once, before the last words, of a keeper that left a signal unread. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
			continue;
		r = n == sizeof(report) ? report_take(f, &report) : keeper_lost(f);
	}
	return r;
}

static _Noreturn void keeper_begin(const struct front *f, struct keeper_task *task, int end, pid_t group)
{
	sigset_t all;

	/* A manager that signals every process of a service means CMD, which is told by redlock as well. */
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

/* The connection belongs to the keeper from the fork on. */
static int front_run(struct front *f, struct keeper_task *task)
{
	pid_t group = getpgrp();
	int ends[2];

	sigprocmask(SIG_BLOCK, NULL, &f->mask);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		complain("cannot start: %s", strerror(errno));
		return EXIT_FAILED;
	}
	f->keeper = ends[0];
	f->process = fork();
	if (f->process == 0)
		keeper_begin(f, task, ends[1], group);
	close(ends[1]);
	if (f->process < 0) {
		complain("cannot start: %s", strerror(errno));
		return EXIT_FAILED;
	}
	redlock_close(task->c);
	task->c = NULL;
	return front_wait(f);
}

int run_main(const struct invocation *in)
{
	struct front f = {.in = in, .signals = -1, .grouped = !isatty(STDIN_FILENO), .alone = has_no_children()};
	struct keeper_task task = {.in = in, .start.argv = in->argv};
	int r;

	task.c = dial(in->addr);
	if (!task.c)
		return EXIT_FAILED;
	r = front_run(&f, &task);
	redlock_close(task.c);
	return r;
}
