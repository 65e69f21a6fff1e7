/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A LIST of locks, sessions or queues that is not answered yet. A walk through the table collects the keys of the page; of queues the stores are asked. These
 * are then told, each row as things stand when it is told. An entry that is there all the time is told, except a session that leaves its connection or takes
 * one over. An entry that comes or goes meanwhile may be told or not. When it goes on: lists.h.
 */
#ifndef CORE_LISTING_H
#define CORE_LISTING_H

#include "daemon/base/map.h"
#include "daemon/core/event/turns.h"
#include "daemon/core/reply/page.h"
#include "daemon/core/session/jobs.h"

#include <sys/queue.h>

struct listing;

/* What is listed. */
struct listed {
	unsigned (*seek)(struct request_context *x, struct listing *l);       /* looks a little further. Returns the work of that */
	bool (*tell)(struct request_context *x, struct listing *l, size_t i); /* tells row i. False: it is not there any more */
};
extern const struct listed listed_locks, listed_sessions;

struct listing {
	enum job_asker asker;    /* of queues: that of its question */
	const struct listed *of;
	TAILQ_ENTRY(listing) in_session;
	TAILQ_ENTRY(listing) in_pages;
	struct turn turn;        /* the first of its session: in request_context.lists, unless it ASKS */
	bool has_page;           /* likewise: in request_context.lists.pages */
	struct session *session;
	struct origin *origin;   /* among whose requests under way it counts */
	char tag[TAG_MAX + 1];
	char *prefix, *after;    /* after: a key; NULL: from the first */
	size_t prefix_n, after_n;
	enum { LISTING_SEEKS, LISTING_ASKS, LISTING_TELLS } phase;
	uint32_t slot;           /* of sessions: the next to be looked at; the walk through those with grace comes last */
	struct map_walk walk;
	struct {
		struct home_question *question; /* ASKS */
		struct span last;       /* owned; the last name that the store has told */
		int64_t from;           /* where the next piece begins */
		unsigned place;         /* which store is asked */
		unsigned missing;       /* how many could not be asked … */
		unsigned astray;        /* … and how many queues are at a store that is not their home */
	} queues;
	struct page page;        /* of keys: of a lock its name, of a session its two numbers, of a queue its row: see queue_rows.h */
	size_t at, told, bytes;  /* TELLS: rows looked at, of these told, their bytes */
};

/* Of the request being served; in no list yet. */
struct listing *listing_new(struct request_context *x, struct session *s, const struct listed *of, size_t most);
void listing_free(struct listing *l);
/* Goes on until the budget is used up. One unit is some 50 ns. False: the LIST is answered. */
bool listing_goes_on(struct request_context *x, struct listing *l, int64_t *budget);

#endif
