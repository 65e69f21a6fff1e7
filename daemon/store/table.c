/* SPDX-License-Identifier: BSD-2-Clause */
/* See table.h. */
#include "daemon/store/table.h"

#include "daemon/base/mem.h"

#include <inttypes.h>

#define TABLE_MAX 196608 /* bytes of all members */

struct table_member {
	char *text;
	size_t n;
	int64_t number;
};

static void table_remove(struct table *t, size_t i)
{
	mem_free(t->item[i].text);
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

static void table_add(struct table *t, struct span text, int64_t number)
{
	if (t->count == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 8;
		t->item = mem_grow(t->item, t->cap, sizeof(*t->item));
	}
	t->item[t->count++] = (struct table_member){mem_copy(text.p, text.n), text.n, number};
}

static bool member_is_of(const struct table_member *m, struct span daemon)
{
	return m->n > daemon.n && memcmp(m->text, daemon.p, daemon.n) == 0 && m->text[daemon.n] == ' ';
}

/* Takes the next member: its length, ':', its bytes. */
static bool member_next(struct span *list, struct span *ret_member)
{
	size_t n = 0, i = 0;

	for (; i < list->n && list->p[i] >= '0' && list->p[i] <= '9'; i++)
		n = 10 * n + (size_t)(list->p[i] - '0');
	if (list->n < i + 1 + n || i == 0)
		return false;
	*ret_member = (struct span){list->p + i + 1, n};
	*list = (struct span){list->p + i + 1 + n, list->n - i - 1 - n};
	return true;
}

static struct span table_exchange(struct table *t, const struct call *c, int64_t now_us)
{
	int64_t life_us = c->ticket_ms * MSEC, number = now_us;
	struct span rest = c->value, member;
	struct buf others = {0};
	size_t size = 0;

	for (size_t i = t->count; i-- > 0;) {
		struct table_member *m = &t->item[i];

		if (m->number <= now_us - life_us || m->number >= now_us + life_us)
			table_remove(t, i);
		else if (m->number >= number)
			number = m->number + 1;
	}
	for (size_t i = 0; i < t->count;) {
		struct table_member *m = &t->item[i];

		if (member_is_of(m, c->ticket)) {
			table_remove(t, i);
			continue;
		}
		buf_printf(&others, "%zu:", m->n);
		buf_append(&others, m->text, m->n);
		size += m->n + 8;
		i++;
	}
	while (member_next(&rest, &member)) {
		size += member.n + 8;
		if (size <= TABLE_MAX)
			table_add(t, member, number);
	}
	buf_clear(&t->shown);
	buf_printf(&t->shown, "%" PRId64 " ", number);
	buf_append(&t->shown, buf_begin(&others), buf_length(&others));
	buf_release(&others);
	return (struct span){buf_begin(&t->shown), buf_length(&t->shown)};
}

void table_call(struct table *t, struct span marker, const struct call *c, struct answer *a)
{
	bool same = span_equal(marker, c->marker);

	a->class = ANSWER_EXECUTED;
	a->code = same ? 'T' : 'Q';
	a->found = same ? table_exchange(t, c, a->server_us) : marker;
}
