/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request in flight across a connection that broke: sent again where that does no harm, answered from what RESUME told where it
 * would. What it waits for stays what its caller asked for.
 */
#include "client/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define AGAIN_US 200000 /* what is put off is sent again after this */

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
	c->ask.sent = true;
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

static int lock_send(struct redlock *c)
{
	lock_wait_set(&c->ask);
	return ask_send(c);
}

/* The turn came and its OK did not, of this LOCK or of one that was given up before: asked again it would count twice. */
static bool lock_granted(const struct redlock *c)
{
	const struct hold *h = book_find(&c->book, c->ask.name);

	if (!h || !h->row.told)
		return false;
	return h->state != HOLD_KEPT || h->fence != h->row.fence || (h->row.count > h->count && (c->ask.sent || h->given_up));
}

static int lock_repeat(struct redlock *c)
{
	const struct hold *h = book_find(&c->book, c->ask.name);

	if (lock_granted(c)) {
		c->sent_us = h->row.asked_us;
		return ask_answer(c, h->row.fence, h->row.valid_ms, h->row.count ? h->row.count : 1);
	}
	return lock_send(c);
}

/* A LOCK is granted, and whether the stores still have it is not decided: its caller waits for that. */
static bool anchor_is_open(const struct redlock *c)
{
	return c->ask.anchors && span_equal(c->passing.parsed.code, SPAN("QUORUM"));
}

bool ask_puts_off(struct redlock *c)
{
	int64_t now = redlock_now_us();
	bool again = c->ask.kind == ASK_AGAIN || (c->ask.kind == ASK_LOCK && now < c->ask.wait_until_us);
	bool leaves = again && span_equal(c->passing.parsed.code, SPAN("DRAINING"));

	if (!c->resumes || c->passing.parsed.kind != LINE_ERR || (!leaves && !anchor_is_open(c)))
		return false;
	c->again_us = now + AGAIN_US;
	return true;
}

/* --- UNLOCK --- */

static int unlock_repeat(struct redlock *c)
{
	const struct hold *h = book_find(&c->book, c->ask.name);
	const struct row *row = h ? &h->row : &c->ask.row;
	char fence[40];
	size_t n;

	/* What was sent over no connection is to be done yet. */
	if (c->ask.settled || (c->ask.sent && (!row->told || (h && h->fence != row->fence))))
		return ask_answer(c, 0, 0, 0);
	if (h && row->told && row->count && row->count < h->count && (c->ask.sent || h->unlocked))
		return ask_answer(c, 0, 0, h->count - 1);
	if (!h && !row->told)
		return ask_send(c);
	n = (size_t)snprintf(fence, sizeof(fence), " fence=%" PRId64, h ? h->fence : row->fence);
	if (!c->ask.fenced && c->ask.n + n < sizeof(c->ask.line)) {
		memcpy(c->ask.line + c->ask.n, fence, n);
		c->ask.n += n;
		c->ask.fenced = true;
	}
	return ask_send(c);
}

/* --- all --- */

bool ask_settle_known(struct redlock *c, int *ret_error)
{
	static const char lost[] = "ERR LOST it was not there any more when the session was resumed";
	struct hold *h = c->resumes && c->ask.name[0] ? book_find(&c->book, c->ask.name) : NULL;

	if (h && c->ask.kind == ASK_UNLOCK && (h->state == HOLD_FREED || h->ahead)) {
		*ret_error = ask_answer(c, 0, 0, h->state == HOLD_FREED ? 0 : h->count - 1);
		return true;
	}
	if (!h || h->state != HOLD_LOST || c->ask.kind == ASK_LOCK)
		return false;
	*ret_error = conn_answer(c, lost, sizeof(lost) - 1);
	if (c->ask.kind == ASK_UNLOCK)
		book_forget(&c->book, h);
	return true;
}

int ask_repeat(struct redlock *c)
{
	bool off = c->again_us != 0;
	int r = 0;

	c->again_us = 0;
	if (!c->in_flight || ask_settle_known(c, &r))
		return r;
	switch (c->ask.kind) {
	case ASK_LOCK:
		return off ? lock_send(c) : lock_repeat(c);
	case ASK_UNLOCK:
		return unlock_repeat(c);
	default:
		return ask_send(c);
	}
}

int ask_give_up(struct redlock *c)
{
	tidy_given_up(c);
	c->in_flight = false;
	c->answered = false;
	if (c->link == LINK_UP)
		c->again_us = 0;
	return conn_says(c, -ECONNABORTED,
			 c->link == LINK_UP ? "redlockd could not tell in time" : "redlockd is away, and did not come back in time");
}
