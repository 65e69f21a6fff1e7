/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public functions about locks (redlock.h). The validity of a grant counts from before its request was sent, never from when
 * its answer was read.
 */
#include "client/lib/lock.h"
#include "client/lib/await.h"
#include "client/lib/boottime.h"
#include "client/lib/draft.h"
#include "client/lib/exchange.h"

#include <errno.h>

/* The daemon refuses longer names, too; this check refuses them before anything is sent. */
static int request_begin(struct redlock *c, const char *verb, const char *name)
{
	size_t n = strlen(name);

	if (!n || n > NAME_MAX_BYTES)
		return conn_says(c, -EINVAL, "a name has 1 to %d bytes", NAME_MAX_BYTES);
	draft_begin(&c->draft, verb, name);
	draft_owner(&c->draft, c->owner);
	return 0;
}

static int request_send(struct redlock *c, enum pending_kind kind, const char *name)
{
	int r = exchange_draft(c, kind, name);

	return r ? r : exchange_begin(c);
}

/* --- grants --- */

int redlock_grant(const struct redlock *c, struct redlock_grant *ret_grant)
{
	const struct reply_line *line = &c->answer.parsed;
	int64_t valid = reply_number(line, "valid_ms", -1), fence = reply_number(line, "fence", -1);

	if (!c->answered || line->kind != LINE_OK || fence < 0 || valid < 0 || valid > DURATION_MAX / US_PER_MS)
		return -EINVAL;
	*ret_grant = (struct redlock_grant){
		.fence = fence,
		.ttl_ms = line_bounded(line, "ttl_ms", 0),
		.valid_ms = valid,
		.count = line_bounded(line, "count", 0),
		.until_us = c->answer_sent_us + valid * US_PER_MS,
	};
	return 0;
}

static int grant_take(struct redlock *c, struct redlock_grant *ret_grant)
{
	return redlock_grant(c, ret_grant) ? conn_break(c, -EPROTO, "redlockd's answer lacks fence or valid_ms") : 0;
}

/* r: the result of sending the request, which the daemon may keep for busy_ms. */
static int grant_await(struct redlock *c, int r, int64_t busy_ms, struct redlock_grant *ret_grant)
{
	if (!r)
		r = await_answer(c, busy_ms);
	return r ? r : grant_take(c, ret_grant);
}

int64_t redlock_left_us(const struct redlock_grant *grant)
{
	int64_t left = grant->until_us - redlock_now_us();

	return left > 0 ? left : 0;
}

/* --- LOCK --- */

static const char *lock_verb(const struct redlock_options *o)
{
	if (o->slots > 0)
		return o->cancellable ? TAG_TO_CANCEL "ACQUIRE" : "ACQUIRE";
	return o->cancellable ? TAG_TO_CANCEL "LOCK" : "LOCK";
}

int redlock_lock_send(struct redlock *c, const char *name, const struct redlock_options *options)
{
	struct redlock_options o;
	size_t wait_at, wait_n;
	int r = conn_take(c, &o, options);

	if (!r)
		r = request_begin(c, lock_verb(&o), name);
	if (r)
		return r;
	draft_options(&c->draft, &o, &wait_at, &wait_n);
	r = exchange_draft(c, PENDING_LOCK, name);
	if (!r && c->greeting.resumes && holds_reserve(&c->holds, name))
		r = conn_break(c, -ENOMEM, "out of memory");
	if (r)
		return r;
	pending_wait(&c->pending, wait_at, wait_n, o.wait_ms ? boottime_after(o.wait_ms) : 0);
	c->pending.shared = o.shared;
	c->pending.permit = o.slots > 0;
	return exchange_begin(c);
}

int lock_anchor(struct redlock *c, const char *name, struct redlock_grant *ret_grant)
{
	int r = request_begin(c, "CHECK", name);

	if (!r)
		r = exchange_draft(c, PENDING_READ, name);
	if (r)
		return r;
	c->pending.anchors = true;
	r = grant_await(c, exchange_begin(c), 0, ret_grant);
	if (r == -ECONNABORTED && exchange_refuse(c, name))
		return c->broken;
	return r;
}

/* A LOCK may have waited for an hour: the validity counts from a CHECK, which takes one local round trip. */
int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options, struct redlock_grant *ret_grant)
{
	struct redlock_grant granted = {0}, checked = {0};
	struct redlock_options o;
	int r = conn_take(c, &o, options);

	if (!r)
		r = redlock_lock_send(c, name, &o);
	if (!r)
		r = await_answer(c, o.wait_ms ? o.wait_ms : ONCE_MS);
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

/* --- CHECK, EXTEND, UNLOCK --- */

int redlock_check_send(struct redlock *c, const char *name)
{
	int r = request_begin(c, "CHECK", name);

	return r ? r : request_send(c, PENDING_READ, name);
}

int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret_grant)
{
	return grant_await(c, redlock_check_send(c, name), 0, ret_grant);
}

int redlock_extend_send(struct redlock *c, const char *name, int64_t ttl_ms)
{
	int r = request_begin(c, "EXTEND", name);

	if (r)
		return r;
	if (ttl_ms > 0)
		draft_ms(&c->draft, "ttl", ttl_ms);
	return request_send(c, PENDING_READ, name);
}

int redlock_extend(struct redlock *c, const char *name, int64_t ttl_ms, struct redlock_grant *ret_grant)
{
	return grant_await(c, redlock_extend_send(c, name, ttl_ms), ONCE_MS, ret_grant);
}

int redlock_unlock_send(struct redlock *c, const char *name, const struct redlock_unlocking *options)
{
	struct redlock_unlocking o;
	int r = conn_take(c, &o, options);

	if (!r)
		r = request_begin(c, "UNLOCK", name);
	if (r)
		return r;
	if (o.keep_ms > 0)
		draft_ms(&c->draft, "keep", o.keep_ms);
	if (o.sync)
		draft_text(&c->draft, " sync=yes");
	return request_send(c, PENDING_UNLOCK, name);
}

int redlock_unlock_with(struct redlock *c, const char *name, const struct redlock_unlocking *options)
{
	struct redlock_unlocking o;
	int r = conn_take(c, &o, options);

	if (!r)
		r = redlock_unlock_send(c, name, &o);
	return r ? r : await_answer(c, o.sync ? ONCE_MS : 0);
}

int redlock_unlock(struct redlock *c, const char *name, int64_t keep_ms)
{
	return redlock_unlock_with(c, name, &(struct redlock_unlocking){.size = sizeof(struct redlock_unlocking), .keep_ms = keep_ms});
}

/* --- owners --- */

int redlock_set_owner(struct redlock *c, const char *owner)
{
	size_t n = owner ? strlen(owner) : 0;

	if (owner && (!n || n >= sizeof(c->owner)))
		return conn_says(c, -EINVAL, "an owner has 1 to %zu bytes", sizeof(c->owner) - 1);
	if (owner && c->greeting.resumes)
		return conn_says(c, -EINVAL, "a session with grace has no owners");
	memcpy(c->owner, owner ? owner : "", n + 1);
	return 0;
}
