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
		h->given_up = true;
	if (h && (h->state == HOLD_UNWANTED || h->state == HOLD_FREED))
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
	int64_t held = h->state == HOLD_KEPT ? h->count : 0, told = reply_number(line, "count", 0);

	held += c->ask.kind == ASK_LOCK;
	h->ahead |= h->unlocked && told && told < held;
	if (told)
		h->count = tidy_count(c, h, told + h->ahead, held);
	else if (h->state != HOLD_KEPT)
		h->count = 1;
	h->state = HOLD_KEPT;
	h->fence = reply_number(line, "fence", h->fence);
	h->until_us = c->sent_us + reply_number(line, "valid_ms", 0) * US_PER_MS;
}

static void hold_unlock(struct redlock *c, struct hold *h, const struct reply_line *line)
{
	int64_t told = reply_number(line, "count", 0), left = tidy_count(c, h, told, h->count - 1);

	h->ahead = h->unlocked = false;
	if (left > 0)
		h->count = left;
	else if (told > 0)
		h->state = HOLD_UNWANTED;
	else
		book_forget(&c->book, h);
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
	if (book_code_is_lost(line) || (h->state == HOLD_ASKED && line->kind != LINE_OK))
		book_forget(&c->book, h);
	else if (c->ask.kind == ASK_UNLOCK && line->kind == LINE_OK)
		hold_unlock(c, h, line);
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

	c->ask.row.told = c->ask.settled = c->untidy = false;
	c->open = c->more = 0;
	LIST_FOREACH(h, &c->book.holds, next)
	h->seen = h->row.told = false;
}

/* What its caller gave up may have been done. */
static void hold_recount(struct hold *h)
{
	h->ahead = h->unlocked && h->row.count && h->row.count < h->count;
	h->unlocked = h->ahead;
}

void book_row(struct redlock *c, const struct reply_line *line)
{
	struct span name = reply_find(line, "name");
	struct hold *h = book_find_span(&c->book, name);
	const struct row row = {
		.told = true,
		.fence = reply_number(line, "fence", 0),
		.valid_ms = reply_number(line, "valid_ms", 0),
		.count = reply_number(line, "count", 0),
		.asked_us = c->resumed_us,
	};

	if (reply_find(line, "owner").p)
		return;
	if (!h && c->in_flight && span_equal(name, span_of(c->ask.name)))
		c->ask.row = row;
	if (!h)
		return;
	h->row = row;
	if ((h->state != HOLD_KEPT && h->state != HOLD_UNWANTED) || (h->state == HOLD_KEPT && h->fence != row.fence))
		return;
	h->seen = true;
	h->fence = row.fence;
	h->until_us = row.asked_us + row.valid_ms * US_PER_MS;
	hold_recount(h);
}

static int hold_lose(struct redlock *c, struct hold *h, const char *reason)
{
	char line[REPLY_MAX], name[4 * NAME_MAX_BYTES + 3];
	size_t n = quote(span_of(h->name), name, sizeof(name) - 1);

	int r;

	name[n] = '\0';
	h->state = HOLD_LOST;
	h->told = h->ahead = h->unlocked = false;
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
	if (h->state == HOLD_KEPT && h->unlocked && h->count <= 1) {
		h->state = HOLD_FREED;
		return 0;
	}
	if (h->state != HOLD_UNWANTED && !hold_unlocked(c, h))
		return hold_lose(c, h, reason);
	c->ask.settled |= h->state != HOLD_UNWANTED;
	book_forget(&c->book, h);
	return 0;
}

int book_close(struct redlock *c, const char *reason)
{
	struct hold *h, *next;
	int r = 0;

	for (h = LIST_FIRST(&c->book.holds); h && !r; h = next) {
		next = LIST_NEXT(h, next);
		if (h->seen || (h->state != HOLD_KEPT && h->state != HOLD_UNWANTED))
			continue;
		r = hold_end(c, h, reason);
	}
	return r;
}

struct hold *book_undecided(const struct redlock *c)
{
	struct hold *h;

	LIST_FOREACH(h, &c->book.holds, next)
	if (h->state == HOLD_KEPT && !h->seen && (c->open > 0 || (c->more > 0 && (h->given_up || h->unlocked))))
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
