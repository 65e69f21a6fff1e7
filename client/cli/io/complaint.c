/* SPDX-License-Identifier: BSD-2-Clause */
/* See complaint.h. */
#include "client/cli/io/complaint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

bool stderr_is_ready(void)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&fd, 1, 0) > 0;
}

static void complaint_write(const char *line)
{
	const struct timespec at_once = {0, 0};
	sigset_t pipe, before;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, &before);
	fprintf(stderr, "redlock: %s\n", line);
	if (sigismember(&before, SIGPIPE))
		return;
	sigtimedwait(&pipe, NULL, &at_once);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void complain(const char *format, ...)
{
	char line[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	complaint_write(line);
}

bool output_flush(void)
{
	static int error; /* of the first write that failed: stdio forgets it */

	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && !error)
		error = errno ? errno : EIO;
	errno = error;
	return !error;
}

int output_end(int code)
{
	if (output_flush())
		return code;
	complain("cannot write to standard output: %s", strerror(errno));
	return EX_UNAVAILABLE;
}
