/* SPDX-License-Identifier: BSD-2-Clause */
/* See process.h. */
#include "client/cli/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

int process_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0U);

	if (fd < 0)
		return -errno;
	if (!syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0U))
		return fd;
	close(fd);
	return errno == EPERM ? -EPERM : -ESRCH;
}

void process_signal(int fd, int signal)
{
	(void)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0U);
}

/* Reads a file of the process in /proc, NUL-terminated. Returns how many bytes. */
static size_t proc_read(pid_t pid, const char *what, char *out, size_t size)
{
	char path[48];
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	file = fopen(path, "re");
	if (file) {
		n = fread(out, 1, size - 1, file);
		fclose(file);
	}
	out[n] = '\0';
	return n;
}

/* Returns the parent; 0 if it is outside of this pid namespace, or -1 if it is not known. */
static pid_t process_parent(pid_t pid)
{
	char stat[256], *end;
	int parent;

	(void)proc_read(pid, "stat", stat, sizeof(stat));
	end = strrchr(stat, ')'); /* the name before it may contain anything */
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : -1; /* NOLINT(cert-err34-c): the kernel writes valid numbers */
}

void process_name(pid_t pid, char *out, size_t size)
{
	(void)proc_read(pid, "comm", out, size);
	out[strcspn(out, "\n")] = '\0';
	if (!out[0])
		snprintf(out, size, "process");
}

void process_command(pid_t pid, char *out, size_t size)
{
	size_t n = proc_read(pid, "cmdline", out, size);

	while (n > 0 && !out[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!out[i])
			out[i] = ' ';
}

/* --- how this process was started --- */

bool signal_is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

int signals_take(const int *signals, size_t n, bool ignored)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		if (ignored || !signal_is_ignored(signals[i]))
			sigaddset(&set, signals[i]);
	return sigprocmask(SIG_BLOCK, &set, NULL) ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool signal_has_shell(void)
{
	pid_t group = getpgrp(), above = getppid();

	while (above > 0 && getpgid(above) == group)
		above = process_parent(above);
	return above < 0 || (above > 0 && getsid(above) == getsid(0));
}

static bool is_among(int fd, const int kept[], size_t n)
{
	while (n > 0 && kept[n - 1] != fd)
		n--;
	return n > 0;
}

void descriptors_drop(const int kept[], size_t n)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), most = STDERR_FILENO;

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	for (size_t i = 0; i < n; i++)
		most = MAX(most, kept[i]);
	for (int fd = STDERR_FILENO + 1; fd < most; fd++)
		if (!is_among(fd, kept, n))
			close(fd);
	closefrom(most + 1);
}
