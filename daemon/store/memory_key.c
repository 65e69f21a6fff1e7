/* SPDX-License-Identifier: BSD-2-Clause */
/* See memory_key.h. */
#include "daemon/store/memory_key.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include <stdio.h>
#include <string.h>

/* --- what a store shows to others of a value that is not theirs, as long.lua and break.lua do ----------------------------- */

#define SECRET_N 32
#define SINCE_N  12

static size_t run_of(struct span s, size_t from, bool (*in)(char c))
{
	size_t i = from;

	while (i < s.n && in(s.p[i]))
		i++;
	return i - from;
}

static bool is_part(char c)
{
	return c != ':';
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

struct span shown_public(struct span value)
{
	size_t id = run_of(value, 0, is_part);
	size_t ticket = id < value.n ? run_of(value, id + 1, is_part) : 0;
	size_t end = id + 1 + ticket;

	if (value.n > VALUE_MAX || !id || !ticket || end + 1 >= value.n || run_of(value, end + 1, is_hex) != value.n - end - 1)
		return SPAN("");
	return (struct span){value.p, value.n - end - 1 == SECRET_N ? end + 1 + SINCE_N : end};
}

#define SHOWN_BYTES 100 /* of a value that no redlockd wrote */

struct span shown_what(struct span value, char room[SHOWN_MAX])
{
	struct span what = shown_public(value);
	size_t shown = value.n < SHOWN_BYTES ? value.n : SHOWN_BYTES;
	int n;

	if (what.n > 0)
		return what;
	n = snprintf(room, SHOWN_MAX - SHOWN_BYTES, "#%zu:", value.n);
	if (shown > 0)
		memcpy(room + n, value.p, shown);
	return (struct span){room, (size_t)n + shown};
}

/* --- the key of a call ---------------------------------------------------------------------------------------------------- */

void key_view_read(struct memory *m, struct key_view *s, int64_t now_ms)
{
	s->broken = s->bare.p[0] == '!';
	if (s->broken)
		s->bare = (struct span){s->bare.p + 1, s->bare.n - 1};
	s->shared = share_list_read(&m->shares, s->bare, now_ms);
	if (s->shared && m->shares.count == 0)
		*s = (struct key_view){.key = s->key};
}

void answer_unjoined(const struct memory *m, const struct call *c, struct answer *a)
{
	answer_code(a, 'Q', m->fence, -2);
	if (!span_equal(marker_of(m), c->marker))
		a->found = marker_of(m);
}

/* The public part of the share that ends last. A broken one is shown with its '!', like any other broken value. */
static void answer_shared(struct memory *m, const struct key_view *s, struct answer *a)
{
	const struct share_end *last = share_list_last(&m->shares);
	struct span shown = shown_public(last->value);

	answer_code(a, 'S', m->fence, last->ends_ms - a->server_us / 1000);
	a->found = shown;
	if (!s->broken)
		return;
	m->shown[0] = '!';
	if (shown.n > 0)
		memcpy(m->shown + 1, shown.p, shown.n);
	a->found = (struct span){m->shown, 1 + shown.n};
}

void answer_occupied(struct memory *m, const struct key_view *s, struct answer *a)
{
	if (s->shared)
		return answer_shared(m, s, a);
	answer_code(a, s->key->foreign ? 'K' : 'B', m->fence, memory_pttl(m, s->key, a->server_us / 1000));
	if (!s->key->foreign)
		a->found = shown_public(key_value(s->key));
}

void answer_in_the_way(struct memory *m, const struct key_view *s, struct answer *a)
{
	answer_occupied(m, s, a);
	if (a->code == 'S')
		a->code = 'B';
}

/* --- keys that readers hold together ------------------------------------------------------------------------------------ */

#define ENDS_N 16

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes " <end>,<value>" off the beginning of the text. */
static bool share_read(struct span *text, struct share_end *ret_share)
{
	const char *p = text->p + 1, *end = text->p + text->n;
	int64_t ends = 0;
	size_t n;

	if (text->n < 1 + ENDS_N + 2 || text->p[0] != ' ' || p[ENDS_N] != ',')
		return false;
	for (unsigned i = 0; i < ENDS_N; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		ends = ends * 10 + (p[i] - '0');
	}
	p += ENDS_N + 1;
	for (n = 0; p + n < end && !is_blank(p[n]); n++)
		;
	*ret_share = (struct share_end){ends, {p, n}};
	*text = (struct span){p + n, (size_t)(end - p) - n};
	return n > 0;
}

bool share_list_read(struct share_list *s, struct span text, int64_t now_ms)
{
	struct share_end share;

	s->count = 0;
	if (text.n < 2 || text.p[0] != 'R')
		return false;
	for (text.p++, text.n--; text.n > 0;) {
		if (!share_read(&text, &share))
			return false;
		if (share.ends_ms >= now_ms && s->count < SHARES_MOST)
			s->share[s->count++] = share;
	}
	return true;
}

const struct share_end *share_list_last(const struct share_list *s)
{
	const struct share_end *last = &s->share[0];

	for (unsigned i = 1; i < s->count; i++)
		if (s->share[i].ends_ms > last->ends_ms)
			last = &s->share[i];
	return last;
}

struct share_end *share_list_of(struct share_list *s, struct span value)
{
	for (unsigned i = 0; i < s->count; i++)
		if (span_equal(s->share[i].value, value))
			return &s->share[i];
	return NULL;
}

static size_t digits(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return (size_t)(at - p);
}

/* '^[^:]*:%d+~(%d+):'; "" if the value does not match. */
static struct span limit_of(struct span value)
{
	const char *end = value.p + value.n, *at = value.n > 0 ? memchr(value.p, ':', value.n) : NULL;
	size_t n = at ? digits(at + 1, end) : 0;

	if (n == 0 || at + 1 + n == end || at[1 + n] != '~')
		return SPAN("");
	at += n + 2;
	n = digits(at, end);
	return n > 0 && at + n < end && at[n] == ':' ? (struct span){at, n} : SPAN("");
}

bool share_list_suits(const struct share_list *s, struct span value)
{
	return s->count == 0 || span_equal(limit_of(s->share[0].value), limit_of(value));
}

int64_t share_list_take(struct share_list *s, const struct call *c, bool *ret_again)
{
	int64_t ends = -1;
	unsigned kept = 0;

	*ret_again = false;
	for (unsigned i = 0; i < s->count; i++) {
		struct share_end share = s->share[i];
		bool again = c->kind == CALL_EXTEND && span_equal(share.value, c->new_value);

		if (!again && !span_equal(share.value, c->value)) {
			s->share[kept++] = share;
			continue;
		}
		ends = share.ends_ms > ends ? share.ends_ms : ends;
		*ret_again |= again;
	}
	s->count = kept;
	return ends;
}

void share_list_put(struct share_list *s, struct span value, int64_t ends_ms)
{
	s->share[s->count++] = (struct share_end){ends_ms, value};
}

int64_t share_list_write(const struct share_list *s, struct buf *out, int64_t now_ms)
{
	int64_t last = now_ms + 1;

	buf_append(out, "R", 1);
	for (unsigned i = 0; i < s->count; i++) {
		buf_printf(out, " %016lld,", (long long)s->share[i].ends_ms);
		buf_append(out, s->share[i].value.p, s->share[i].value.n);
		last = s->share[i].ends_ms > last ? s->share[i].ends_ms : last;
	}
	return last - now_ms;
}

/* --- who waits for whom: table.lua -------------------------------------------------------------------------------------- */

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
