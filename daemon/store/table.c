/* SPDX-License-Identifier: BSD-2-Clause */
/* See table.h. */
#include "daemon/store/table.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"

#include <string.h>

#define ROWS_MAX 65536 /* bytes of all rows */

struct table_entry {
	char *daemon, *rows;
	size_t daemon_n, n;
	int64_t till_us;
};

static struct span entry_daemon(const struct table_entry *e)
{
	return (struct span){e->daemon, e->daemon_n};
}

static int span_order(struct span a, struct span b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static void table_remove(struct table *t, size_t i)
{
	mem_free(t->item[i].daemon);
	mem_free(t->item[i].rows);
	memmove(&t->item[i], &t->item[i + 1], (t->count - i - 1) * sizeof(*t->item));
	t->count--;
}

void table_release(struct table *t)
{
	while (t->count > 0)
		table_remove(t, t->count - 1);
	mem_free(t->item);
	buf_release(&t->shown);
	*t = (struct table){0};
}

/* Keeps the entries sorted by daemon. */
static void table_add(struct table *t, struct span daemon, struct span rows, int64_t till_us)
{
	size_t at = 0;

	if (t->count == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 8;
		t->item = mem_grow(t->item, t->cap, sizeof(*t->item));
	}
	while (at < t->count && span_order(entry_daemon(&t->item[at]), daemon) < 0)
		at++;
	memmove(&t->item[at + 1], &t->item[at], (t->count - at) * sizeof(*t->item));
	t->count++;
	t->item[at] = (struct table_entry){mem_copy(daemon.p, daemon.n), mem_copy(rows.p, rows.n), daemon.n, rows.n, till_us};
}

/* Removes the daemon's own earlier rows, expired ones, and those that a clock set back would keep for too long. */
static void table_drop_over(struct table *t, struct span daemon, int64_t now_us, int64_t life_us)
{
	for (size_t i = t->count; i-- > 0;) {
		const struct table_entry *e = &t->item[i];

		if (e->till_us <= now_us || e->till_us > now_us + life_us || span_equal(entry_daemon(e), daemon))
			table_remove(t, i);
	}
}

/* Each daemon gets an equal share of the room. */
static struct span table_exchange(struct table *t, const struct call *c, int64_t now_us)
{
	int64_t life_us = c->ticket_ms * MSEC;

	table_drop_over(t, c->ticket, now_us, life_us);
	if (c->value.n > 0)
		table_add(t, c->ticket, c->value, now_us + life_us);
	buf_clear(&t->shown);
	for (size_t i = 0; i < t->count; i++) {
		const struct table_entry *e = &t->item[i];

		netstring_put(&t->shown, entry_daemon(e));
		netstring_put(&t->shown, (struct span){e->rows, e->n < ROWS_MAX / t->count ? e->n : ROWS_MAX / t->count});
	}
	return (struct span){buf_begin(&t->shown), buf_length(&t->shown)};
}

void table_call(struct table *t, struct span marker, const struct call *c, struct answer *a)
{
	bool same = span_equal(marker, c->marker);

	a->class = ANSWER_EXECUTED;
	a->code = same ? 'T' : 'Q';
	a->found = same ? table_exchange(t, c, a->server_us) : marker;
}
