/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a session whose daemon is away at that moment: its process stays in the background until it can send QUIT. If a name is to be kept and another
 * request is in flight, it stays until it can send UNLOCK.
 */
#ifndef CLIENT_LATE_QUIT_H
#define CLIENT_LATE_QUIT_H

#include "client/cli/run/task.h"

bool late_quit_must(const struct keeper_task *task);
/* Closes all descriptors but that of the connection and asker, waits until the daemon is back, two leases at most, and ends the session. */
void late_quit(const struct keeper_task *task, int asker);

#endif
