/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a lock, over however many connections it takes: opens the session, asks for the lock, and tells who waits how it stands.
 */
#ifndef CLIENT_WAITING_H
#define CLIENT_WAITING_H

#include "client/invocation.h"
#include "client/redlock.h"

#define GRACE_MS 10000 /* where no lease is asked for: the lease of a daemon that nobody configured */

struct waiting {
	const struct invocation *in;
	struct redlock *c;
	int front;      /* hangs up when nobody waits any more */
	bool abandoned; /* it did */
	int exit;       /* what redlock ends with when there was no grant */
};

/* Says who this is, and asks for grace. False: it has complained, and w->exit is set. */
bool waiting_greet(struct waiting *w) REDLOCK_MUST;
/* A longer grace, now that the lease is known. False: as above. */
bool waiting_regreet(struct waiting *w, int64_t grace_ms) REDLOCK_MUST;
/* Takes the lock, as long as it may take. *ret_ttl_ms: the lease, 0 if not told. False: as above. */
bool waiting_take(struct waiting *w, int64_t *ret_ttl_ms) REDLOCK_MUST;

#endif
