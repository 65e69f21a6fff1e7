/* SPDX-License-Identifier: BSD-2-Clause */
/* See listing.h. */
#include "daemon/core/reply/listing.h"

#include "daemon/core/reply/send.h"

#define NAMES_AT_ONCE 64   /* entries of a table that is listed in one step, in about 50 us: in one pass of the loop any number of sessions may ask for that */
#define NAMES_A_SLICE 1024 /* of a larger one, a step looks at about so many entries, or sends a quarter as many rows */
#define PAUSE_US      MSEC /* between two slices: most of the time is for others */
#define PAGES_MOST    8    /* at once, for all peers … */
#define PAGES_OF_PEER 4    /* … and for one peer */
#define SLICE_WORK(names) ((int64_t)(names) * 8)

/* core_conf.listed, or the usual number. */
static unsigned names_or(const struct request_context *x, unsigned usual)
{
	return x->core->conf.listed ? x->core->conf.listed : usual;
}

void lists_init(struct request_context *x)
{
	turns_init(&x->lists.waiting);
	turns_init(&x->lists.running);
	TAILQ_INIT(&x->lists.pages);
	x->lists.timer.kind = TIMER_LISTS;
	x->lists.next_at = INSTANT_PAST;
}

static struct listing *listing_of(struct turn *turn)
{
	return turn ? container_of(turn, struct listing, turn) : NULL;
}

static unsigned pages_of(const struct request_context *x, const struct origin *o, bool all)
{
	const struct listing *l;
	unsigned n = 0;

	TAILQ_FOREACH(l, &x->lists.pages, in_pages)
		n += all || l->origin == o;
	return n;
}

/* Returns the waiting listing that may have a page now. */
static struct listing *lists_next(const struct request_context *x)
{
	const struct peer_line *line;

	if (turns_none(&x->lists.waiting) || pages_of(x, NULL, true) >= PAGES_MOST)
		return NULL;
	TAILQ_FOREACH(line, &x->lists.waiting.lines, in_turns)
		if (pages_of(x, line->origin, false) < PAGES_OF_PEER)
			return listing_of(TAILQ_FIRST(&line->waiting));
	return NULL;
}

/* Call after each change. */
static void lists_look(struct request_context *x)
{
	if (turns_none(&x->lists.running) && !lists_next(x))
		heap_cancel(&x->core->timers, &x->lists.timer);
	else if (!timer_is_set(&x->lists.timer))
		heap_set(&x->core->timers, &x->lists.timer, instant_max(x->core->now, x->lists.next_at));
}

static void listing_runs(struct request_context *x, struct listing *l)
{
	turn_wait(&x->lists.running, &l->turn, l->origin);
}

/* A list of queues asks its first store at once. */
static void lists_begin(struct request_context *x)
{
	struct listing *l;

	while ((l = lists_next(x))) {
		turn_taken(&l->turn);
		turn_leave(&l->turn);
		l->has_page = true;
		TAILQ_INSERT_TAIL(&x->lists.pages, l, in_pages);
		(void)l->of->seek(x, l);
		if (l->phase != LISTING_ASKS)
			listing_runs(x, l);
	}
}

/* Removes it from its session. The session's next one queues after those of other sessions. */
static void listing_leaves(struct request_context *x, struct listing *l)
{
	struct session *s = l->session;
	struct listing *next = TAILQ_NEXT(l, in_session);
	bool first = l == TAILQ_FIRST(&s->listings);

	if (first && l->phase != LISTING_ASKS)
		turn_leave(&l->turn);
	if (l->has_page)
		TAILQ_REMOVE(&x->lists.pages, l, in_pages);
	if (first && next)
		turn_wait(&x->lists.waiting, &next->turn, next->origin);
	TAILQ_REMOVE(&s->listings, l, in_session);
	lists_look(x);
}

void lists_over(struct request_context *x, struct listing *l)
{
	listing_leaves(x, l);
	session_answered(x->sessions, l->session, l->tag[0] != '\0');
	listing_free(l);
}

static void listing_waits(struct request_context *x, struct listing *l)
{
	struct session *s = l->session;
	bool first = TAILQ_EMPTY(&s->listings);

	TAILQ_INSERT_TAIL(&s->listings, l, in_session);
	s->busy |= l->tag[0] == '\0';
	if (first)
		turn_wait(&x->lists.waiting, &l->turn, l->origin);
	lists_begin(x);
	lists_look(x);
}

void lists_add(struct request_context *x, struct listing *l, size_t entries)
{
	int64_t budget = SLICE_WORK(NAMES_A_SLICE); /* more than so few entries need, unless each costs many rules */

	if (entries > names_or(x, NAMES_AT_ONCE) || listing_goes_on(x, l, &budget))
		listing_waits(x, l);
	else
		listing_free(l);
}

void lists_go_on(struct request_context *x)
{
	int64_t budget = SLICE_WORK(names_or(x, NAMES_A_SLICE));
	struct listing *l;

	x->lists.next_at = instant_add(x->core->now, PAUSE_US);
	lists_begin(x);
	while (budget > 0 && (l = listing_of(turns_first(&x->lists.running)))) {
		turn_taken(&l->turn);
		if (!listing_goes_on(x, l, &budget)) {
			lists_over(x, l);
			lists_begin(x);
		} else { /* after those of others, which may be short */
			turn_leave(&l->turn);
			listing_runs(x, l);
		}
	}
	lists_look(x);
}

/* A short one is sent at once. */
void lists_found(struct request_context *x, struct listing *l)
{
	int64_t budget = SLICE_WORK(NAMES_AT_ONCE);

	l->phase = LISTING_SENDS;
	listing_runs(x, l);
	if (!listing_goes_on(x, l, &budget))
		lists_over(x, l);
	lists_look(x);
}

void lists_drop(struct request_context *x, struct session *s)
{
	struct listing *l;

	while ((l = TAILQ_LAST(&s->listings, listings))) {
		listing_leaves(x, l);
		listing_free(l);
	}
}

bool lists_stop(struct request_context *x)
{
	bool some = false;
	struct listing *l;

	while ((l = TAILQ_FIRST(&x->lists.pages)) || (l = listing_of(turns_first(&x->lists.waiting)))) {
		core_answers(x->core, VERB_LIST);
		send_error(x, l->session, span_of(l->tag), ERROR_DRAINING, "the daemon is stopping");
		lists_over(x, l);
		some = true;
	}
	return some;
}
