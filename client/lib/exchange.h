/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one request in flight, from its start to its answer. Sorts the lines that arrive: rows, the answer, pushes, and answers for recovery.h. Results
 * are those of conn.h.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include "client/lib/conn.h"

/* Makes c->draft the next request: see pending_set. -EBUSY, -EMSGSIZE, -ENOMEM: a request in flight stays as it is. */
int exchange_draft(struct redlock *c, enum pending_kind kind, const char *name) REDLOCK_MUST;
/* Puts c->pending in flight. It is sent as soon as possible. */
int exchange_begin(struct redlock *c) REDLOCK_MUST;
/* exchange_draft and exchange_begin. busy_ms: see struct pending. */
int exchange_send(struct redlock *c, enum pending_kind kind, const char *name, int64_t busy_ms) REDLOCK_MUST;
/* Gives back the grant of a LOCK whose caller got an error. */
int exchange_refuse(struct redlock *c, const char *name) REDLOCK_MUST;

/* --- waiting: only connecting and the end of a session wait elsewhere --- */

#define ONCE_MS 1000 /* how long the daemon may try to do a LOCK without a wait, or an EXTEND, when the stores are busy: redlock-protocol(7) */

/*
 * r: the result of sending the request. If it is 0, waits for the outcome, for the timeout of the connection plus busy_ms of the request. Then
 * redlock_process gives the request up, also in a loop of the caller. It returns -ECONNABORTED if the session continues; otherwise the connection
 * ends with -ETIMEDOUT.
 */
int await_answer(struct redlock *c, int r) REDLOCK_MUST;
/* Sends c->draft, a request that is about no lock, and waits for its outcome like await_answer. row: NULL drops the rows. -EBUSY, -EMSGSIZE. */
int await_draft(struct redlock *c, enum pending_kind kind, int64_t busy_ms, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;

#endif
