/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: what was asked for, and how redlock ends. Rows of commands and options: cli.def.
 */
#ifndef CLIENT_INVOCATION_H
#define CLIENT_INVOCATION_H

#include "client/redlock.h"
#include <sysexits.h>

/* Beyond these, a wrapper ends as its command did: its code, or 128 + the signal. */
enum wrapper_exit {
	EXIT_LOST = 123,         /* the lease was lost while CMD ran */
	EXIT_NOT_ACQUIRED = 124, /* not free in time; -E changes it */
	EXIT_FAILED = 125,       /* redlock itself failed */
	EXIT_CANNOT_EXEC = 126,
	EXIT_NOT_FOUND = 127,
};

/* Queries: EXIT_SUCCESS, EXIT_NO, EX_USAGE, EX_UNAVAILABLE. */
#define EXIT_NO 1

struct cli_command {
	const char *word, *operands;
	unsigned least, most;
	bool wraps;
	const char *help;
};

enum cli_command_id {
#define CLI_COMMAND(id, ...) CLI_##id,
#include "client/cli.def"
	CLI_COMMANDS
};

extern const struct cli_command cli_commands[CLI_COMMANDS];

struct invocation {
	const struct cli_command *command;
	const char *operand; /* NAME, PREFIX or LINE; NULL if not given */
	char **argv;         /* CMD..., NULL-terminated */
	const char *addr, *note;
	int64_t wait_ms, ttl_ms, keep_ms;
	int busy_exit;
	bool json, help, version;
};

/*
 * 0, or the exit code after one line on stderr that says what was wrong. Mistakes are told with the exit code of the command, if
 * that is known by then.
 */
int invocation_parse(int argc, char **argv, struct invocation *ret_in);
/* The summary of all commands, or of one, on stdout. */
void usage_print(const struct cli_command *only);

#endif
