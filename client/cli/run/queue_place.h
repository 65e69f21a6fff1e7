/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who holds a lock, and the place of a session in the queue for it, as SHOW tells.
 */
#ifndef CLIENT_QUEUE_PLACE_H
#define CLIENT_QUEUE_PLACE_H

#include "client/lib/redlock.h"

#define LABEL_BYTES 200

struct queue_place {
	const char *session; /* the session whose place is looked for */
	int64_t position;    /* in the queue; 0: not there */
	char holder[LABEL_BYTES];
	int64_t held_ms; /* -1: not told */
	int64_t kept_ms; /* the lock is free, and nobody gets it for that long; -1: it is not kept */
	int64_t ran_ms;  /* … since it was held that long ago; -1: not told */
	bool unknown;    /* the daemon cannot tell who holds the lock */
};

/* place->session is set by the caller. Returns what redlock_request returns. */
int queue_place_ask(struct redlock *c, const char *name, struct queue_place *place) REDLOCK_MUST;

#endif
