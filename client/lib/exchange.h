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
/* The same with any line. */
int exchange_set(struct redlock *c, enum pending_kind kind, const char *name, struct span line) REDLOCK_MUST;
/* c->pending is in flight from now on, and sent as soon as it can be. */
int exchange_begin(struct redlock *c) REDLOCK_MUST;
/* The caller has waited long enough. 0: the connection is there, and the daemon is silent. -ECONNABORTED: the session goes on. */
int exchange_give_up(struct redlock *c) REDLOCK_MUST;
/* Gives back the grant of a LOCK whose caller is told that there is none. */
int exchange_refuse(struct redlock *c, const char *name) REDLOCK_MUST;

/* --- waiting: the one place of the library where time passes, apart from connecting and the farewell --- */

#define ONCE_MS 1000 /* how long the daemon keeps a LOCK without a wait, or an EXTEND, when the stores are busy: redlock-protocol(7) */

/*
 * Waits for the outcome of the request in flight, wait_ms longer than the timeout of the connection. Then gives the request up:
 * -ECONNABORTED if the session goes on (exchange_give_up), else the connection breaks with -ETIMEDOUT.
 */
int await_answer(struct redlock *c, int64_t wait_ms) REDLOCK_MUST;

/* What is to become of the rows of an answer. */
struct await_rows {
	void (*row)(void *arg, const struct redlock_line *line); /* NULL: they are dropped */
	void *arg;
};

/* Sends c->draft as a request that is about no lock, and waits for its outcome in the same way, busy_ms longer. rows: NULL drops them. -EBUSY, -EMSGSIZE. */
int await_draft(struct redlock *c, enum pending_kind kind, int64_t busy_ms, const struct await_rows *rows) REDLOCK_MUST;

#endif
