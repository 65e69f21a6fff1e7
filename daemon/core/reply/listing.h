/* SPDX-License-Identifier: BSD-2-Clause */
/* A LIST that takes several steps: what it finds, its page, and its rows. */
#ifndef CORE_LISTING_H
#define CORE_LISTING_H

#include "daemon/base/buf.h"
#include "daemon/base/map.h"
#include "daemon/core/event/core.h"
#include "daemon/core/event/origin.h"
#include "daemon/core/session/jobs.h"
#include "daemon/core/session/request_context.h"

#include <sys/queue.h>

/* What all answers with rows share. Each row is begun, filled and ended before anything else is sent. */

void row_begin(struct request_context *x, struct span tag, struct reply *r);
void row_end(struct request_context *x, struct session *s, struct reply *r);
/* OK n= more=. more < 0: without that field. The first function begins the line, the second sends it. */
void rows_done(struct request_context *x, struct session *s, struct span tag, uint64_t n, int64_t more);
/* Whether that many bytes of rows fill a quarter of what a session may have unsent. One answer must not exceed that. */
bool rows_are_long(const struct request_context *x, size_t bytes);
/* Whether they fill a sixteenth, or 256 KiB. If all rows are sent in one step, they must not take long, either. */
bool rows_take_long(const struct request_context *x, size_t bytes);

/*
 * Fields for SHOW and LIST about a session. Without a connection also since when it is detached, and how long it still may be. Then about a holder elsewhere,
 * as the stores showed it last.
 */
void reply_session(const struct request_context *x, struct reply *r, const struct session *s);
/* Adds alarm= if an alarm was raised about this claim or permit. */
void reply_alarm(const struct request_context *x, struct reply *r, const void *about, enum alarm_kind kind);
void reply_elsewhere(struct reply *r, const struct elsewhere *elsewhere);
/* Adds how long the holder there has had it, if that is known. Also for BUSY. */
void reply_elsewhere_held(const struct request_context *x, struct reply *r, const struct elsewhere *elsewhere);
/* Adds owner=, if there is one. */
static inline void reply_owner(struct reply *r, struct span owner)
{
	if (owner.n > 0)
		reply_text(r, "owner", owner);
}

/* Adds mode=shared to a hold or a wait, and nothing if it is exclusive. */
static inline void reply_mode(struct reply *r, const struct claim *c)
{
	if (c->shared)
		reply_text(r, "mode", SPAN("shared"));
}

/*
 * One page of a list: the smallest of the names that were added, sorted, as many as there is room for. The page has its own copies, so the table of the names
 * may change meanwhile.
 */

struct page_row {
	uint32_t at, n; /* where the name is in `text` */
};

/* An empty page is zero-filled but for `most` and `bytes_most`. */
struct page {
	struct page_row *row;
	size_t n, cap, most;
	size_t bytes, bytes_most; /* of the names of all rows. One row always has room; bytes_most 0: no bound */
	struct buf text;          /* the names of the rows. It also has names of removed rows until it is written anew */
	uint64_t more;            /* how many names were added that are not in the page */
};

void page_release(struct page *page); /* empties it, and keeps the memory */
/* Returns the approximate cost, in units of 50 ns. */
unsigned page_add(struct page *page, struct span name);

static inline struct span page_name(const struct page *page, size_t i)
{
	return (struct span){buf_begin(&page->text) + page->row[i].at, page->row[i].n};
}

/*
 * A LIST of locks, sessions or queues that is not answered yet. A walk through the table collects the keys of the page; for queues the daemon asks the stores.
 * Then the rows are sent, each with the state of that moment. An entry that exists all the time is sent, unless it is a session that leaves its connection or
 * takes one over. An entry that comes or goes meanwhile may be sent or not. lists.c decides when a listing continues.
 */

struct listing;

/* What is listed. */
struct listed {
	unsigned (*seek)(struct request_context *x, struct listing *l);       /* looks a little further; returns the cost */
	bool (*send_row)(struct request_context *x, struct listing *l, size_t i); /* sends row i. False: the entry is gone */
};
extern const struct listed listed_locks, listed_sessions;

struct listing {
	enum job_asker asker;    /* of queues: the asker of its question */
	const struct listed *of;
	TAILQ_ENTRY(listing) in_session;
	TAILQ_ENTRY(listing) in_pages;
	struct turn turn;        /* if it is the first of its session: in request_context.lists, unless it ASKS */
	bool has_page;           /* if it has one: in request_context.lists.pages */
	struct session *session;
	struct origin *origin;   /* the peer for whose requests under way it counts */
	char tag[TAG_MAX + 1];
	char *prefix, *after;    /* after: a key; NULL: begins with the first */
	size_t prefix_n, after_n;
	enum { LISTING_SEEKS, LISTING_ASKS, LISTING_SENDS } phase;
	uint32_t slot;           /* of sessions: the next slot to look at. The walk through those with grace comes last */
	struct map_walk walk;
	struct {
		struct home_question *question; /* ASKS */
		struct span last;       /* owned; the last name that the store has sent */
		int64_t from;           /* where the next piece begins */
		unsigned place;         /* the store that is asked */
		unsigned missing;       /* how many could not be asked … */
		unsigned astray;        /* … and how many queues are at a store that is not their home */
	} queues;
	struct page page;        /* of keys. A lock: its name; a session: its two numbers; a queue: its row, see job.h */
	size_t at, sent, bytes;  /* SENDS: rows looked at, rows sent, and their bytes */
};

/* Creates a listing for the request that is being served. It is in no list yet. */
struct listing *listing_new(struct request_context *x, struct session *s, const struct listed *of, size_t most);
void listing_free(struct listing *l);
/* Continues until the budget is used up. One unit is about 50 ns. False: the LIST is answered. */
bool listing_goes_on(struct request_context *x, struct listing *l, int64_t *budget);

/*
 * The LISTs that take more than one step. A page may be as large as an answer, so only a few LISTs have one at a time. Peers take turns for pages, and none has
 * more than half of them.
 *
 * A long table is walked, and its rows are sent, in slices of bounded work, one a millisecond. So others wait for one slice at most. For slices peers take
 * turns as well, and so do the sessions of a peer. The LISTs of a session are answered one after the other.
 */

void lists_init(struct request_context *x);
/* Adds a new LIST of a table with that many entries. A short one is answered at once. */
void lists_add(struct request_context *x, struct listing *l, size_t entries);
/* TIMER_LISTS: runs the next slice. */
void lists_go_on(struct request_context *x);
/* A listing that ASKS has everything from the stores: its rows are sent. */
void lists_found(struct request_context *x, struct listing *l);
/* It was answered, but not with rows. */
void lists_over(struct request_context *x, struct listing *l);
/* The session leaves its connection: drops its LISTs without an answer. */
void lists_drop(struct request_context *x, struct session *s);
/* The daemon stops: refuses all LISTs under way. True: there were some. */
bool lists_stop(struct request_context *x);

#endif
