/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What somebody who waits for a lock is told meanwhile, on standard error. A terminal has a line that is drawn anew each second; elsewhere
 * a line says, once, that too few stores answer for anybody to get a lock. Both ask the daemon over a connection of their own, since the
 * request that waits occupies the other one.
 */
#ifndef CLIENT_STATUS_H
#define CLIENT_STATUS_H

#include "client/redlock.h"

struct status {
	const char *addr, *name;  /* where the daemon is; the lock */
	const struct redlock *c;  /* the connection that waits */
	struct redlock *side;     /* the one that asks; NULL: none */
	int64_t began_us;
	int64_t due_us; /* when status_tick has something to do; INT64_MAX: never again */
	bool terminal, drawn;
};

/* addr, name and c are borrowed until status_end. */
void status_begin(struct status *s, const char *addr, const char *name, const struct redlock *c);
/* Does what is due. */
void status_tick(struct status *s);
/* leave: what was drawn stays, since nobody looks any more. */
void status_end(struct status *s, bool leave);

#endif
