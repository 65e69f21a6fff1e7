/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pushes that have arrived and were not yet asked for, in their order; and those that the session has asked for.
 */
#ifndef CLIENT_PUSHES_H
#define CLIENT_PUSHES_H

#include "client/lib/request.h"
#include <sys/queue.h>

#define MISSED     "! MISSED" /* the library says it: events were not told */
#define PUSHES_MAX 4096 /* more losses than that, of which the caller takes none, end the connection */

struct push {
	STAILQ_ENTRY(push) next;
	struct redlock_line line;
};

struct pushes {
	STAILQ_HEAD(, push) arrived;
	size_t n;
	bool missed;               /* an EVENT was dropped: pushes_next says so first */
	struct redlock_line shown; /* what pushes_next returned last */
};

void pushes_release(struct pushes *p);
/* Keeps the line, and leaves an empty one; does not check PUSHES_MAX. -ENOMEM. */
int pushes_add(struct pushes *p, struct redlock_line *line) REDLOCK_MUST;
/* Makes room for one push: if there is none, drops the oldest EVENT, or else the oldest that is no LOST. False: all are LOST. */
bool pushes_make_room(struct pushes *p);
/* The oldest, taken out, or NULL; valid until the next call. */
const struct redlock_line *pushes_next(struct pushes *p);

/* --- what the session has asked for, by WATCH and SUBSCRIBE. These end with the connection, so each is asked for anew over the next one --- */

struct subscription {
	STAILQ_ENTRY(subscription) next;
	bool stands; /* this connection has it */
	bool events; /* WATCH: what happens while it does not stand is never told */
	char line[]; /* the request */
};

struct subscriptions {
	STAILQ_HEAD(, subscription) all;
	bool gap; /* one with events has ended since subscriptions_gap was asked */
};

void subscriptions_release(struct subscriptions *w);
/* The daemon has said OK to that line; stands: over the connection of now. It takes the place of one with the same line. -ENOMEM. */
int subscriptions_add(struct subscriptions *w, const char *line, bool events, bool stands) REDLOCK_MUST;
void subscriptions_forget(struct subscriptions *w, const char *line);

/* The connection has ended. */
void subscriptions_end(struct subscriptions *w);
/* The first that does not stand, or NULL. */
struct subscription *subscriptions_next(const struct subscriptions *w);
/* Whether events may have been missed that somebody still wants; told once. */
bool subscriptions_gap(struct subscriptions *w);
/* The first that does not stand is refused for that reason: forgets it, and drafts the push that tells so. */
void subscriptions_refused(struct subscriptions *w, struct span code, struct draft *d);

#endif
