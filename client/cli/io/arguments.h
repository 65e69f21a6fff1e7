/* SPDX-License-Identifier: BSD-2-Clause */
/* From the words of the command line to an invocation. */
#ifndef CLIENT_ARGUMENTS_H
#define CLIENT_ARGUMENTS_H

#include "client/cli/io/invocation.h"

/*
 * 0; or the exit code, after one line on stderr that says what is wrong. The exit code of a mistake is that of the command, if
 * the command is known by then.
 */
int invocation_parse(int argc, char **argv, struct invocation *ret_in);
/* The summary of all commands, or of one, on stdout. */
void usage_print(const struct cli_command *only);

#endif
