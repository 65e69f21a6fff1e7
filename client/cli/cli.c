/* SPDX-License-Identifier: BSD-2-Clause */
/* From the command line to the command. */
#include "client/cli/cli.h"
#include "client/cli/command/commands.h"
#include "client/cli/init.h"
#include "client/cli/io/arguments.h"
#include "client/cli/io/complaint.h"
#include "client/lib/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int (*const run[CLI_COMMANDS])(const struct invocation *in) = {
#define CLI_COMMAND(id, word, operands, least, most, wraps, function, help) [CLI_##id] = function,
#include "client/cli/cli.def"
};

/*
 * The connection must not get the number of a standard descriptor that is closed: complaints would go to the daemon. What takes its place can be neither
 * read nor written, as if it were closed.
 */
static int descriptors_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", fcntl(STDIN_FILENO, F_GETFD) < 0 ? O_WRONLY : O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Other commands do without OpenSSL. */
static bool is_secure(const char *addr)
{
	char standard[512], host[ADDRESS_HOST];

	if (!addr && redlock_address(standard, sizeof(standard)))
		return false;
	return address_is_tls(addr ? addr : standard, host, sizeof(host));
}

int cli_main(int argc, char **argv)
{
	struct invocation in;
	char why[256];
	int r;

	if (descriptors_fill())
		return EXIT_FAILED;
	if (getpid() == 1)
		init_run();
	r = invocation_parse(argc, argv, &in);
	if (r)
		return r;
	if (in.version) {
		printf("redlock %s\n", REDLOCKD_VERSION);
		return output_end(EXIT_SUCCESS);
	}
	if (in.help) {
		usage_print(in.command);
		return output_end(EXIT_SUCCESS);
	}
	/* The library reads these two of the environment. They hold no secret, so a command that runs under the lock may have them. */
	if ((in.user && setenv("REDLOCK_USER", in.user, 1)) || (in.secret_file && setenv("REDLOCK_SECRET_FILE", in.secret_file, 1))) {
		complain("out of memory");
		return EXIT_FAILED;
	}
	if ((is_secure(in.addr) || (in.from && is_secure(in.from))) && redlock_use_tls(&in.tls, why, sizeof(why))) {
		complain("%s", why);
		return in.command->wraps ? EXIT_FAILED : EX_USAGE;
	}
	r = run[in.command - cli_commands](&in);
	return in.command->wraps || in.command == &cli_commands[CLI_HOLD] ? r : output_end(r);
}
