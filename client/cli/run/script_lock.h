/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds a lock for a shell script: until the script's process ends or an input ends, until somebody asks to let go, or until the lock is lost. Then the
 * process is ended before the validity is over, as run ends its command.
 */
#ifndef CLIENT_SCRIPT_LOCK_H
#define CLIENT_SCRIPT_LOCK_H

#include "client/cli/run/task.h"

struct script_lock_for {
	int process;   /* a descriptor of process.h, or -1: hold until the end of the input */
	int input;     /* where process is -1 */
	int signals;   /* of script_lock_signals */
	int listening; /* of release_socket.h, or -1 */
};

/* Blocks the signals that ask redlock to end, and returns a descriptor that is readable when one has come, or a negative number: errno says why not. */
int script_lock_signals(void);
/* task holds the lock of task->grant. Unlocks it at the end. Returns the exit code of redlock. */
int script_lock_run(struct keeper_task *task, const struct script_lock_for *whom);

#endif
