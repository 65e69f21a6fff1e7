/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery of a session with grace after its connection broke. Attempts to connect come first, then RESUME, or HELLO if the session is gone. Then
 * follow CHECK of locks without a row in the answer to RESUME, UNLOCK of those whose LOCK was given up, and CHECK of jobs (holds.h). Last, the
 * request in flight is sent again. holds.h defines the counts. This file moves the link. Results are those of conn.h. Nothing here waits.
 */
#ifndef CLIENT_RECOVERY_H
#define CLIENT_RECOVERY_H

#include "client/lib/conn.h"

/* Does what is due now. */
int recovery_act(struct redlock *c) REDLOCK_MUST;
/* Gives up an attempt that takes too long; the next one follows. Call it after everything that has arrived was read. */
int recovery_limit(struct redlock *c) REDLOCK_MUST;
/* The latest moment at which recovery_act must be called; INT64_MAX: none. */
int64_t recovery_due_us(const struct redlock *c);
/* Handles c->passing: an answer to a request of this file, or a row of it. */
int recovery_process(struct redlock *c) REDLOCK_MUST;

/* Sends the request in flight. */
int recovery_send(struct redlock *c) REDLOCK_MUST;
/* While the link is up: sends UNLOCK for what is unsettled. Then does all steps that follow it. */
int recovery_release(struct redlock *c) REDLOCK_MUST;

#endif
