/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks. A grant is believed from a moment before the request went out, never from when its answer was read.
 */
#include "client/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define ONCE_MS 1000 /* redlock-protocol(7): for so long a LOCK that does not wait is repeated while the stores are busy */

/* A request while it is put together; one byte stays for the NUL. */
struct draft {
	char line[LINE_MAX_DEFAULT];
	size_t n;
	bool full;
};

static void draft_bytes(struct draft *d, struct span text)
{
	if (d->full || d->n + text.n >= sizeof(d->line)) {
		d->full = true;
		return;
	}
	memcpy(d->line + d->n, text.p, text.n);
	d->n += text.n;
	d->line[d->n] = '\0';
}

static void draft_quoted(struct draft *d, const char *before, const char *text)
{
	char quoted[LINE_MAX_DEFAULT];
	size_t n = quote(span_of(text), quoted, sizeof(quoted));

	draft_bytes(d, span_of(before));
	draft_bytes(d, (struct span){quoted, n});
	d->full |= !n;
}

static void draft_ms(struct draft *d, const char *field, int64_t ms)
{
	char text[64];

	snprintf(text, sizeof(text), " %s=%" PRId64 "ms", field, ms);
	draft_bytes(d, span_of(text));
}

/* The parser of the other side stops at NAME_MAX_BYTES too; said here, nothing is sent. */
static int draft_begin(struct redlock *c, struct draft *d, const char *verb, const char *name)
{
	size_t n = strlen(name);

	d->n = 0;
	d->full = false;
	if (!n || n > NAME_MAX_BYTES)
		return conn_says(c, -EINVAL, "a name has 1 to %d bytes", NAME_MAX_BYTES);
	draft_quoted(d, verb, name);
	return 0;
}

/* What is in flight stays as it is. */
static int draft_take(struct redlock *c, const struct draft *d, enum ask_kind kind, const char *name)
{
	if (c->broken)
		return c->broken;
	if (c->in_flight)
		return conn_says(c, -EBUSY, "another request is in flight");
	if (d->full)
		return conn_says(c, -EMSGSIZE, "the request is too long");
	c->ask.kind = kind;
	c->ask.fenced = c->ask.anchors = false;
	memcpy(c->ask.name, name, strlen(name) + 1);
	memcpy(c->ask.line, d->line, d->n);
	c->ask.n = d->n;
	return 0;
}

static int draft_send(struct redlock *c, const struct draft *d, enum ask_kind kind, const char *name)
{
	int r = draft_take(c, d, kind, name);

	return r ? r : conn_ask(c);
}

static int lock_reserve(struct redlock *c)
{
	return c->resumes && book_reserve(&c->book, c->ask.name) ? conn_break(c, -ENOMEM, "out of memory") : 0;
}

int redlock_lock_send(struct redlock *c, const char *name, const struct redlock_options *options)
{
	static const struct redlock_options none;
	const struct redlock_options *o = options ? options : &none;
	struct draft d;
	size_t wait_at, wait_end;
	int r = draft_begin(c, &d, "LOCK ", name);

	if (r)
		return r;
	wait_at = d.n;
	if (o->wait_ms < 0)
		draft_bytes(&d, SPAN(" wait=forever"));
	else if (o->wait_ms)
		draft_ms(&d, "wait", o->wait_ms);
	wait_end = d.n;
	if (o->ttl_ms)
		draft_ms(&d, "ttl", o->ttl_ms);
	if (o->no_renew)
		draft_bytes(&d, SPAN(" renew=no"));
	if (o->note)
		draft_quoted(&d, " note=", o->note);
	r = draft_take(c, &d, ASK_LOCK, name);
	if (!r)
		r = lock_reserve(c);
	if (r)
		return r;
	c->ask.wait_at = wait_at;
	c->ask.wait_n = wait_end - wait_at;
	c->ask.wait_until_us = o->wait_ms ? conn_until(o->wait_ms) : 0;
	return conn_ask(c);
}

int redlock_grant(const struct redlock *c, struct redlock_grant *ret_grant)
{
	const struct reply_line *line = &c->answer.parsed;
	int64_t valid = reply_number(line, "valid_ms", -1), fence = reply_number(line, "fence", -1);

	if (!c->answered || line->kind != LINE_OK || fence < 0 || valid < 0 || valid > DURATION_MAX / US_PER_MS)
		return -EINVAL;
	*ret_grant = (struct redlock_grant){
		.fence = fence,
		.ttl_ms = reply_number(line, "ttl_ms", 0),
		.valid_ms = valid,
		.count = reply_number(line, "count", 0),
		.until_us = c->answer_sent_us + valid * US_PER_MS,
	};
	return 0;
}

static int grant_take(struct redlock *c, struct redlock_grant *ret_grant)
{
	int r = redlock_grant(c, ret_grant);

	if (!r)
		return 0;
	c->broken = -EPROTO;
	return conn_says(c, -EPROTO, "redlockd's answer lacks fence or valid_ms");
}

int redlock_check_send(struct redlock *c, const char *name)
{
	struct draft d;
	int r = draft_begin(c, &d, "CHECK ", name);

	return r ? r : draft_send(c, &d, ASK_AGAIN, name);
}

static int check_finish(struct redlock *c, int r, struct redlock_grant *ret_grant)
{
	if (!r)
		r = conn_await(c, 0);
	return r ? r : grant_take(c, ret_grant);
}

int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret_grant)
{
	return check_finish(c, redlock_check_send(c, name), ret_grant);
}

/* The CHECK that a grant is believed by. */
static int lock_anchor(struct redlock *c, const char *name, struct redlock_grant *ret_grant)
{
	struct draft d;
	int r = draft_begin(c, &d, "CHECK ", name);

	if (!r)
		r = draft_take(c, &d, ASK_AGAIN, name);
	if (r)
		return r;
	c->ask.anchors = true;
	r = check_finish(c, conn_ask(c), ret_grant);
	if (r == -ECONNABORTED && tidy_refuse(c, name))
		return c->broken;
	return r;
}

/* A LOCK may have waited for an hour: what is left is counted from a CHECK, one local round trip. */
int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options, struct redlock_grant *ret_grant)
{
	struct redlock_grant granted = {0}, checked = {0};
	int r = redlock_lock_send(c, name, options);

	if (!r)
		r = conn_await(c, options && options->wait_ms ? options->wait_ms : ONCE_MS);
	if (!r)
		r = grant_take(c, &granted);
	if (r)
		return r;
	r = lock_anchor(c, name, &checked);
	if (r)
		return r;
	if (!checked.ttl_ms)
		checked.ttl_ms = granted.ttl_ms;
	*ret_grant = checked;
	return 0;
}

int redlock_extend(struct redlock *c, const char *name, int64_t ttl_ms, struct redlock_grant *ret_grant)
{
	struct draft d;
	int r = draft_begin(c, &d, "EXTEND ", name);

	if (r)
		return r;
	if (ttl_ms > 0)
		draft_ms(&d, "ttl", ttl_ms);
	return check_finish(c, draft_send(c, &d, ASK_AGAIN, name), ret_grant);
}

int redlock_unlock(struct redlock *c, const char *name, int64_t keep_ms)
{
	struct draft d;
	int r = draft_begin(c, &d, "UNLOCK ", name);

	if (r)
		return r;
	if (keep_ms > 0)
		draft_ms(&d, "keep", keep_ms);
	r = draft_send(c, &d, ASK_UNLOCK, name);
	return r ? r : conn_await(c, 0);
}

int64_t redlock_left_us(const struct redlock_grant *grant)
{
	int64_t left = grant->until_us - redlock_now_us();

	return left > 0 ? left : 0;
}
