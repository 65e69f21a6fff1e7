/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redlock(1) as a whole.
 */
#ifndef CLIENT_CLI_H
#define CLIENT_CLI_H

/* What redlock ends with. */
int cli_main(int argc, char **argv);

#endif
