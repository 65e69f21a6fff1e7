/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request in flight, from its caller to its answer. Sorts the lines that arrive into rows, the answer, pushes, and answers for
 * recovery.h. Results are those of conn.h.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include "client/lib/conn.h"

/* Makes c->draft the next request: see pending_set. -EBUSY, -EMSGSIZE, -ENOMEM; then a request in flight stays as it is. */
int exchange_draft(struct redlock *c, enum pending_kind kind, const char *name) REDLOCK_MUST;
/* c->pending is in flight from now on, and sent as soon as it can be. */
int exchange_begin(struct redlock *c) REDLOCK_MUST;
/* Both. busy_ms: see struct pending. */
int exchange_send(struct redlock *c, enum pending_kind kind, const char *name, int64_t busy_ms) REDLOCK_MUST;
/* Gives back the grant of a LOCK whose caller is told that there is none. */
int exchange_refuse(struct redlock *c, const char *name) REDLOCK_MUST;

/* --- waiting: the one place of the library where time passes, apart from connecting and the farewell --- */

#define ONCE_MS 1000 /* how long the daemon keeps a LOCK without a wait, or an EXTEND, when the stores are busy: redlock-protocol(7) */

/*
 * r: what sending the request has returned. If that is 0, waits for the outcome. The time of a request is the timeout of the connection and its busy_ms. Then
 * redlock_process gives it up, here and in a loop of the caller: -ECONNABORTED if the session goes on, else the connection breaks with -ETIMEDOUT.
 */
int await_answer(struct redlock *c, int r) REDLOCK_MUST;
/* Sends c->draft as a request that is about no lock, and waits for its outcome in the same way. row: NULL drops the rows. -EBUSY, -EMSGSIZE. */
int await_draft(struct redlock *c, enum pending_kind kind, int64_t busy_ms, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;

#endif
