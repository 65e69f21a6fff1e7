/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pushes that have arrived and were not returned yet, in their order; and the subscriptions of the session.
 */
#ifndef CLIENT_PUSHES_H
#define CLIENT_PUSHES_H

#include "client/lib/request.h"
#include <sys/queue.h>

#define MISSED     "! MISSED" /* made by the library: the caller has missed events */
#define PUSHES_MAX 4096 /* if more losses than that wait for the caller, the connection ends */

struct push {
	STAILQ_ENTRY(push) next;
	struct redlock_line line;
};

struct pushes {
	STAILQ_HEAD(, push) arrived;
	size_t n;
	bool missed;               /* an EVENT was dropped: pushes_next returns MISSED first */
	struct redlock_line shown; /* the last line that pushes_next returned */
};

void pushes_release(struct pushes *p);
/* Keeps the line, and leaves an empty one. Does not check PUSHES_MAX. -ENOMEM. */
int pushes_add(struct pushes *p, struct redlock_line *line) REDLOCK_MUST;
/* Makes room for one push if there is none: drops the oldest EVENT, else the oldest push that is not LOST. False: all are LOST. */
bool pushes_make_room(struct pushes *p);
/* Removes and returns the oldest push; NULL: there is none. Valid until the next call. */
const struct redlock_line *pushes_next(struct pushes *p);

/* --- subscriptions, by WATCH and SUBSCRIBE. They end with the connection, so the library sends them again over the next one --- */

struct subscription {
	STAILQ_ENTRY(subscription) next;
	bool subscribed; /* this connection has it */
	bool events; /* it is a WATCH: events are lost while no connection has it */
	char line[]; /* the request */
};

struct subscriptions {
	STAILQ_HEAD(, subscription) all;
	bool gap; /* a WATCH has ended since subscriptions_gap was called */
};

void subscriptions_release(struct subscriptions *w);
/* The daemon has accepted that line. subscribed: over the current connection. Replaces a subscription with the same line. -ENOMEM. */
int subscriptions_add(struct subscriptions *w, const char *line, bool events, bool subscribed) REDLOCK_MUST;
void subscriptions_forget(struct subscriptions *w, const char *line);

/* Call it when the connection has ended. */
void subscriptions_end(struct subscriptions *w);
/* Returns the first that this connection does not have, or NULL. */
struct subscription *subscriptions_next(const struct subscriptions *w);
/* Whether the caller may have missed events of a WATCH that it still has. Returns true once. */
bool subscriptions_gap(struct subscriptions *w);
/* The daemon has refused subscriptions_next for that reason. Forgets it, and drafts the push that reports this. */
void subscriptions_refused(struct subscriptions *w, struct span code, struct draft *d);

#endif
