/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the user reads on standard error while the lock is waited for. On a terminal one line is redrawn each second. Elsewhere one line says, once, that too
 * few stores answer for anybody to get a lock, and after ten seconds another one who holds it, or at once if the redlock that runs this command does.
 * All ask the daemon over a second connection, since the request that waits occupies the first.
 */
#ifndef CLIENT_WAIT_DISPLAY_H
#define CLIENT_WAIT_DISPLAY_H

#include "client/cli/io/invocation.h"

/* Who holds a lock, and the place of a session in the queue for it, as SHOW tells. */
#define LABEL_BYTES 200

struct queue_place {
	const char *session; /* the session whose place is looked for */
	int64_t position;    /* in the queue; 0: not there */
	char holder[LABEL_BYTES];
	int64_t held_ms; /* -1: not told */
	int64_t kept_ms; /* the lock is free, and nobody gets it for that long; -1: it is not kept */
	int64_t ran_ms;  /* … since it was held that long ago; -1: not told */
	int64_t outer_fence; /* set by the caller: the fencing token that a redlock which runs this command has for the name; 0: none does */
	bool itself;     /* that redlock holds it */
	bool unknown;    /* the daemon cannot tell who holds the lock */
};

/* place->session is set by the caller. Returns what redlock_request returns. */
int queue_place_ask(struct redlock *c, const char *name, struct queue_place *place) REDLOCK_MUST;

/* --- the report --- */

struct wait_display {
	const struct invocation *in;
	const struct redlock *c; /* the connection that waits */
	struct redlock *side;    /* the one that asks; NULL: none */
	int64_t began_us;
	int64_t outer_fence; /* see struct queue_place */
	int64_t due_us; /* when wait_display_tick has something to do; INT64_MAX: never again */
	bool terminal, drawn;
	bool short_said, long_said; /* in a log: that too few stores answer, and what it waits for */
};

/* in and c are borrowed until wait_display_end. */
void wait_display_begin(struct wait_display *s, const struct invocation *in, const struct redlock *c);
/* Does what is due. */
void wait_display_tick(struct wait_display *s);
/* leave: redlock is gone, and what was drawn stays. */
void wait_display_end(struct wait_display *s, bool leave);

#define QUORUM_SHORTAGE_BYTES 160
/* Writes "too few Redis servers answer: 1 of 3, 2 are needed" into out, "" if enough do. Returns what redlock_request returns. */
int quorum_shortage_ask(struct redlock *c, char out[QUORUM_SHORTAGE_BYTES]) REDLOCK_MUST;

#endif
