/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for answers: the one place of the library where time passes, apart from connecting and the farewell.
 */
#ifndef CLIENT_AWAIT_H
#define CLIENT_AWAIT_H

#include "client/lib/conn.h"
#include "client/lib/draft.h"

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
