/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitentry.h. */
#include "daemon/core/waitentry.h"

#include "daemon/base/map.h"
#include "daemon/core/claim.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool row_has_permits(const struct entry_row *r)
{
	return r->kind == 'p' || r->kind == 's';
}

bool entry_put_row(struct buf *rows, size_t begin, const struct entry_row *r)
{
	if (buf_length(rows) - begin + r->name.n + ENTRY_ROW_MAX > ENTRY_MAX)
		return false;
	buf_printf(rows, "%c%u,%" PRId64 ",", r->kind, r->request, r->when);
	if (row_has_permits(r))
		buf_printf(rows, "%u,%u,", r->count, r->limit);
	buf_printf(rows, "%zu:", r->name.n);
	buf_append(rows, r->name.p, r->name.n);
	return true;
}

uint64_t entry_row_hash(const struct entry_row *r)
{
	const uint64_t key[2] = {(uint64_t)r->kind, (uint64_t)r->count << 32 | r->limit};

	return siphash_word(key, siphash(key, r->name.p, r->name.n) ^ (uint64_t)r->when);
}

void entry_put(struct buf *list, const struct entry_head *h, struct span rows)
{
	char head[ENTRY_HEAD_MAX];
	int n = snprintf(head, sizeof(head), "%.*s %" PRIu64 " %016" PRIx64 " %" PRId64 " %" PRId64 " %" PRId64 " ", (int)h->daemon.n, h->daemon.p, h->session,
	                 h->owner, h->since, h->until, h->place);

	buf_printf(list, "%zu:%s", (size_t)n + rows.n, head);
	buf_append(list, rows.p, rows.n);
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

bool entry_take_number(struct span *list, int64_t *ret_number)
{
	return take_number(list, ' ', ret_number);
}

bool entry_next(struct span *list, struct span *ret_member)
{
	int64_t n;

	return take_number(list, ':', &n) && take_bytes(list, n, ret_member);
}

bool entry_read(struct span member, struct entry_head *ret_head, struct span *ret_rows)
{
	struct entry_head h = {0};
	struct span rest = member, owner;
	int64_t session;

	if (!take_word(&rest, &h.daemon) || !take_number(&rest, ' ', &session) || session < 0 || !take_word(&rest, &owner))
		return false;
	if (!take_number(&rest, ' ', &h.since) || !take_number(&rest, ' ', &h.until) || !take_number(&rest, ' ', &h.place))
		return false;
	h.session = (uint64_t)session;
	h.who = (struct span){member.p, (size_t)(owner.p + owner.n - member.p)};
	*ret_head = h;
	*ret_rows = rest;
	return true;
}

static bool take_count(struct span *rows, unsigned *ret_count)
{
	int64_t n;

	if (!take_number(rows, ',', &n) || n < 0 || n > LIMIT_MOST)
		return false;
	*ret_count = (unsigned)n;
	return true;
}

/* At least one: with none it would be a row of a lock. */
static bool take_permits(struct span *rows, struct entry_row *r)
{
	return take_count(rows, &r->count) && take_count(rows, &r->limit) && r->count > 0;
}

int entry_read_row(struct span *rows, struct entry_row *ret_row)
{
	struct entry_row r = {0};
	int64_t request, n;

	if (rows->n == 0)
		return 0;
	r.kind = rows->p[0];
	*rows = (struct span){rows->p + 1, rows->n - 1};
	if (!strchr("nahps", r.kind) || r.kind == '\0' || !take_number(rows, ',', &request) || request < 0 || request > UINT32_MAX)
		return -1;
	if (!take_number(rows, ',', &r.when) || (row_has_permits(&r) && !take_permits(rows, &r)))
		return -1;
	if (!take_number(rows, ':', &n) || n > NAME_MAX_BYTES)
		return -1;
	if (!take_bytes(rows, n, &r.name))
		return -1;
	r.request = (unsigned)request;
	*ret_row = r;
	return 1;
}

struct span entry_host(struct span daemon)
{
	const char *dot = memchr(daemon.p, '.', daemon.n);
	struct span host = dot ? (struct span){dot + 1, daemon.n - (size_t)(dot + 1 - daemon.p)} : daemon;

	return host.n < 64 ? host : (struct span){host.p, 63};
}

static bool rows_are_sound(struct span rows)
{
	struct entry_row r;
	int more;

	while ((more = entry_read_row(&rows, &r)) > 0)
		;
	return more == 0;
}

void entry_rows_to_graph(struct waitgraph *g, struct span rows)
{
	struct entry_row r;

	while (entry_read_row(&rows, &r) > 0) {
		if (r.kind == 'h' || r.kind == 's')
			graph_add_hold(g, r.name, r.count);
		else
			graph_add_want(g, &(struct graph_want){
						  .name = r.name, .request = r.request, .any = r.kind == 'a', .need = r.count, .limit = r.limit});
	}
}

bool entry_to_graph(struct waitgraph *g, struct span member, bool own)
{
	struct entry_head h;
	struct span rows;

	if (!entry_read(member, &h, &rows) || !rows_are_sound(rows))
		return false;
	graph_add_owner(g, &(struct graph_owner){.who = h.who, .host = entry_host(h.daemon), .place = h.place, .own = own});
	entry_rows_to_graph(g, rows);
	return true;
}
