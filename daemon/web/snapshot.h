/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one snapshot: stores, figures, and a page of locks with their holders and waiters, as one JSON object. */
#ifndef WEB_SNAPSHOT_H
#define WEB_SNAPSHOT_H

struct audience;
struct peer;
struct snapshot;
struct web;

/*
 * What this peer may see; query: of the URL, NULL: none. Ends, in a later pass of the loop, with one call of audience_answer or audience_refuse, and is freed
 * before that. NULL: no session is free.
 */
struct snapshot *snapshot_begin(struct web *w, const struct peer *peer, const char *query, struct audience *audience);
void snapshot_free(struct snapshot *s); /* gives it up, without a call; NULL is allowed */

#endif
