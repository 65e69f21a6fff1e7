/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that were given up while the connection was away. A LOCK of them may have counted: then one UNLOCK is sent for it, when RESUME or an
 * answer shows it. An UNLOCK may have counted: then the next one is answered here (ask.c). A lock that a call was told of is never touched.
 */
#include "client/conn.h"

#include <inttypes.h>
#include <stdio.h>

void tidy_given_up(struct redlock *c)
{
	struct hold *h = book_find(&c->book, c->ask.name);

	if (!h)
		return;
	if (c->ask.kind == ASK_LOCK && h->state == HOLD_ASKED)
		h->state = HOLD_UNWANTED;
	else if (c->ask.kind == ASK_LOCK)
		h->given_up |= c->ask.sent;
	else if (c->ask.kind == ASK_UNLOCK && h->state == HOLD_KEPT)
		h->unlocked |= c->ask.sent && c->ask.asked_us < h->until_us;
}

bool tidy_doubts(struct redlock *c)
{
	struct hold *h = c->ask.kind == ASK_UNLOCK ? book_find(&c->book, c->ask.name) : NULL;

	if (!h || h->state != HOLD_KEPT || !h->unlocked)
		return false;
	h->row.told = false;
	c->open = 0;
	c->more = 1;
	return true;
}

int tidy_refuse(struct redlock *c, const char *name)
{
	struct hold *h = book_find(&c->book, name);

	if (!h || h->state != HOLD_KEPT)
		return 0;
	h->row = (struct row){.told = c->link == LINK_UP, .fence = h->fence, .count = h->count - h->ahead};
	if (h->count <= 1) {
		h->state = HOLD_UNWANTED;
	} else {
		h->given_up = true;
		h->count--;
	}
	c->untidy = true;
	return tidy_now(c);
}

int64_t tidy_count(struct redlock *c, struct hold *h, int64_t told, int64_t expected)
{
	bool surplus = h->given_up && told > expected;

	h->given_up = surplus;
	if (!surplus)
		return told;
	h->row = (struct row){.told = true, .fence = h->fence, .count = told - h->ahead};
	c->untidy = true;
	return expected;
}

/* --- giving back --- */

/* Whether h is held more often than its caller believes, or nobody can tell yet. What a LOCK in flight asks for is not given back. */
static bool hold_is_untidy(const struct redlock *c, struct hold *h)
{
	if (c->in_flight && c->ask.kind == ASK_LOCK && !strcmp(c->ask.name, h->name))
		return false;
	if (h->state == HOLD_UNWANTED)
		return true;
	if (!h->given_up || !h->row.told)
		return false;
	if (h->state == HOLD_LOST)
		return h->row.fence != h->fence;
	if (h->state == HOLD_KEPT && h->row.fence == h->fence && h->row.count > h->count - h->ahead)
		return true;
	h->given_up = false;
	return false;
}

static struct hold *untidy_first(struct redlock *c)
{
	struct hold *h;

	LIST_FOREACH(h, &c->book.holds, next)
	if (hold_is_untidy(c, h))
		return h;
	return NULL;
}

/* A grant that was never heard of has no fence: the session holds nothing else of that name. */
int tidy(struct redlock *c)
{
	char line[4 * NAME_MAX_BYTES + 64];
	struct hold *h = untidy_first(c);
	int64_t fence;
	size_t n;

	c->untidy = false;
	if (!h)
		return reconnect_up(c);
	fence = h->row.told ? h->row.fence : h->fence;
	n = (size_t)snprintf(line, sizeof(line), "UNLOCK ");
	n += quote(span_of(h->name), line + n, sizeof(line) - n - 40);
	if (fence)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " fence=%" PRId64, fence);
	memcpy(c->settled, h->name, strlen(h->name) + 1);
	c->link = LINK_TIDYING;
	c->due_us = conn_until(RECONNECT_MS);
	return conn_say(c, line, n);
}

int tidy_now(struct redlock *c)
{
	if (!c->untidy || c->link != LINK_UP)
		return 0;
	return tidy(c);
}

/* It is forgotten only now: an UNLOCK whose connection broke is sent again over the next. */
int tidy_hear(struct redlock *c, const struct reply_line *line)
{
	struct hold *h = book_find(&c->book, c->settled);
	int64_t left = line->kind == LINE_OK ? reply_number(line, "count", 0) : 0;

	if (h && left > 0 && (!h->row.told || left < h->row.count)) {
		h->row.count = left;
	} else if (h && h->state == HOLD_UNWANTED) {
		book_forget(&c->book, h);
	} else if (h) {
		h->row.told = h->given_up = false;
	}
	return tidy(c);
}
