/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Getting the lock for run and try, with a line on the terminal about who is in the way.
 */
#ifndef CLIENT_CLI_WAIT_H
#define CLIENT_CLI_WAIT_H

#include "client/cli.h"

/* True: the lock is held, and the grant is that of a CHECK. False: *ret_exit is the exit code, and why was told. */
bool lock_acquire(const struct invocation *in, struct redlock *c, struct redlock_grant *ret_grant, int *ret_exit);

#endif
