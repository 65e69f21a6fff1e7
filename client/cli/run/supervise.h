/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds a lock for a command. CMD runs only while the lock may be believed: it gets SIGTERM when a fifth of the validity is left,
 * and SIGKILL when a tenth is left, whether the daemon told the loss or did not answer. Deadlines count in CLOCK_BOOTTIME, by a
 * timer that a suspend does not stop.
 */
#ifndef CLIENT_SUPERVISE_H
#define CLIENT_SUPERVISE_H

#include "client/cli/run/task.h"

/*
 * Runs CMD under the lock of task->grant, and unlocks. Sets the exit code and the text of *ret_report, which it sends once as
 * STARTED.
 */
void supervise_run(const struct keeper_task *task, struct keeper_report *ret_report);

#endif
