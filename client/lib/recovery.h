/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery of a session with grace after its connection broke: attempts to connect, then RESUME, or HELLO if the session is gone;
 * CHECK of locks of which RESUME has not told; UNLOCK of those whose LOCK was given up; CHECK of jobs (holds.h); at last the request in
 * flight, again. holds.h says with which counts. This file moves the link. Results are those of conn.h. Nothing here waits.
 */
#ifndef CLIENT_RECOVERY_H
#define CLIENT_RECOVERY_H

#include "client/lib/conn.h"

/* Does what is due at this moment. */
int recovery_act(struct redlock *c) REDLOCK_MUST;
/* Gives up an attempt that takes too long; the next one follows. Call it after all that has arrived was read. */
int recovery_limit(struct redlock *c) REDLOCK_MUST;
/* The moment at which recovery_act must be called at the latest; INT64_MAX: none. */
int64_t recovery_due_us(const struct redlock *c);
/* c->passing is an answer to what this file sent, or a row of it. */
int recovery_hear(struct redlock *c) REDLOCK_MUST;

/* Sends the request in flight. */
int recovery_send(struct redlock *c) REDLOCK_MUST;
/* Over a connection that is up: UNLOCK of what is unsettled, then all that follows. */
int recovery_release(struct redlock *c) REDLOCK_MUST;

#endif
