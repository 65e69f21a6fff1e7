/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for a lock, over as many connections as necessary: opens the session, asks for the lock, and shows the user the progress.
 */
#ifndef CLIENT_WAITING_H
#define CLIENT_WAITING_H

#include "client/cli/io/invocation.h"
#include "client/lib/redlock.h"

#define GRACE_MS 10000 /* without --ttl: the default lease of a daemon */

struct waiting {
	const struct invocation *in;
	struct redlock *c;
	int front;      /* a descriptor that hangs up when nobody waits for the lock any more */
	int signals;    /* a descriptor: the wait ends when it is readable; -1: none */
	bool abandoned; /* front has hung up, or a signal came */
	int exit;       /* the exit code of redlock if there was no grant */
};

/* Sends HELLO, and asks for grace. False: it has complained and set w->exit. */
bool waiting_greet(struct waiting *w) REDLOCK_MUST;
/* Asks for a longer grace when the lease is known. False: likewise. */
bool waiting_regreet(struct waiting *w, int64_t grace_ms) REDLOCK_MUST;
/*
 * Takes the lock, and waits for it as --wait says. *ret_ttl_ms: the lease, 0 if not known. *ret_name: with --any, the index of the name that was
 * taken. False: likewise.
 */
bool waiting_take(struct waiting *w, int64_t *ret_ttl_ms, unsigned *ret_name) REDLOCK_MUST;

/* Sleeps until that moment, until something arrives or is due at the connection, or until the wait is abandoned. */
void waiting_sleep(struct waiting *w, int64_t until);
/*
 * Waits for the outcome of the request that was sent. until: the end of its own wait. status: NULL shows none. -ETIMEDOUT: no answer came;
 * -ECANCELED: it is abandoned.
 */
struct wait_display;
int waiting_answer(struct waiting *w, int64_t until, struct wait_display *status) REDLOCK_MUST;

/* run --or-defer: puts the command line into the queue, as text for a shell, with the lock NAME. False: it has complained. */
bool or_defer(const struct invocation *in, struct redlock *c);

#endif
