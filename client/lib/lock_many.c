/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions about several locks at once (redlock.h). */
#include "client/lib/await.h"
#include "client/lib/boottime.h"
#include "client/lib/conn.h"
#include "client/lib/draft.h"
#include "client/lib/exchange.h"
#include "client/lib/lock.h"
#include "client/lib/lockall.h"

#include <errno.h>

#define NAMES_MOST 64

static int names_flaw(struct redlock *c, const char *const *names, size_t n)
{
	if (n < 1 || n > NAMES_MOST)
		return conn_says(c, -EINVAL, "1 to %d names are taken at once", NAMES_MOST);
	for (size_t i = 0; i < n; i++)
		if (!*names[i] || strlen(names[i]) > NAME_MAX_BYTES)
			return conn_says(c, -EINVAL, "a name has 1 to %d bytes", NAME_MAX_BYTES);
	return 0;
}

static void row_told(void *arg, const struct redlock_line *row)
{
	struct redlock *c = arg;

	c->rows_ttl_ms = line_bounded(&row->parsed, "ttl_ms", 0);
}

static const char *many_verb(bool any, const struct redlock_options *o)
{
	if (any)
		return o->cancellable ? TAG_TO_CANCEL "LOCKANY" : "LOCKANY";
	return o->cancellable ? TAG_TO_CANCEL "LOCKALL" : "LOCKALL";
}

int redlock_lock_many_send(struct redlock *c, bool any, const char *const *names, size_t n, const struct redlock_options *options)
{
	struct redlock_options taken, *o = &taken;
	size_t wait_at, wait_n;
	struct draft *d = &c->draft;
	int r = conn_take(c, o, options);

	if (!r)
		r = names_flaw(c, names, n);
	if (r)
		return r;
	draft_begin(d, many_verb(any, o), names[0]);
	for (size_t i = 1; i < n; i++)
		draft_quoted(d, " ", names[i]);
	draft_owner(d, c->owner);
	draft_options(d, o, &wait_at, &wait_n);
	r = exchange_draft(c, any ? PENDING_LOCKANY : PENDING_LOCKALL, "");
	if (r)
		return r;
	if (c->greeting.resumes && lockall_begin(&c->holds, names, n))
		return conn_break(c, -ENOMEM, "out of memory");
	pending_wait(&c->pending, wait_at, wait_n, o->wait_ms ? boottime_after(o->wait_ms) : 0);
	c->pending.shared = o->shared;
	r = exchange_begin(c);
	if (r)
		return r;
	c->rows_ttl_ms = 0;
	c->row = row_told;
	c->row_arg = c;
	return 0;
}

int64_t redlock_many_ttl_ms(const struct redlock *c)
{
	return c->rows_ttl_ms;
}

static int many_ask(struct redlock *c, bool any, const char *const *names, size_t n, const struct redlock_options *options)
{
	struct redlock_options o;
	int r = conn_take(c, &o, options);

	if (!r)
		r = redlock_lock_many_send(c, any, names, n, &o);
	return r ? r : await_answer(c, o.wait_ms ? o.wait_ms : ONCE_MS);
}

/* Gives back all grants, as soon as redlockd is there again. */
static int grants_refuse(struct redlock *c, const char *const *names, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (exchange_refuse(c, names[k]))
			return c->broken;
	return -ECONNABORTED;
}

/* Asks CHECK for one of the grants. If it is lost already, the others are given back, and CHECK tells the loss again. */
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
	/* It is held all the same, but no other is. */
	r = redlock_unlock(c, names[i], 0);
	return r ? r : conn_says(c, -ECONNABORTED, "redlockd could not tell whether all are held; they were given back");
}

int redlock_lock_all(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options, struct redlock_grant *ret_grants)
{
	struct redlock_grant grants[NAMES_MOST];
	int r = many_ask(c, false, names, n, options);

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
	int r = many_ask(c, true, names, n, options);
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
