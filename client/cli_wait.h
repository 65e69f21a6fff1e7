/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a lock, with a line on the terminal about it.
 */
#ifndef CLIENT_CLI_WAIT_H
#define CLIENT_CLI_WAIT_H

#include "client/cli.h"

#define TURN_GRACE_MS 10000 /* where no lease is asked for: that of a daemon that nobody configured */

struct turn {
	const struct invocation *in;
	struct redlock *c;
	int front;      /* hangs up when nobody waits any more */
	bool abandoned; /* it did */
	int exit;       /* what redlock ends with when there was no grant */
};

/* Says who this is, and asks for grace. False: it has complained, and *t tells the exit code. */
bool turn_greet(struct turn *t);
/* A longer grace, now that the lease is known. False: as above. */
bool turn_regreet(struct turn *t, int64_t grace_ms);
/* Takes the lock, as long as it may take. *ret_ttl_ms: the lease, 0 if not told. False: as above. */
bool turn_await(struct turn *t, int64_t *ret_ttl_ms);

#endif
