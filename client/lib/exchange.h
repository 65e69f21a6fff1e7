/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request in flight, from its caller to its answer. Sorts the lines that arrive into rows, the answer, pushes, and answers for
 * recovery.h. Nothing here waits. Results are those of conn.h.
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

#endif
