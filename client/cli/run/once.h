/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * once: CMD begins at most once in --every, on all hosts that share the stores. The result is a record (client/lib/once.h), which is read before CMD begins,
 * and written when CMD has ended, under the lock NAME.
 */
#ifndef CLIENT_RUN_ONCE_H
#define CLIENT_RUN_ONCE_H

#include "client/cli/run/task.h"

/* once --status. */
int once_status(const struct invocation *in);
/* The lock is held. False: CMD is not to begin, *ret_exit is the exit code of redlock, and the user was told why. */
bool once_is_due(const struct keeper_task *task, int *ret_exit);
/* CMD has ended with this exit code, and the lock is relied on. */
void once_record(const struct keeper_task *task, int status);

#endif
