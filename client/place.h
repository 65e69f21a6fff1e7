/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has a lock and who waits for it, as SHOW tells.
 */
#ifndef CLIENT_PLACE_H
#define CLIENT_PLACE_H

#include "client/redlock.h"

#define LABEL_BYTES 200

struct place {
	const char *session; /* whose position is looked for */
	int64_t position;    /* 0: not in line */
	char holder[LABEL_BYTES];
	int64_t held_ms; /* -1: not told */
	int64_t kept_ms; /* nobody holds it, and nobody gets it for that long; -1: it is not so */
	bool unknown;    /* the daemon cannot tell */
};

/* session is set. What redlock_request returns. */
int place_ask(struct redlock *c, const char *name, struct place *place) REDLOCK_MUST;

#endif
