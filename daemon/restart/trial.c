/* SPDX-License-Identifier: BSD-2-Clause */
/* See trial.h. */
#include "daemon/restart/trial.h"

#include "daemon/base/mem.h"
#include "daemon/main/passed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void trial_init(struct trial *t)
{
	*t = (struct trial){.output_fd = -1};
}

/* The arguments of this process, after those that make it a check. A program of another version need not know passed sockets, if there are none. */
static char **arguments(const struct program *i, unsigned passed)
{
	static char check[] = "--check-config", quiet[] = "--quiet", trial[] = "--trial", option[32];
	size_t n = 0, at = 0;
	char **argv;

	while (i->argv[n])
		n++;
	argv = mem_alloc((n + 5) * sizeof(*argv));
	argv[at++] = i->argv[0];
	argv[at++] = check;
	argv[at++] = quiet;
	argv[at++] = trial;
	if (passed && snprintf(option, sizeof(option), PASSED_OPTION "%u", passed) > 0)
		argv[at++] = option;
	memcpy(argv + at, i->argv + 1, (n - 1) * sizeof(*argv));
	return argv;
}

/* The daemon blocks some signals at times, and ignores others. A child process must not inherit that. */
static int spawn(pid_t *ret_pid, const struct program *i, unsigned passed, int output)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	char **argv = arguments(i, passed);
	int error;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
	error = posix_spawn(ret_pid, i->path, &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	mem_free(argv);
	return -error;
}

int trial_begin(struct trial *t, const struct program *i, unsigned passed, struct instant now)
{
	int output, r;
	pid_t pid;

	if (!i->path[0])
		return -ENOENT;
	output = memfd_create("redlockd-check", MFD_CLOEXEC);
	if (output < 0)
		return -errno;
	r = spawn(&pid, i, passed, output);
	if (r) {
		close(output);
		return r;
	}
	*t = (struct trial){.pid = pid, .output_fd = output, .until = instant_add(now, TRIAL_US)};
	return 0;
}

static enum verdict trial_judge(int status, const char **ret_why)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EX_OK)
		return TRIAL_PASSED;
	if (WIFEXITED(status) && WEXITSTATUS(status) == TRIAL_EX_NO_QUORUM) {
		*ret_why = "too few servers would take its connections";
		return TRIAL_NO_QUORUM;
	}
	*ret_why = WIFSIGNALED(status)                ? "it was ended by a signal"
	           : WEXITSTATUS(status) == EX_CONFIG ? "the configuration has a mistake"
	                                              : "it does not start";
	return TRIAL_FAILED;
}

static void trial_over(struct trial *t)
{
	close(t->output_fd);
	trial_init(t);
}

enum verdict trial_look(struct trial *t, struct instant now, char output[TRIAL_OUTPUT_MAX], const char **ret_why)
{
	enum verdict verdict;
	int status = 0;
	ssize_t n;
	pid_t pid = waitpid(t->pid, &status, WNOHANG);

	if (pid == 0 && instant_before(now, t->until))
		return TRIAL_UNDER_WAY;
	n = pread(t->output_fd, output, TRIAL_OUTPUT_MAX - 1, 0);
	output[n > 0 ? n : 0] = '\0';
	if (pid == 0) {
		*ret_why = "its check takes too long";
		trial_end(t);
		return TRIAL_FAILED;
	}
	if (pid < 0) {
		*ret_why = strerror(errno);
		verdict = TRIAL_FAILED;
	} else {
		verdict = trial_judge(status, ret_why);
	}
	trial_over(t);
	return verdict;
}

void trial_end(struct trial *t)
{
	if (t->pid <= 0)
		return;
	kill(t->pid, SIGKILL);
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		;
	trial_over(t);
}
