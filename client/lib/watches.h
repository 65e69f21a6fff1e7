/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pushes that the session has asked for, by WATCH and SUBSCRIBE. These end with the connection, so each is asked for anew over the next one.
 */
#ifndef CLIENT_WATCHES_H
#define CLIENT_WATCHES_H

#include "client/lib/redlock.h"
#include "proto/proto.h"
#include <sys/queue.h>

#define WATCH_PUSH_BYTES (4 * NAME_MAX_BYTES + 64)

struct watch {
	STAILQ_ENTRY(watch) next;
	bool stands; /* this connection has it */
	bool events; /* WATCH: what happens while it does not stand is never told */
	size_t n;
	char line[]; /* the request */
};

struct watches {
	STAILQ_HEAD(, watch) all;
	bool gap; /* one with events has ended since watches_gap was asked */
};

void watches_init(struct watches *w);
void watches_release(struct watches *w);
/* NULL: out of memory. To be added or freed. */
struct watch *watch_new(struct span line, bool events);
/* Takes it over. One with the same line stands in its place. */
void watches_add(struct watches *w, struct watch *watch);
void watches_forget(struct watches *w, struct span line);

/* The connection has ended. */
void watches_end(struct watches *w);
/* The first that does not stand, or NULL. */
struct watch *watches_next(const struct watches *w);
/* Whether events may have been missed that somebody still wants; told once. */
bool watches_gap(struct watches *w);
/* The first that does not stand is refused for that reason: forgets it, writes the push that tells so, and returns its length. */
size_t watches_refused(struct watches *w, struct span code, char out[WATCH_PUSH_BYTES]);

#endif
