/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that ask the daemon what it knows (redlock.h): locks, sessions, stores, names, figures. */
#include "client/lib/await.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

int redlock_ping(struct redlock *c)
{
	struct draft *d = &c->draft;

	draft_verb(d, "PING");
	return await_draft(c, PENDING_READ, 0, NULL);
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
	return await_draft(c, PENDING_READ, ONCE_MS, &(struct await_rows){row, arg});
}

int redlock_stats(struct redlock *c, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;

	draft_verb(d, "STATS");
	return await_draft(c, PENDING_READ, ONCE_MS, &(struct await_rows){row, arg});
}

/* --- pages --- */

/* What is listed, and the field by which a page continues the one before. */
static const struct listing {
	const char *word, *key;
} listings[] = {
	[REDLOCK_LOCKS] = {"locks", "name"},
	[REDLOCK_SESSIONS] = {"sessions", "session"},
	[REDLOCK_NODES] = {"nodes", "node"},
	[REDLOCK_QUEUES] = {"queues", "queue"},
	[REDLOCK_JOBS] = {"jobs", NULL}, /* the answer tells it */
};

/* A page that comes in: the caller's function, and where the page ends so far. */
struct paging {
	struct await_rows rows;
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
	if (p->rows.row)
		p->rows.row(p->rows.arg, row);
}

int redlock_list(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line),
		 void *arg)
{
	struct redlock_page next;
	struct paging paging = {.rows = {row, arg}, .page = &next};
	struct redlock_bytes after;
	struct draft *d = &c->draft;
	int r = conn_take(c, &next, page);

	if (r)
		return r;
	if ((unsigned)what >= sizeof(listings) / sizeof(*listings))
		return conn_says(c, -EINVAL, "there is no such list");
	paging.key = listings[what].key;
	draft_verb(d, "LIST ");
	draft_text(d, listings[what].word);
	if (next.limit > 0)
		draft_number(d, "limit", next.limit);
	if (next.prefix)
		draft_quoted(d, " prefix=", next.prefix);
	if (next.after_n)
		draft_bytes(d, " after=", (struct redlock_bytes){next.after, next.after_n});
	r = await_draft(c, PENDING_READ, ONCE_MS, &(struct await_rows){page_row, &paging});
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

static int names_ask(struct redlock *c, int64_t limit, const struct await_rows *rows)
{
	if (limit > 0)
		draft_number(&c->draft, "limit", limit);
	return await_draft(c, PENDING_READ, ONCE_MS, rows);
}

int redlock_complete(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;

	draft_verb(d, "COMPLETE");
	if (prefix && *prefix)
		draft_quoted(d, " ", prefix);
	return names_ask(c, limit, &(struct await_rows){row, arg});
}

int redlock_recent(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg)
{
	struct draft *d = &c->draft;

	draft_verb(d, "RECENT");
	if (prefix)
		draft_quoted(d, " prefix=", prefix);
	return names_ask(c, limit, &(struct await_rows){row, arg});
}
