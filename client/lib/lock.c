/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public functions about locks (redlock.h). The validity of a grant counts from before its request was sent, never from when its answer was read.
 */
#include "client/lib/exchange.h"

#include <errno.h>

/* The daemon refuses longer names, too; this check refuses them before anything is sent. */
static int request_begin(struct redlock *c, const char *verb, const char *name)
{
	int r = conn_name(c, name, NAME_MAX_BYTES, "a name");

	if (r)
		return r;
	draft_begin(&c->draft, verb, name);
	draft_quoted(&c->draft, " owner=", *c->owner ? c->owner : NULL);
	return 0;
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

/* r: the result of sending the request. */
static int grant_await(struct redlock *c, int r, struct redlock_grant *ret_grant)
{
	r = await_answer(c, r);
	if (!r && redlock_grant(c, ret_grant))
		r = conn_break(c, -EPROTO, "redlockd's answer lacks fence or valid_ms");
	return r;
}

int64_t redlock_left_us(const struct redlock_grant *grant)
{
	int64_t left = grant->until_us - redlock_now_us(), asked = grant->until_us - grant->valid_ms * US_PER_MS;

	return left > 0 && asked > boottime_forked_us() ? left : 0;
}

/* --- LOCK --- */

#define NAMES_MOST 64

static int locks_send(struct redlock *c, const char *verb, enum pending_kind kind, const char *const *names, size_t n, const struct redlock_options *o)
{
	struct draft *d = &c->draft;
	int r = n > 0 && n <= NAMES_MOST ? 0 : conn_error(c, -EINVAL, "1 to %d names are taken at once", NAMES_MOST);

	for (size_t i = 0; !r && i < n; i++)
		r = conn_name(c, names[i], NAME_MAX_BYTES, "a name");
	if (r)
		return r;
	draft_verb(d, o->cancellable ? TAG_TO_CANCEL : "");
	draft_text(d, verb);
	for (size_t i = 0; i < n; i++)
		draft_quoted(d, " ", names[i]);
	draft_quoted(d, " owner=", *c->owner ? c->owner : NULL);
	draft_options(d, o);
	r = exchange_draft(c, kind, kind == PENDING_LOCK ? names[0] : "");
	if (!r && c->greeting.resumes && holds_ask(&c->holds, names, n))
		r = conn_break(c, -ENOMEM, "out of memory");
	if (r)
		return r;
	c->pending.busy_ms = o->wait_ms ? o->wait_ms : ONCE_MS;
	c->pending.shared = o->shared;
	c->pending.permit = o->slots > 0;
	return exchange_begin(c);
}

int redlock_lock_send(struct redlock *c, const char *name, const struct redlock_options *options)
{
	struct redlock_options o;
	int r = conn_take(c, &o, options);

	return r ? r : locks_send(c, o.slots > 0 ? "ACQUIRE" : "LOCK", PENDING_LOCK, &name, 1, &o);
}

/* Sends CHECK for a grant, and returns the validity that it reports. If redlockd is away for too long, gives the grant back later. */
static int lock_anchor(struct redlock *c, const char *name, struct redlock_grant *ret_grant)
{
	int r = redlock_check_send(c, name);

	c->pending.anchors = !r;
	r = grant_await(c, r, ret_grant);
	if (r == -ECONNABORTED && exchange_refuse(c, name))
		return c->broken;
	return r;
}

/* A LOCK may have waited for an hour. So the validity is that of a CHECK, which takes one local round trip. */
int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options, struct redlock_grant *ret_grant)
{
	struct redlock_grant granted = {0}, checked = {0};
	int r = grant_await(c, redlock_lock_send(c, name, options), &granted);

	if (!r)
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

	return r ? r : exchange_send(c, PENDING_READ, name, 0);
}

int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret_grant)
{
	return grant_await(c, redlock_check_send(c, name), ret_grant);
}

int redlock_extend_send(struct redlock *c, const char *name, int64_t ttl_ms)
{
	int r = request_begin(c, "EXTEND", name);

	if (r)
		return r;
	draft_positive(&c->draft, "ttl", ttl_ms, "ms");
	return exchange_send(c, PENDING_READ, name, ONCE_MS);
}

int redlock_extend(struct redlock *c, const char *name, int64_t ttl_ms, struct redlock_grant *ret_grant)
{
	return grant_await(c, redlock_extend_send(c, name, ttl_ms), ret_grant);
}

int redlock_unlock_send(struct redlock *c, const char *name, const struct redlock_unlocking *options)
{
	struct redlock_unlocking o;
	int r = conn_take(c, &o, options);

	if (!r)
		r = request_begin(c, "UNLOCK", name);
	if (r)
		return r;
	draft_positive(&c->draft, "keep", o.keep_ms, "ms");
	if (o.sync)
		draft_text(&c->draft, " sync=yes");
	return exchange_send(c, PENDING_UNLOCK, name, o.sync ? ONCE_MS : 0);
}

int redlock_unlock_with(struct redlock *c, const char *name, const struct redlock_unlocking *options)
{
	return await_answer(c, redlock_unlock_send(c, name, options));
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
		return conn_error(c, -EINVAL, "an owner has 1 to %zu bytes", sizeof(c->owner) - 1);
	if (owner && c->greeting.resumes)
		return conn_error(c, -EINVAL, "a session with grace has no owners");
	memcpy(c->owner, owner ? owner : "", n + 1);
	return 0;
}

/* --- several locks at once --- */

static void ttl_keep(void *arg, const struct redlock_line *row)
{
	struct redlock *c = arg;

	c->rows_ttl_ms = line_bounded(&row->parsed, "ttl_ms", 0);
}

int redlock_lock_many_send(struct redlock *c, bool any, const char *const *names, size_t n, const struct redlock_options *options)
{
	struct redlock_options o;
	int r = conn_take(c, &o, options);

	if (!r)
		r = locks_send(c, any ? "LOCKANY" : "LOCKALL", any ? PENDING_LOCKANY : PENDING_LOCKALL, names, n, &o);
	if (r)
		return r;
	c->rows_ttl_ms = 0;
	c->row = ttl_keep;
	c->row_arg = c;
	return 0;
}

int64_t redlock_many_ttl_ms(const struct redlock *c)
{
	return c->rows_ttl_ms;
}

/* Gives back all grants, as soon as redlockd is back. */
static int grants_refuse(struct redlock *c, const char *const *names, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (exchange_refuse(c, names[k]))
			return c->broken;
	return -ECONNABORTED;
}

/* Sends CHECK for one of the grants. If that lock is lost already, gives back the others, and sends CHECK again for the error. */
static int grant_anchor(struct redlock *c, const char *const *names, size_t n, size_t i, struct redlock_grant *ret_grant)
{
	int r = lock_anchor(c, names[i], ret_grant), freed = 0;

	if (r == -ECONNABORTED)
		return grants_refuse(c, names, n);
	if (r <= 0)
		return r;
	for (size_t k = 0; freed >= 0 && k < n; k++)
		if (k != i)
			freed = redlock_unlock(c, names[k], 0);
	if (freed >= 0)
		freed = redlock_check(c, names[i], ret_grant);
	if (freed)
		return freed;
	/* The session holds it after all, but none of the others. */
	r = redlock_unlock(c, names[i], 0);
	return r ? r : conn_error(c, -ECONNABORTED, "redlockd could not tell whether all are held; they were given back");
}

int redlock_lock_all(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options, struct redlock_grant *ret_grants)
{
	struct redlock_grant grants[NAMES_MOST];
	int r = await_answer(c, redlock_lock_many_send(c, false, names, n, options));

	for (size_t i = 0; !r && i < n; i++) {
		r = grant_anchor(c, names, n, i, &grants[i]);
		grants[i].ttl_ms = c->rows_ttl_ms;
	}
	if (!r)
		memcpy(ret_grants, grants, n * sizeof(*grants));
	return r;
}

static size_t name_of_answer(const struct redlock *c, const char *const *names, size_t n)
{
	struct redlock_bytes name = redlock_line_find(redlock_answer(c), "name");
	size_t i = 0;

	while (i < n && !span_equal((struct span){name.p, name.n}, span_of(names[i])))
		i++;
	return i;
}

int redlock_lock_any(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options, size_t *ret_which,
		     struct redlock_grant *ret_grant)
{
	int r = await_answer(c, redlock_lock_many_send(c, true, names, n, options));
	struct redlock_grant granted = {0};
	size_t which = r ? n : name_of_answer(c, names, n);

	if (r)
		return r;
	if (which == n || redlock_grant(c, &granted))
		return conn_break(c, -EPROTO, "redlockd's answer lacks name, fence or valid_ms");
	r = lock_anchor(c, names[which], ret_grant);
	if (r)
		return r;
	ret_grant->ttl_ms = ret_grant->ttl_ms ? ret_grant->ttl_ms : granted.ttl_ms;
	*ret_which = which;
	return 0;
}
