/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parsed command line, and the exit codes. cli.def has the rows of commands and options.
 */
#ifndef CLIENT_INVOCATION_H
#define CLIENT_INVOCATION_H

#include "client/lib/redlock.h"
#include <sys/types.h>
#include <sysexits.h>

/* run and try exit with these codes. Otherwise they exit with the code of CMD, or with 128 + the signal that ended it. */
enum wrapper_exit {
	EXIT_LOST = 123,         /* the lease was lost while CMD ran */
	EXIT_NOT_ACQUIRED = 124, /* the lock was not free in time; -E changes this code */
	EXIT_FAILED = 125,       /* redlock itself failed */
	EXIT_CANNOT_EXEC = 126,
	EXIT_NOT_FOUND = 127,
};

/* hold uses these codes, too. All other commands exit with EXIT_SUCCESS, EXIT_NO, EX_USAGE or EX_UNAVAILABLE. */
#define EXIT_NO 1

#define NAMES_MOST 64

struct cli_command {
	const char *word, *operands;
	unsigned least, most;
	bool wraps;
	const char *help;
};

enum cli_command_id {
#define CLI_COMMAND(id, ...) CLI_##id,
#include "client/cli/cli.def"
	CLI_COMMANDS
};

extern const struct cli_command cli_commands[CLI_COMMANDS];

/* --- options --- */

enum option_id {
#define CLI_OPTION(id, ...) OPTION_##id,
#include "client/cli/cli.def"
	OPTIONS
};

#define ANY_COMMAND (~UINT64_C(0))

struct option_row {
	const char *word;
	int letter;
	const char *argument;
	uint64_t commands;
	const char *(*set)(void *to, const char *value); /* stores the value; returns NULL, or what is wrong with it */
	size_t to; /* the offset in the invocation */
	const char *help;
};

extern const struct option_row option_rows[OPTIONS];

static inline bool option_is_of(const struct option_row *option, const struct cli_command *command)
{
	return option->commands >> (command - cli_commands) & 1;
}

/* --- the invocation --- */

struct invocation {
	const struct cli_command *command;
	const char *operand; /* NAME, PREFIX or LINE; NULL if not given */
	const char *names[NAMES_MOST]; /* for run and try: operand, and further names */
	unsigned names_n;
	char **argv;         /* CMD..., NULL-terminated */
	const char *addr, *note, *trace;
	const char *user, *secret_file;
	const char *from;    /* for move */
	struct redlock_tls tls;
	const char *defer_to, *lock, *id;
	int64_t wait_ms, ttl_ms, keep_ms;
	int64_t delay_ms; /* -1: not given */
	int64_t limit, per_ms, cost; /* for rate */
	int64_t every_ms; /* for once */
	int64_t in_ms; /* for drain; REDLOCK_FOREVER: not given */
	int64_t busy_exit, priority;
	int64_t slots; /* for a semaphore; 0: NAME is a lock */
	int64_t pid;     /* for hold: the pid of the script; 0: not given */
	bool stay;       /* for drain: --wait */
	bool wait_given; /* --wait was given, with any value */
	bool release, shared, any, quiet, whole, print_acl, once, status, json, help, version;
};

static inline enum cli_command_id command_id(const struct invocation *in)
{
	return (enum cli_command_id)(in->command - cli_commands);
}

static inline bool works(const struct invocation *in)
{
	return command_id(in) == CLI_WORK;
}

/* Returns 0, or the exit code after one line on stderr about the mistake. It is the exit code of the command, if that is known already. */
int invocation_parse(int argc, char **argv, struct invocation *ret_in);
/* Prints the summary of all commands, or of one, on stdout. */
void usage_print(const struct cli_command *only);

/* The commands. Each returns the exit code of redlock. */
#define CLI_COMMAND(id, word, operands, least, most, wraps, function, help) int function(const struct invocation *in);
#define CLI_REQUEST(id, word, operands, least, most, wraps, function, help) int function(struct redlock *c, const struct invocation *in);
#include "client/cli/cli.def"

/* redlock(1): from the command line to the exit code. */
int cli_main(int argc, char **argv);

#endif
