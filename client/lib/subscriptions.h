/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pushes that the session has asked for, by WATCH and SUBSCRIBE. These end with the connection, so each is asked for anew over the next one.
 */
#ifndef CLIENT_SUBSCRIPTIONS_H
#define CLIENT_SUBSCRIPTIONS_H

#include "client/lib/redlock.h"
#include "proto/proto.h"
#include <sys/queue.h>

#define WATCH_PUSH_BYTES (4 * NAME_MAX_BYTES + 64)

struct subscription {
	STAILQ_ENTRY(subscription) next;
	bool stands; /* this connection has it */
	bool events; /* WATCH: what happens while it does not stand is never told */
	size_t n;
	char line[]; /* the request */
};

struct subscriptions {
	STAILQ_HEAD(, subscription) all;
	bool gap; /* one with events has ended since subscriptions_gap was asked */
};

void subscriptions_init(struct subscriptions *w);
void subscriptions_release(struct subscriptions *w);
/* NULL: out of memory. To be added or freed. */
struct subscription *subscription_new(struct span line, bool events);
/* Takes it over. One with the same line stands in its place. */
void subscriptions_add(struct subscriptions *w, struct subscription *watch);
void subscriptions_forget(struct subscriptions *w, struct span line);

/* The connection has ended. */
void subscriptions_end(struct subscriptions *w);
/* The first that does not stand, or NULL. */
struct subscription *subscriptions_next(const struct subscriptions *w);
/* Whether events may have been missed that somebody still wants; told once. */
bool subscriptions_gap(struct subscriptions *w);
/* The first that does not stand is refused for that reason: forgets it, writes the push that tells so, and returns its length. */
size_t subscriptions_refused(struct subscriptions *w, struct span code, char out[WATCH_PUSH_BYTES]);

#endif
