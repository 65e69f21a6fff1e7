/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the user sees on standard error while redlock waits for the lock. On a terminal it is one line, redrawn each second. Elsewhere it is at most
 * two lines. One says that too few stores answer to grant a lock. The other says who holds it, after ten seconds, or at once if the holder is the
 * redlock that runs this command. The requests use a second connection, because the waiting request occupies the first.
 */
#ifndef CLIENT_WAIT_DISPLAY_H
#define CLIENT_WAIT_DISPLAY_H

#include "client/cli/io/invocation.h"

/* Who holds a lock, and the place of a session in its queue, from SHOW. */
#define LABEL_BYTES 200

struct queue_place {
	const char *session; /* the session that waits */
	int64_t position;    /* in the queue; 0: not there */
	char holder[LABEL_BYTES];
	int64_t held_ms; /* -1: not known */
	int64_t kept_ms; /* the lock is free, but nobody gets it for that long; -1: it is not kept */
	int64_t ran_ms;  /* … and how long ago it was held; -1: not known */
	int64_t outer_fence; /* set by the caller: the fencing token for the name of an outer redlock that runs this command; 0: there is none */
	bool itself;     /* that outer redlock holds it */
	bool unknown;    /* the daemon does not know who holds the lock */
};

/* The caller sets place->session. Returns the result of redlock_show. */
int queue_place_ask(struct redlock *c, const char *name, struct queue_place *place) REDLOCK_MUST;

/* --- the display --- */

struct wait_display {
	const struct invocation *in;
	const struct redlock *c; /* the connection that waits */
	struct redlock *side;    /* the second connection; NULL: none */
	int64_t began_us;
	int64_t outer_fence; /* see struct queue_place */
	int64_t due_us; /* when wait_display_tick has something to do; INT64_MAX: never */
	bool terminal, drawn;
	bool short_shown, long_shown; /* in a log: that too few stores answer, and what it waits for, was reported */
};

/* in and c are borrowed until wait_display_end. */
void wait_display_begin(struct wait_display *s, const struct invocation *in, const struct redlock *c);
/* Does what is due. */
void wait_display_tick(struct wait_display *s);
/* leave: redlock has ended, so the line stays. */
void wait_display_end(struct wait_display *s, bool leave);

#define QUORUM_SHORTAGE_BYTES 160
/* Writes "too few Redis servers answer: 1 of 3, 2 are needed" to out; "" if enough answer. Returns the result of redlock_list. */
int quorum_shortage_ask(struct redlock *c, char out[QUORUM_SHORTAGE_BYTES]) REDLOCK_MUST;

#endif
