/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holding a lock for a command. CMD is gone before the moment until which the lock may be believed: SIGTERM when a fifth of the
 * validity is left, SIGKILL when a tenth is left, however the news came or failed to come. Deadlines count in CLOCK_BOOTTIME, by a
 * timer that a suspend does not stop.
 */
#ifndef CLIENT_HOLDING_H
#define CLIENT_HOLDING_H

#include "client/task.h"

/* Runs CMD under the lock of task->grant, and unlocks. *ret_report: what it ended with. */
void holding_run(const struct keeper_task *task, struct keeper_report *ret_report);

#endif
