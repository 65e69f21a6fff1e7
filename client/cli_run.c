/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run and try: get the lock, let a keeper hold it for the command, pass on signals, end as the command did. Only signals and the
 * exit code are handled here; nothing that a stop of this process could delay matters to the lock.
 */
#include "client/cli.h"
#include "client/cli_wait.h"
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
#include <unistd.h>

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

struct front {
	int keeper, signals; /* descriptors */
	bool grouped;
	pid_t process, command; /* of the keeper; 0: CMD does not run yet */
	sigset_t mask;          /* as it was at the beginning */
};

static int signals_take(struct front *f)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	if (sigprocmask(SIG_BLOCK, &set, &f->mask))
		return -errno;
	f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return f->signals < 0 ? -errno : 0;
}

/* In a common process group the terminal has told the command already. */
static void signal_pass(const struct front *f, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (f->grouped || info->ssi_code != SI_KERNEL)
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

/* With the keeper its connection ended, and with that the lock. The kernel has killed the command, not its descendants. */
static int keeper_lost(const struct front *f)
{
	if (f->command > 0 && f->grouped)
		kill(-f->command, SIGKILL);
	waitpid(f->process, NULL, 0);
	complain("the process that held the lock was killed; so was the command");
	return EXIT_LOST;
}

static int front_wait(struct front *f)
{
	struct pollfd fds[] = {{.fd = f->keeper, .events = POLLIN}, {.fd = f->signals, .events = POLLIN}};
	struct keeper_report report;
	ssize_t n;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return EXIT_FAILED;
		signals_pass(f);
		n = recv(f->keeper, &report, sizeof(report), MSG_DONTWAIT);
		/* A reset comes once, before the last words, of a keeper that left a signal unread. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
			continue;
		if (n != sizeof(report))
			return keeper_lost(f);
		if (report.kind == KEEPER_STARTED) {
			f->command = report.command;
			continue;
		}
		if (report.text[0])
			complain("%s", report.text);
		waitpid(f->process, NULL, 0); /* it has nothing left to do, and no zombie is left to others */
		return report.code;
	}
}

static _Noreturn void keeper_begin(const struct front *f, struct keeper_task *task, int end, pid_t group)
{
	close(f->keeper);
	close(f->signals);
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
	int ends[2], r = signals_take(f);

	if (r || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		complain("cannot start: %s", strerror(r ? -r : errno));
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
	struct front f = {.grouped = !isatty(STDIN_FILENO)};
	struct keeper_task task = {.name = in->operand, .keep_ms = in->keep_ms, .start.argv = in->argv};
	int r;

	task.c = cli_connect(in);
	if (!task.c)
		return EXIT_FAILED;
	if (lock_acquire(in, task.c, &task.grant, &r))
		r = front_run(&f, &task);
	redlock_close(task.c);
	return r;
}
