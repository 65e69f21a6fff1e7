/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that stays in the background, because it holds a lock, or because the daemon is away and cannot hear the end of the session. It lets go of what it
 * has inherited: whoever waits for the end of an output, or for a lock of a file, does not wait for this process.
 */
#ifndef CLIENT_BACKGROUND_H
#define CLIENT_BACKGROUND_H

#include "client/cli/run/task.h"

/* The standard streams become /dev/null. Closes all other descriptors but the n kept ones; -1 among these means none. */
void descriptors_drop(const int kept[], size_t n);

/* Whether QUIT cannot be sent now; or, if a name is to be kept, UNLOCK, since another request is in flight. */
bool late_quit_must(const struct keeper_task *task);
/* Closes all descriptors but that of the connection and asker, waits until the daemon is back, two leases at most, and ends the session. */
void late_quit(const struct keeper_task *task, int asker);

#endif
