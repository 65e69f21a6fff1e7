/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request in flight across a connection that broke: sent again where that does no harm, answered from what RESUME told where it
 * would. What it waits for stays what its caller asked for.
 */
#include "client/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define AGAIN_US 200000 /* a LOCK that a leaving daemon refused is sent again after this */

static int ask_answer(struct redlock *c, int64_t fence, int64_t valid_ms, int64_t count)
{
	char line[REPLY_MAX], name[4 * NAME_MAX_BYTES + 3];
	size_t n = quote(span_of(c->ask.name), name, sizeof(name) - 1);
	int r;

	name[n] = '\0';
	n = (size_t)snprintf(line, sizeof(line), "OK name=%s count=%" PRId64, name, count);
	if (fence)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " fence=%" PRId64 " valid_ms=%" PRId64, fence, valid_ms);
	r = conn_answer(c, line, n);
	book_hear_answer(c);
	return r;
}

static int ask_send(struct redlock *c)
{
	c->sent_us = redlock_now_us();
	return conn_say(c, c->ask.line, c->ask.n);
}

/* --- LOCK --- */

/* What is left of the wait; a wait that is over while the connection was away ends in TIMEOUT, not in BUSY. */
static void lock_wait_set(struct ask *ask)
{
	int64_t left = (ask->wait_until_us - redlock_now_us()) / US_PER_MS;
	char wait[32];
	size_t n;

	if (!ask->wait_until_us || ask->wait_until_us == INT64_MAX)
		return;
	n = (size_t)snprintf(wait, sizeof(wait), " wait=%" PRId64 "ms", left > 0 ? left : 1);
	/* It shrinks only, so the line never outgrows its place. */
	if (n > ask->wait_n)
		return;
	memmove(ask->line + ask->wait_at + n, ask->line + ask->wait_at + ask->wait_n, ask->n - ask->wait_at - ask->wait_n);
	memcpy(ask->line + ask->wait_at, wait, n);
	ask->n -= ask->wait_n - n;
	ask->wait_n = n;
}

/* The turn came and its OK did not: asked again it would count twice. */
static bool lock_granted(const struct redlock *c)
{
	const struct hold *h = book_find(&c->book, c->ask.name);

	if (!c->ask.row)
		return false;
	return !h || h->state != HOLD_KEPT || h->fence != c->ask.fence || c->ask.count > h->count;
}

static int lock_repeat(struct redlock *c)
{
	c->sent_us = c->ask.row_us;
	if (lock_granted(c))
		return ask_answer(c, c->ask.fence, c->ask.valid_ms, c->ask.count ? c->ask.count : 1);
	lock_wait_set(&c->ask);
	return ask_send(c);
}

bool ask_puts_off(struct redlock *c)
{
	int64_t now = redlock_now_us();

	if (!c->resumes || c->ask.kind != ASK_LOCK || now >= c->ask.wait_until_us || c->passing.parsed.kind != LINE_ERR ||
	    !span_equal(c->passing.parsed.code, SPAN("DRAINING")))
		return false;
	c->again_us = now + AGAIN_US;
	return true;
}

/* --- UNLOCK --- */

static int unlock_repeat(struct redlock *c)
{
	const struct hold *h = book_find(&c->book, c->ask.name);
	char fence[40];
	size_t n;

	if (!c->ask.row || (h && h->fence != c->ask.fence))
		return ask_answer(c, 0, 0, 0);
	if (h && c->ask.count && c->ask.count < h->count)
		return ask_answer(c, 0, 0, c->ask.count);
	n = (size_t)snprintf(fence, sizeof(fence), " fence=%" PRId64, c->ask.fence);
	if (!c->ask.fenced && c->ask.n + n < sizeof(c->ask.line)) {
		memcpy(c->ask.line + c->ask.n, fence, n);
		c->ask.n += n;
		c->ask.fenced = true;
	}
	return ask_send(c);
}

/* --- all --- */

bool ask_settle_lost(struct redlock *c, int *ret_error)
{
	static const char lost[] = "ERR LOST it was not there any more when the session was resumed";
	struct hold *h = c->resumes && c->ask.name[0] ? book_find(&c->book, c->ask.name) : NULL;

	if (!h || h->state != HOLD_LOST || c->ask.kind == ASK_LOCK)
		return false;
	*ret_error = conn_answer(c, lost, sizeof(lost) - 1);
	if (c->ask.kind == ASK_UNLOCK)
		book_forget(&c->book, h);
	return true;
}

int ask_repeat(struct redlock *c)
{
	int r = 0;

	c->again_us = 0;
	if (!c->in_flight || ask_settle_lost(c, &r))
		return r;
	switch (c->ask.kind) {
	case ASK_LOCK:
		return lock_repeat(c);
	case ASK_UNLOCK:
		return unlock_repeat(c);
	default:
		return ask_send(c);
	}
}

int ask_give_up(struct redlock *c)
{
	struct hold *h = c->ask.kind == ASK_LOCK ? book_find(&c->book, c->ask.name) : NULL;

	/* Its turn may come, or have come: then it is given back. */
	if (h && h->state == HOLD_ASKED)
		h->state = HOLD_UNWANTED;
	c->in_flight = false;
	c->answered = false;
	if (c->link == LINK_UP)
		c->again_us = 0;
	return conn_says(c, -ECONNABORTED, "redlockd is away, and did not come back in time");
}
