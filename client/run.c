/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run and try: a keeper gets the lock and holds it for the command. This process passes on signals, and exits as the command did.
 * It does nothing that matters to the lock, so that it may be stopped. Until the lock is granted, signals end this process; the
 * keeper sees that and gives up its request.
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
	int keeper, signals; /* descriptors; signals is -1 while signals still end this process */
	bool grouped, granted;
	bool alone;             /* this process began without children: all that it has descend from CMD */
	pid_t process, command; /* the pids of the keeper and of CMD; 0: CMD does not run yet */
	sigset_t mask;          /* of signals, as this process found it */
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

/* In a common process group the terminal has signalled the command, too; but SIGHUP goes to the leader of the session alone. */
static bool terminal_told_both(const struct front *f, const struct signalfd_siginfo *info)
{
	return !f->grouped && info->ssi_code == SI_KERNEL && !(info->ssi_signo == SIGHUP && getsid(0) == getpid());
}

static void signal_pass(const struct front *f, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (!terminal_told_both(f, info))
		(void)!send(f->keeper, &signal, sizeof(signal), MSG_NOSIGNAL | MSG_DONTWAIT);
	/* The shell sees the job stop. The keeper goes on, and so does the lock. */
	if (signal == SIGTSTP)
		raise(SIGSTOP);
}

static void signals_pass(const struct front *f)
{
	struct signalfd_siginfo info;

	while (read(f->signals, &info, sizeof(info)) == sizeof(info))
		signal_pass(f, &info);
}

/* The keeper is gone, and nobody else needs the grace of its session. */
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

/* True: CMD has ended, and so has all that descends from it, where this process can tell those from other children. */
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

/*
 * The kernel killed CMD together with the keeper, but not what descends from CMD. Each of those becomes a child of this process.
 */
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
	/* The keeper has nothing left to do; reap it. */
	if (!report->lingers)
		waitpid(f->process, NULL, 0);
	return report->code;
}

/* Returns -1, or the exit code. */
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
		/* If the keeper left a signal unread, recv reports one reset before its last report. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
			continue;
		r = n == sizeof(report) ? report_take(f, &report) : keeper_lost(f);
	}
	return r;
}

static _Noreturn void keeper_begin(const struct front *f, struct keeper_task *task, int end, pid_t group)
{
	sigset_t all;

	/* The keeper blocks all signals: a service manager signals each process of a service, and redlock passes that on to CMD. */
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

/* From the fork on the connection belongs to the keeper. */
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
