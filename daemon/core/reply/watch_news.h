/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events for the sessions that watch. A step tells so much; the rest waits in a line, and the next steps, which follow at once, tell it in order: of the first
 * event perhaps only some are left to be told. While the line is full, events are only counted: once it is empty, who watches hears how many were missed.
 */
#ifndef CORE_WATCH_NEWS_H
#define CORE_WATCH_NEWS_H

#include "daemon/core/session/request_context.h"

struct prefix {
	TAILQ_ENTRY(prefix) next; /* the first was watched first */
	struct instant since;     /* when it was watched … */
	uint64_t after;           /* … and the number of the last event before that */
	size_t n;
	char bytes[];
};

/* What a session has only while it watches or has subscribed. */
struct watching {
	TAILQ_ENTRY(watching) in_watchings; /* count > 0 */
	struct session *session;
	TAILQ_HEAD(prefixes, prefix) prefixes;
	unsigned count; /* of prefixes */
	uint64_t told;  /* the number of the last event that was compared with them, or was before all of them */
	bool subscribed;
};

void news_init(struct request_context *x);
void news_free(struct request_context *x);
/* Ends the reply. Each session that watches the name now, and has since that moment, gets the same bytes, in this or one of the next steps. */
void news_send(struct request_context *x, struct span name, struct instant since, struct reply *r);
/* How many events were not compared with its prefixes yet; and, in the process that goes on in a restart, that it has missed so many. */
uint64_t news_untold(const struct request_context *x, const struct watching *w);
void news_were_missed(struct request_context *x, struct watching *w, uint64_t events);
/* Tells what the last steps had no time for. */
void news_again(struct request_context *x);

#endif
