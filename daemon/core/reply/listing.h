/* SPDX-License-Identifier: BSD-2-Clause */
/* A LIST that takes several steps: what it finds, and its rows. */
#ifndef CORE_LISTING_H
#define CORE_LISTING_H

#include "daemon/base/map.h"
#include "daemon/core/event/core.h"
#include "daemon/core/event/origin.h"
#include "daemon/core/reply/page.h"
#include "daemon/core/session/jobs.h"
#include "daemon/core/session/request_context.h"

#include <sys/queue.h>

/* What all answers with rows share. A row is begun, filled and ended before anything else is sent. */

void row_begin(struct request_context *x, struct span tag, struct reply *r);
void row_end(struct request_context *x, struct session *s, struct reply *r);
/* OK n= more=; more < 0: left out. The first begins that line, the second sends it. */
void rows_done(struct request_context *x, struct session *s, struct span tag, uint64_t n, int64_t more);
/* Whether so many bytes of rows fill a quarter of what a session may have unsent: one answer must not overflow that. */
bool rows_are_long(const struct request_context *x, size_t bytes);
/* Whether they fill a sixteenth, or 256 KiB: where all rows are sent in one step, they must not take long, either. */
bool rows_take_long(const struct request_context *x, size_t bytes);

/* Fields for SHOW and LIST: of a session; without a connection also since when, and for how much longer; of a holder elsewhere, as the stores said last. */
void reply_session(const struct request_context *x, struct reply *r, const struct session *s);
/* alarm=, if one was told of this claim or permit. */
void reply_alarm(const struct request_context *x, struct reply *r, const void *about, enum alarm_kind kind);
void reply_elsewhere(struct reply *r, const struct elsewhere *elsewhere);
/* For how long the daemon there holds it, if that is known: also for BUSY. */
void reply_elsewhere_held(const struct request_context *x, struct reply *r, const struct elsewhere *elsewhere);
/* mode=shared, of a hold or a wait; nothing for an exclusive one. */
static inline void reply_mode(struct reply *r, const struct claim *c)
{
	if (c->shared)
		reply_text(r, "mode", SPAN("shared"));
}

/*
 * A LIST of locks, sessions or queues that is not answered yet. A walk through the table collects the keys of the page; of queues the stores are asked. These
 * are then told, each row as things stand when it is told. An entry that is there all the time is told, except a session that leaves its connection or takes
 * one over. An entry that comes or goes meanwhile may be told or not. When it goes on: lists.h.
 */

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
	struct page page;        /* of keys: of a lock its name, of a session its two numbers, of a queue its row: see job.h */
	size_t at, told, bytes;  /* TELLS: rows looked at, of these told, their bytes */
};

/* Of the request being served; in no list yet. */
struct listing *listing_new(struct request_context *x, struct session *s, const struct listed *of, size_t most);
void listing_free(struct listing *l);
/* Goes on until the budget is used up. One unit is some 50 ns. False: the LIST is answered. */
bool listing_goes_on(struct request_context *x, struct listing *l, int64_t *budget);

#endif
