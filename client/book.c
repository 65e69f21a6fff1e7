/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the session holds, as far as its answers told: only so can be said what RESUME did not bring back. Kept for sessions with
 * grace; locks with an owner, and those taken by redlock_request, are their asker's own business.
 */
#include "client/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hold *)a)->name, ((const struct hold *)b)->name);
}

/* A name with a NUL is none of ours. */
static struct hold *book_find_span(const struct book *b, struct span name)
{
	struct hold key, *const *found;

	if (!name.p || name.n > NAME_MAX_BYTES || memchr(name.p, '\0', name.n))
		return NULL;
	memcpy(key.name, name.p, name.n);
	key.name[name.n] = '\0';
	found = tfind(&key, &b->by_name, by_name);
	return found ? *found : NULL;
}

struct hold *book_find(const struct book *b, const char *name)
{
	return book_find_span(b, span_of(name));
}

int book_reserve(struct book *b, const char *name)
{
	struct hold *h = book_find(b, name);

	if (h && h->state == HOLD_UNWANTED)
		h->state = HOLD_ASKED;
	if (h)
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	memcpy(h->name, name, strlen(name) + 1);
	if (!tsearch(h, &b->by_name, by_name)) {
		free(h);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&b->holds, h, next);
	return 0;
}

void book_forget(struct book *b, struct hold *h)
{
	if (!h)
		return;
	tdelete(h, &b->by_name, by_name);
	LIST_REMOVE(h, next);
	free(h);
}

void book_release(struct book *b)
{
	struct hold *h;

	while ((h = LIST_FIRST(&b->holds)))
		book_forget(b, h);
}

/* --- what answers and pushes tell --- */

bool book_code_is_lost(const struct reply_line *line)
{
	return line->kind == LINE_ERR && (span_equal(line->code, SPAN("LOST")) || span_equal(line->code, SPAN("NOTHELD")));
}

static void hold_set(struct redlock *c, struct hold *h, const struct reply_line *line)
{
	h->state = HOLD_KEPT;
	h->fence = reply_number(line, "fence", h->fence);
	h->count = reply_number(line, "count", h->count ? h->count : 1);
	h->until_us = c->sent_us + reply_number(line, "valid_ms", 0) * US_PER_MS;
}

void book_hear_answer(struct redlock *c)
{
	const struct reply_line *line = &c->answer.parsed;
	struct hold *h;

	if (!c->resumes || !c->ask.name[0])
		return;
	h = book_find(&c->book, c->ask.name);
	if (!h)
		return;
	/* The daemon remembers a loss that it has told. */
	if (book_code_is_lost(line) || (h->state == HOLD_ASKED && line->kind != LINE_OK) ||
	    (c->ask.kind == ASK_UNLOCK && line->kind == LINE_OK && reply_number(line, "count", 0) <= 0))
		book_forget(&c->book, h);
	else if (c->ask.kind == ASK_UNLOCK && line->kind == LINE_OK)
		h->count = reply_number(line, "count", 1);
	else if (line->kind == LINE_OK)
		hold_set(c, h, line);
}

bool book_told(const struct redlock *c, const struct reply_line *push)
{
	struct span name = reply_find(push, "name");
	const struct hold *h = c->resumes && span_equal(push->code, SPAN("LOST")) ? book_find_span(&c->book, name) : NULL;

	return h && h->state == HOLD_LOST && h->told && !reply_find(push, "owner").p &&
	       reply_number(push, "fence", 0) == h->fence;
}

void book_hear_push(struct redlock *c, const struct reply_line *push)
{
	struct hold *h;

	if (!c->resumes || !span_equal(push->code, SPAN("LOST")) || reply_find(push, "owner").p)
		return;
	h = book_find_span(&c->book, reply_find(push, "name"));
	if (h && h->state == HOLD_KEPT && reply_number(push, "fence", h->fence) == h->fence)
		book_forget(&c->book, h);
}

/* --- what RESUME tells --- */

void book_open(struct redlock *c)
{
	struct hold *h;

	c->ask.row = c->ask.settled = false;
	c->open = 0;
	LIST_FOREACH(h, &c->book.holds, next)
	h->seen = false;
}

/* A turn that came for the LOCK in flight, or the lock that the UNLOCK in flight is about. */
static void row_asked(struct redlock *c, struct span name, const struct reply_line *row)
{
	if (!c->in_flight || !c->ask.name[0] || !span_equal(name, span_of(c->ask.name)))
		return;
	c->ask.row = true;
	c->ask.fence = reply_number(row, "fence", 0);
	c->ask.valid_ms = reply_number(row, "valid_ms", 0);
	c->ask.count = reply_number(row, "count", 0);
	c->ask.row_us = c->resumed_us;
}

void book_row(struct redlock *c, const struct reply_line *row)
{
	struct span name = reply_find(row, "name");
	int64_t fence = reply_number(row, "fence", 0);
	struct hold *h = book_find_span(&c->book, name);

	if (reply_find(row, "owner").p)
		return;
	row_asked(c, name, row);
	if (!h || h->state == HOLD_LOST || h->state == HOLD_ASKED || (h->state == HOLD_KEPT && h->fence != fence))
		return;
	h->seen = true;
	h->fence = fence;
	h->until_us = c->resumed_us + reply_number(row, "valid_ms", 0) * US_PER_MS;
}

static int hold_lose(struct redlock *c, struct hold *h, const char *reason)
{
	char line[REPLY_MAX], name[4 * NAME_MAX_BYTES + 3];
	size_t n = quote(span_of(h->name), name, sizeof(name) - 1);

	int r;

	name[n] = '\0';
	h->state = HOLD_LOST;
	h->told = false;
	n = (size_t)snprintf(line, sizeof(line), "! LOST name=%s fence=%" PRId64 " reason=%s", name, h->fence, reason);
	r = conn_push(c, line, n);
	h->told = true;
	return r;
}

/* An UNLOCK that was asked for while the lock was believed was done, or has nothing left to do. */
static bool hold_unlocked(const struct redlock *c, const struct hold *h)
{
	return c->in_flight && c->ask.kind == ASK_UNLOCK && !strcmp(c->ask.name, h->name) && c->ask.asked_us < h->until_us;
}

static int hold_end(struct redlock *c, struct hold *h, const char *reason)
{
	if (h->state != HOLD_UNWANTED && !hold_unlocked(c, h))
		return hold_lose(c, h, reason);
	book_forget(&c->book, h);
	return 0;
}

int book_close(struct redlock *c, const char *reason)
{
	struct hold *h, *next;
	int r = 0;

	for (h = LIST_FIRST(&c->book.holds); h && !r; h = next) {
		next = LIST_NEXT(h, next);
		if (h->seen || h->state == HOLD_LOST || h->state == HOLD_ASKED)
			continue;
		r = hold_end(c, h, reason);
	}
	return r;
}

struct hold *book_undecided(const struct redlock *c)
{
	struct hold *h;

	LIST_FOREACH(h, &c->book.holds, next)
	if (h->state == HOLD_KEPT && !h->seen)
		return h;
	return NULL;
}

/* What is not decided is believed for as long as it was before, and no longer. */
int book_settle(struct redlock *c, const char *name, const struct reply_line *line)
{
	struct hold *h = book_find(&c->book, name);
	bool gone = book_code_is_lost(line);

	if (line->kind == LINE_OK)
		book_row(c, line);
	if (!h || h->state != HOLD_KEPT || h->seen)
		return 0;
	h->seen = true;
	return gone || line->kind == LINE_OK ? hold_end(c, h, "evicted") : 0;
}
