/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: what was asked for, and what all commands share. Rows: cli.def.
 */
#ifndef CLIENT_CLI_H
#define CLIENT_CLI_H

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

#define ANSWER_TIMEOUT_MS 5000
#define NOTE_BYTES        256 /* the longest note that a daemon takes */

struct invocation;

struct cli_command {
	const char *word, *operands;
	unsigned least, most;
	bool wraps;
	int (*run)(const struct invocation *in); /* the exit code */
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
void usage_print(const struct cli_command *only);

/* Whether stderr takes a line at once: a terminal that was stopped does not, nor a pipe whose reader stands still. */
bool stderr_is_ready(void);
/* "redlock: …" on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A connection, or NULL after a complaint. */
struct redlock *cli_connect(const struct invocation *in);

int cli_main(int argc, char **argv);

int run_main(const struct invocation *in);
int ls_main(const struct invocation *in);
int show_main(const struct invocation *in);
int clients_main(const struct invocation *in);
int nodes_main(const struct invocation *in);
int stats_main(const struct invocation *in);
int ping_main(const struct invocation *in);
int raw_main(const struct invocation *in);

#endif
