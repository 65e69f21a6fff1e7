/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the command line to the command: dispatch, usage texts, complaints.
 */
#include "client/cli.h"
#include "client/address.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct cli_command cli_commands[CLI_COMMANDS] = {
#define CLI_COMMAND(id, ...) [CLI_##id] = {__VA_ARGS__},
#include "client/cli.def"
};

bool stderr_is_ready(void)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&fd, 1, 0) > 0;
}

/* Nobody who has closed the other end of stderr takes the exit code away by that. */
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

static const char *connect_hint(int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return "; is it running?";
	case EHOSTUNREACH:
		return "; does the name resolve?";
	default:
		return "";
	}
}

struct redlock *cli_connect(const struct invocation *in)
{
	struct redlock *c;
	char standard[512] = "";
	const char *addr = in->addr ? in->addr : standard;
	int r = in->addr ? 0 : redlock_address(standard, sizeof(standard));

	if (!r)
		r = redlock_open(addr, ANSWER_TIMEOUT_MS, &c);
	if (!r)
		return c;
	if (r == -EINVAL && address_flaw(addr))
		complain("cannot reach redlockd at %s: %s", *addr ? addr : "''", address_flaw(addr));
	else
		complain("cannot reach redlockd at %s: %s%s", addr, strerror(-r), connect_hint(-r));
	return NULL;
}

/* A standard descriptor that is closed would become the connection, and complaints would be sent to the daemon. */
static int descriptors_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int cli_main(int argc, char **argv)
{
	struct invocation in;
	int r;

	if (descriptors_fill())
		return EXIT_FAILED;
	r = invocation_parse(argc, argv, &in);
	if (r)
		return r;
	if (in.version) {
		printf("redlock %s\n", REDLOCKD_VERSION);
		return EXIT_SUCCESS;
	}
	if (in.help) {
		usage_print(in.command);
		return EXIT_SUCCESS;
	}
	return in.command->run(&in);
}
