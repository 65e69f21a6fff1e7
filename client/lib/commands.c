/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public functions (redlock.h) that send one request and return its answer: queries, rate limits, subscriptions to pushes, and commands for
 * administrators.
 */
#include "client/lib/exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

int redlock_ping(struct redlock *c)
{
	struct draft *d = &c->draft;

	draft_verb(d, "PING");
	return await_draft(c, PENDING_READ, 0, NULL, NULL);
}

int redlock_show(struct redlock *c, const char *name, const struct redlock_view *view, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;
	struct redlock_view v;
	int r = conn_take(c, &v, view);

	if (r)
		return r;
	draft_begin(d, "SHOW", name);
	if (v.all)
		draft_text(d, " all=yes");
	if (v.former)
		draft_text(d, " former=yes");
	return await_draft(c, PENDING_READ, ONCE_MS, row, arg);
}

int redlock_stats(struct redlock *c, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;

	draft_verb(d, "STATS");
	return await_draft(c, PENDING_READ, ONCE_MS, row, arg);
}

/* --- pages --- */

/* The lists, and the field of the last row after which the next page starts. */
static const struct listing {
	const char *word, *key;
} listings[] = {
	[REDLOCK_LOCKS] = {"locks", "name"},
	[REDLOCK_SESSIONS] = {"sessions", "session"},
	[REDLOCK_NODES] = {"nodes", "node"},
	[REDLOCK_QUEUES] = {"queues", "queue"},
	[REDLOCK_JOBS] = {"jobs", NULL}, /* the answer has it, not the rows */
};

/* A page that is arriving: the function of the caller, and where the page ends so far. */
struct paging {
	void (*row)(void *arg, const struct redlock_line *line);
	void *arg;
	const char *key;
	struct redlock_page *page; /* a copy */
};

static void page_ends_at(struct redlock_page *page, struct redlock_bytes key)
{
	if (!key.p || key.n >= sizeof(page->after))
		return;
	memcpy(page->after, key.p, key.n);
	page->after_n = key.n;
}

static void page_row(void *arg, const struct redlock_line *row)
{
	struct paging *p = arg;

	if (p->key)
		page_ends_at(p->page, redlock_line_find(row, p->key));
	if (p->row)
		p->row(p->arg, row);
}

int redlock_list(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line),
		 void *arg)
{
	struct redlock_page next;
	struct paging paging = {.row = row, .arg = arg, .page = &next};
	struct redlock_bytes after;
	struct draft *d = &c->draft;
	int r = conn_take(c, &next, page);

	if (r)
		return r;
	if ((unsigned)what >= sizeof(listings) / sizeof(*listings))
		return conn_error(c, -EINVAL, "there is no such list");
	paging.key = listings[what].key;
	draft_verb(d, "LIST ");
	draft_text(d, listings[what].word);
	draft_positive(d, "limit", next.limit, "");
	draft_quoted(d, " prefix=", next.prefix);
	if (next.after_n)
		draft_bytes(d, " after=", (struct redlock_bytes){next.after, next.after_n});
	r = await_draft(c, PENDING_READ, ONCE_MS, page_row, &paging);
	if (r || !page)
		return r;
	after = redlock_line_find(redlock_answer(c), "after");
	if (!paging.key)
		page_ends_at(&next, after);
	next.more = redlock_line_number(redlock_answer(c), "more", after.p != NULL);
	next.size = page->size;
	memcpy(page, &next, MIN(page->size, sizeof(next)));
	return 0;
}

/* --- names --- */

static void draft_prefix(struct draft *d, const char *verb, const char *prefix)
{
	draft_verb(d, verb);
	if (prefix && *prefix)
		draft_quoted(d, " ", prefix);
}

int redlock_complete(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;

	draft_prefix(d, "COMPLETE", prefix);
	draft_positive(d, "limit", limit, "");
	return await_draft(c, PENDING_READ, ONCE_MS, row, arg);
}

int redlock_recent(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;

	draft_verb(d, "RECENT");
	draft_quoted(d, " prefix=", prefix);
	draft_positive(d, "limit", limit, "");
	return await_draft(c, PENDING_READ, ONCE_MS, row, arg);
}

/* --- rate limits --- */

int redlock_rate(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, struct redlock_rate *ret_rate)
{
	return redlock_rate_wait(c, name, limit, per_ms, cost, 0, ret_rate);
}

int redlock_rate_wait(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, int64_t wait_ms, struct redlock_rate *ret_rate)
{
	const struct redlock_line *answer;
	struct redlock_bytes unmetered;
	struct draft *d = &c->draft;
	int r;

	draft_begin(d, "RATE", name);
	draft_number(d, "limit", limit);
	draft_ms(d, "per", per_ms);
	draft_number(d, "cost", cost);
	draft_wait(d, wait_ms);
	r = await_draft(c, PENDING_ONCE, wait_ms, NULL, NULL);
	if (r != REDLOCK_OK && r != REDLOCK_BUSY && r != REDLOCK_TIMEOUT)
		return r;
	answer = redlock_answer(c);
	unmetered = redlock_line_find(answer, "unmetered");
	*ret_rate = (struct redlock_rate){
		.left = redlock_line_number(answer, "left", 0),
		.reset_ms = redlock_line_number(answer, "reset_ms", 0),
		.retry_ms = redlock_line_number(answer, "retry_ms", 0),
		.unmetered = unmetered.n == 3 && !memcmp(unmetered.p, "yes", 3),
	};
	return r;
}

/* --- pushes: WATCH, SUBSCRIBE and their ends --- */

/* The request is repeated over the next connection, like one that only reads. When the daemon has accepted it, the session keeps it. */
static int follow(struct redlock *c, bool events)
{
	int r = await_draft(c, PENDING_READ, 0, NULL, NULL);

	/* The connection may have ended right after the answer. */
	if (!r && subscriptions_add(&c->watches, c->pending.line.p, events, c->link != LINK_DOWN))
		r = conn_break(c, -ENOMEM, "out of memory");
	return r;
}

/* UNWATCH and UNSUBSCRIBE end the subscription of the same line without "UN". If the daemon does not know it, it is gone, too. */
static int unfollow(struct redlock *c)
{
	int r = await_draft(c, PENDING_READ, 0, NULL, NULL);

	if (!r || (r == REDLOCK_REFUSED && !strcmp(c->code, "NOTFOUND")))
		subscriptions_forget(&c->watches, c->pending.line.p + strlen("UN"));
	return r;
}

int redlock_watch(struct redlock *c, const char *prefix)
{
	draft_prefix(&c->draft, "WATCH", prefix);
	return follow(c, true);
}

int redlock_unwatch(struct redlock *c, const char *prefix)
{
	draft_prefix(&c->draft, "UNWATCH", prefix);
	return unfollow(c);
}

int redlock_subscribe(struct redlock *c)
{
	draft_verb(&c->draft, "SUBSCRIBE");
	return follow(c, false);
}

int redlock_unsubscribe(struct redlock *c)
{
	draft_verb(&c->draft, "UNSUBSCRIBE");
	return unfollow(c);
}

/* --- for administrators. None is repeated: a second one could hit another session --- */

/* Sends c->draft, and returns a number of its answer, unless ret_number is NULL. */
static int admin_ask(struct redlock *c, const char *field, int64_t *ret_number)
{
	int r = await_draft(c, PENDING_ONCE, ONCE_MS, NULL, NULL);

	if (!r && ret_number)
		*ret_number = redlock_line_number(redlock_answer(c), field, 0);
	return r;
}

int redlock_break(struct redlock *c, const char *name, int64_t *ret_free_in_ms)
{
	struct draft *d = &c->draft;

	draft_begin(d, "BREAK", name);
	return admin_ask(c, "free_in_ms", ret_free_in_ms);
}

int redlock_kill(struct redlock *c, int64_t session, int64_t *ret_held)
{
	struct draft *d = &c->draft;

	draft_verb(d, "KILL");
	draft_number(d, "session", session);
	return admin_ask(c, "n", ret_held);
}

int redlock_drain(struct redlock *c, int64_t in_ms, int64_t *ret_held)
{
	struct draft *d = &c->draft;

	draft_verb(d, "DRAIN");
	if (in_ms >= 0)
		draft_ms(d, "in", in_ms);
	return admin_ask(c, "locks", ret_held);
}
