/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands and options by the rows of cli.def, and what each option makes of its value. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

#include "client/cli/io/invocation.h"

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
	const char *(*set)(void *to, const char *value); /* NULL, or what is wrong with the value */
	size_t to; /* where in the invocation */
	const char *help;
};

extern const struct option_row option_rows[OPTIONS];

static inline bool option_is_of(const struct option_row *option, const struct cli_command *command)
{
	return option->commands >> (command - cli_commands) & 1;
}

#endif
