/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * once: CMD begins at most once in --every, on all hosts that share the stores. The result is a record (client/lib/once.h). It is read before CMD
 * begins, and written when CMD has ended, both under the lock NAME.
 */
#ifndef CLIENT_RUN_ONCE_H
#define CLIENT_RUN_ONCE_H

#include "client/cli/run/task.h"

int once_status(const struct invocation *in);
/* Whether CMD may begin; the caller holds the lock. False: *ret_exit is the exit code of redlock, and the user knows why. */
bool once_is_due(const struct keeper_task *task, int *ret_exit);
/* CMD has ended with this exit code, while the lock was valid. */
void once_record(const struct keeper_task *task, int status);

#endif
