/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A LIST that is not answered yet. A short table is listed in the step that reads the request. A long one is looked through in slices, one a
 * millisecond, each bounded in what it does, so that others wait for one slice at most. A walk through the table collects the keys of the page. These
 * are sorted, and then told, each row as things stand when it is told. An entry that is there all the time is told, except a session that leaves
 * its connection or takes one over. An entry that comes or goes meanwhile may be told or not.
 * The LISTs of a session are answered one after the other. Peers take turns, and so do the sessions of a peer.
 */
#ifndef CORE_LISTING_H
#define CORE_LISTING_H

#include "daemon/base/map.h"
#include "daemon/core/event/turns.h"
#include "daemon/core/reply/page.h"
#include "proto/proto.h"

#include <sys/queue.h>

struct session;

struct listing {
	TAILQ_ENTRY(listing) in_session;
	struct turn turn;        /* the first of its session: in request_context.lists */
	struct session *session;
	struct origin *origin;   /* among whose requests under way it counts */
	bool of_sessions;        /* else of locks */
	char tag[TAG_MAX + 1];
	char *prefix, *after;    /* after: a key; NULL: from the first */
	size_t prefix_n, after_n;
	enum { LISTING_SEEKS, LISTING_SORTS, LISTING_TELLS } phase;
	uint32_t slot;           /* of sessions: the next to be looked at; the walk through those with grace comes last */
	struct map_walk walk;
	struct page page;        /* of keys: of a lock its name, of a session its two numbers */
	size_t at, told, bytes;  /* TELLS: rows looked at, of these told, their bytes */
};

struct request_context;

/* Of the request being served; in no list yet. */
struct listing *listing_new(struct request_context *x, struct session *s, bool of_sessions, size_t most);
void listing_free(struct listing *l);
/* Goes on until the budget is used up. One unit is some 50 ns. False: the LIST is answered. */
bool listing_goes_on(struct request_context *x, struct listing *l, int64_t *budget);
/* Takes a LIST out of its session. The session's next one goes behind those of the others. */
void listing_leave(struct request_context *x, struct listing *l);
/* The session leaves its connection: its LISTs are dropped without a word. */
void lists_drop(struct request_context *x, struct session *s);

#endif
