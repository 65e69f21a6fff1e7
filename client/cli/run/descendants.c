/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting, signalling and reaping the processes of one command. Never waits.
 */
#include "client/cli/run/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void command_exec(const struct descendants_start *how, pid_t parent, int input, int report)
{
	int error;

	setpgid(0, how->grouped ? 0 : how->group);
	/* The kernel kills the command when the parent ends. The parent may have ended before this call. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(EXIT_FAILURE);
	if (input >= 0 && dup2(input, STDIN_FILENO) < 0)
		_exit(EXIT_FAILURE);
	sigprocmask(SIG_SETMASK, how->mask, NULL);
	execvp(how->argv[0], how->argv);
	error = errno;
	while (write(report, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(EXIT_FAILURE);
}

/* Returns the errno of exec. A successful exec closes the pipe, and nothing was written; then 0. */
static int exec_outcome(int fd)
{
	int error;
	ssize_t n;

	do
		n = read(fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == sizeof(error) ? error : 0;
}

/* Returns a descriptor for reading the input; -1: there is no input; or another negative errno. */
static int input_open(const struct descendants_start *how)
{
	int ends[2], r = 0;

	if (!how->input)
		return -1;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (how->input_n > 0 && write(ends[1], how->input, how->input_n) != (ssize_t)how->input_n)
		r = -EIO;
	close(ends[1]);
	if (!r)
		return ends[0];
	close(ends[0]);
	return r;
}

int descendants_start(struct descendants *ret_descendants, const struct descendants_start *how)
{
	struct descendants f = {.grouped = how->grouped};
	pid_t parent = getpid();
	int report[2], input = input_open(how), r;

	if (input < -1)
		return input;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || pipe2(report, O_CLOEXEC))
		return -errno;
	f.command = fork();
	if (f.command == 0)
		command_exec(how, parent, input, report[1]);
	if (input >= 0)
		close(input);
	r = f.command < 0 ? -errno : 0;
	close(report[1]);
	if (!r)
		r = exec_outcome(report[0]);
	close(report[0]);
	if (!r)
		*ret_descendants = f;
	else if (f.command > 0)
		waitpid(f.command, NULL, 0);
	return r;
}

static int children_signal(int signal)
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	pid_t pid;

	if (!children)
		return -errno;
	while (fscanf(children, "%d", &pid) == 1) /* NOLINT(cert-err34-c): the kernel writes valid numbers */
		kill(pid, signal);
	fclose(children);
	return 0;
}

/*
 * Whether the group may be signalled without hitting a stranger. A pid is not reused before it is reaped, so the leader is safe until then.
 * Afterwards the group exists only if a child is in it; otherwise its number may belong to the group of a stranger.
 */
static bool group_exists(const struct descendants *f)
{
	siginfo_t who;

	return f->grouped && (!f->ended || !waitid(P_PGID, (id_t)f->command, &who, WEXITED | WNOHANG | WNOWAIT));
}

static void descendants_send(const struct descendants *f, int signal)
{
	if (group_exists(f))
		kill(-f->command, signal);
	else if (children_signal(signal) && !f->ended)
		kill(f->command, signal);
}

void descendants_signal(const struct descendants *f, int signal)
{
	descendants_send(f, signal);
	if (signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT)
		descendants_send(f, SIGCONT);
}

void descendants_end(const struct descendants *f)
{
	descendants_signal(f, SIGTERM);
}

void descendants_kill(const struct descendants *f)
{
	if (group_exists(f))
		kill(-f->command, SIGKILL);
	if (children_signal(SIGKILL) && f->command > 0 && !f->ended)
		kill(f->command, SIGKILL);
}

bool descendants_reap(struct descendants *f)
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

int descendants_code(const struct descendants *f)
{
	return WIFSIGNALED(f->status) ? 128 + WTERMSIG(f->status) : WEXITSTATUS(f->status);
}
