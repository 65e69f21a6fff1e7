/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting, signalling and reaping the processes of one command. Never waits.
 */
#include "client/family.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void command_exec(const struct family_start *how, pid_t parent, int report)
{
	int error;

	setpgid(0, how->grouped ? 0 : how->group);
	/* The kernel kills the command when the parent ends; the parent may have ended before this call. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(EXIT_FAILURE);
	sigprocmask(SIG_SETMASK, how->mask, NULL);
	execvp(how->argv[0], how->argv);
	error = errno;
	while (write(report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(EXIT_FAILURE);
}

/* A successful exec closes the pipe, and nothing was written. */
static int exec_outcome(int fd)
{
	int error;
	ssize_t n;

	do
		n = read(fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == sizeof(error) ? error : 0;
}

int family_start(struct family *ret_family, const struct family_start *how)
{
	struct family f = {.grouped = how->grouped};
	pid_t parent = getpid();
	int report[2], r;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || pipe2(report, O_CLOEXEC))
		return -errno;
	f.command = fork();
	if (f.command == 0)
		command_exec(how, parent, report[1]);
	r = f.command < 0 ? -errno : 0;
	close(report[1]);
	if (!r)
		r = exec_outcome(report[0]);
	close(report[0]);
	if (!r)
		*ret_family = f;
	else if (f.command > 0)
		waitpid(f.command, NULL, 0);
	return r;
}

static int children_signal(int signal)
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	int pid;

	if (!children)
		return -errno;
	while (fscanf(children, "%d", &pid) == 1) /* NOLINT(cert-err34-c): the kernel writes valid numbers */
		kill(pid, signal);
	fclose(children);
	return 0;
}

/* A pid is not used again until it is reaped, so no signal hits a stranger. A group outlives its leader while it has members. */
void family_signal(const struct family *f, int signal)
{
	if (f->grouped)
		kill(-f->command, signal);
	else if (children_signal(signal) && !f->ended)
		kill(f->command, signal);
}

void family_kill(const struct family *f)
{
	if (f->grouped)
		kill(-f->command, SIGKILL);
	if (children_signal(SIGKILL) && !f->ended)
		kill(f->command, SIGKILL);
}

bool family_reap(struct family *f)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != f->command)
			continue;
		f->ended = true;
		f->status = status;
	}
	return pid < 0 && errno == ECHILD;
}
