/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one snapshot: stores, figures, and a page of locks with their holders and waiters, as one JSON object. */
#ifndef WEB_SNAPSHOT_H
#define WEB_SNAPSHOT_H

struct buf;
struct peer;
struct snapshot;
struct web;

/* Whoever has a snapshot made. It ends with one of these calls, in a later pass of the loop, and is freed before that. */
struct snapshot_taker {
	void *context;
	void (*made)(void *context, struct buf *text); /* takes the text */
	void (*failed)(void *context, int status, const char *text);
};

/* What this peer may see; query: of the URL, NULL: none. NULL: no session is free. */
struct snapshot *snapshot_begin(struct web *w, const struct peer *peer, const char *query, const struct snapshot_taker *taker);
void snapshot_free(struct snapshot *s); /* gives it up, without a call; NULL is allowed */

#endif
