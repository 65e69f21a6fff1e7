/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitentry.h. */
#include "daemon/core/waitentry.h"

#include "daemon/core/claim.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of a member. */
struct row {
	char kind;
	unsigned request, count, limit;
	struct span name;
};

static bool row_put(struct buf *rows, const struct row *r)
{
	if (buf_length(rows) + r->name.n + 64 > ENTRY_MAX)
		return false;
	buf_printf(rows, "%c%u,%u,%u,%zu:", r->kind, r->request, r->count, r->limit, r->name.n);
	buf_append(rows, r->name.p, r->name.n);
	return true;
}

static bool rows_put(struct buf *rows, const struct waitgraph *g, unsigned owner)
{
	const struct graph_owner *o = &g->owner[owner];
	bool room = true;

	for (unsigned i = o->want; i != NOBODY && room; i = g->want[i].next) {
		const struct graph_want *w = &g->want[i];

		room = row_put(rows, &(struct row){w->limit > 0 ? 'p' : w->any ? 'a' : 'n', w->request, w->limit > 0, w->limit, w->name});
	}
	if (!room)
		return false;
	for (unsigned i = o->hold; i != NOBODY && room; i = g->hold[i].next) {
		const struct graph_hold *h = &g->hold[i];

		room = row_put(rows, &(struct row){h->count > 0 ? 's' : 'h', 0, h->count, 0, g->name[h->of].name});
	}
	return true;
}

bool entry_put(struct buf *list, const struct entry_head *h, const struct waitgraph *g, unsigned owner)
{
	char head[ENTRY_HEAD_MAX];
	int n = snprintf(head, sizeof(head), "%.*s %" PRIu64 " %016" PRIx64 " %" PRId64 " ", (int)h->daemon.n, h->daemon.p, h->session, h->owner, h->place);
	struct buf rows = {0};
	bool room = rows_put(&rows, g, owner);

	if (room) {
		buf_printf(list, "%zu:%s", (size_t)n + buf_length(&rows), head);
		buf_append(list, buf_begin(&rows), buf_length(&rows));
	}
	buf_release(&rows);
	return room;
}

/* Takes a number of at most 18 digits, with a sign or without, and the byte behind it. */
static bool take_number(struct span *rest, char behind, int64_t *ret_n)
{
	bool negative = rest->n > 0 && rest->p[0] == '-';
	size_t i = negative;
	int64_t n = 0;

	for (; i < rest->n && i < 18 + (size_t)negative && rest->p[i] >= '0' && rest->p[i] <= '9'; i++)
		n = 10 * n + (rest->p[i] - '0');
	if (i == negative || i == rest->n || rest->p[i] != behind)
		return false;
	*rest = (struct span){rest->p + i + 1, rest->n - i - 1};
	*ret_n = negative ? -n : n;
	return true;
}

static bool take_bytes(struct span *rest, int64_t n, struct span *ret_bytes)
{
	if (n < 0 || (uint64_t)n > rest->n)
		return false;
	*ret_bytes = (struct span){rest->p, (size_t)n};
	*rest = (struct span){rest->p + n, rest->n - (size_t)n};
	return true;
}

static bool take_word(struct span *rest, struct span *ret_word)
{
	const char *blank = rest->n > 0 ? memchr(rest->p, ' ', rest->n) : NULL;

	if (!blank || blank == rest->p)
		return false;
	*ret_word = (struct span){rest->p, (size_t)(blank - rest->p)};
	*rest = (struct span){blank + 1, rest->n - ret_word->n - 1};
	return true;
}

bool entry_next(struct span *list, struct span *ret_member)
{
	int64_t n;

	return take_number(list, ':', &n) && take_bytes(list, n, ret_member);
}

static bool head_read(struct span member, struct entry_head *ret_head, struct span *ret_rows)
{
	struct entry_head h = {0};
	struct span rest = member, owner;
	char hash[17] = "";
	int64_t session;

	if (!take_word(&rest, &h.daemon) || !take_number(&rest, ' ', &session) || session < 0 || !take_word(&rest, &owner) || owner.n != 16)
		return false;
	if (!take_number(&rest, ' ', &h.place))
		return false;
	memcpy(hash, owner.p, owner.n);
	h.session = (uint64_t)session;
	h.owner = strtoull(hash, NULL, 16);
	h.who = (struct span){member.p, (size_t)(owner.p + owner.n - member.p)};
	*ret_head = h;
	*ret_rows = rest;
	return true;
}

static bool take_count(struct span *rows, int64_t most, unsigned *ret_count)
{
	int64_t n;

	if (!take_number(rows, ',', &n) || n < 0 || n > most)
		return false;
	*ret_count = (unsigned)n;
	return true;
}

/* 1; 0: that was the last; negative: it is not sound. */
static int row_read(struct span *rows, struct row *ret_row)
{
	struct row r = {0};
	int64_t n;

	if (rows->n == 0)
		return 0;
	r.kind = rows->p[0];
	*rows = (struct span){rows->p + 1, rows->n - 1};
	if (r.kind == '\0' || !strchr("nahps", r.kind) || !take_count(rows, UINT32_MAX, &r.request))
		return -1;
	if (!take_count(rows, LIMIT_MOST, &r.count) || !take_count(rows, LIMIT_MOST, &r.limit))
		return -1;
	if ((r.count > 0) != (r.kind == 'p' || r.kind == 's') || (r.limit > 0) != (r.kind == 'p'))
		return -1;
	if (!take_number(rows, ':', &n) || n > NAME_MAX_BYTES || !take_bytes(rows, n, &r.name))
		return -1;
	*ret_row = r;
	return 1;
}

/* The host in the id of a daemon. */
static struct span host_of(struct span daemon)
{
	const char *dot = memchr(daemon.p, '.', daemon.n);
	struct span host = dot ? (struct span){dot + 1, daemon.n - (size_t)(dot + 1 - daemon.p)} : daemon;

	return host.n < 64 ? host : (struct span){host.p, 63};
}

static bool rows_are_sound(struct span rows, unsigned *ret_rows)
{
	struct row r;
	int more;

	for (*ret_rows = 0; (more = row_read(&rows, &r)) > 0; (*ret_rows)++)
		;
	return more == 0;
}

unsigned entry_to_graph(struct waitgraph *g, struct span member, bool own, struct entry_head *ret_head)
{
	struct span rows;
	unsigned owner, count;
	struct row r;

	if (!head_read(member, ret_head, &rows) || !rows_are_sound(rows, &count) || graph_is_full(g, count))
		return NOBODY;
	owner = graph_add_owner(g, &(struct graph_owner){.who = ret_head->who, .host = host_of(ret_head->daemon), .place = ret_head->place, .own = own});
	while (row_read(&rows, &r) > 0) {
		if (r.kind == 'h' || r.kind == 's')
			graph_add_hold(g, owner, r.name, r.count);
		else
			graph_add_want(g, owner,
			               &(struct graph_want){.name = r.name, .request = r.request, .any = r.kind == 'a', .limit = r.limit});
	}
	return owner;
}
