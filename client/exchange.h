/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request in flight, from its caller to its answer. Sorts the lines that arrive into rows, the answer, pushes, and answers to
 * recovery.h. Nothing here waits. Results are those of conn.h.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include "client/conn.h"

/* c->pending is in flight from now on, and sent as soon as it can be. */
int exchange_begin(struct redlock *c) REDLOCK_MUST;
/* The caller has waited long enough. 0: the connection is there, and the daemon is silent. -ECONNABORTED: the session goes on. */
int exchange_give_up(struct redlock *c) REDLOCK_MUST;
/* A LOCK was granted, and its caller hears that it was not: the grant is given back. */
int exchange_refuse(struct redlock *c, const char *name) REDLOCK_MUST;

#endif
