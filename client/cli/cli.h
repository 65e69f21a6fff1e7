/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redlock(1): from the command line to the exit code.
 */
#ifndef CLIENT_CLI_H
#define CLIENT_CLI_H

/* Returns the exit code. */
int cli_main(int argc, char **argv);

#endif
