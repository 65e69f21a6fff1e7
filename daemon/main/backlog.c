/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue in front of the stores. It must never change a call, nor the order of the calls. */
#include "daemon/main/backlog.h"

#include "daemon/base/mem.h"

#include <string.h>

#define NAME_MOST 512
#define TEXT_MOST (NAME_MOST + 3 * VALUE_MAX + 2 * MARKER_MAX) /* bytes: name, value, new value, ticket and markers of a lock */

struct backlog_item {
	STAILQ_ENTRY(backlog_item) link;
	struct call call;
	char *more; /* a text that is longer, of a call about no lock; else NULL */
	char text[TEXT_MOST];
};

void backlog_init(struct backlog *b)
{
	pool_init(&b->pool, sizeof(struct backlog_item));
	STAILQ_INIT(&b->items);
	b->left = 0;
}

void backlog_release(struct backlog *b)
{
	while (!backlog_is_empty(b))
		backlog_drop_first(b);
	pool_release(&b->pool);
}

bool backlog_is_empty(const struct backlog *b)
{
	return STAILQ_EMPTY(&b->items);
}

static char *keep(char *at, struct span *s)
{
	if (s->n)
		memcpy(at, s->p, s->n);
	s->p = at;
	return at + s->n;
}

void backlog_add(struct backlog *b, const struct call *call)
{
	struct backlog_item *item = pool_get(&b->pool);
	struct span *const spans[] = {&item->call.name,   &item->call.value,      &item->call.new_value,
				      &item->call.marker, &item->call.new_marker, &item->call.ticket};
	size_t n = 0;
	char *at;

	item->call = *call;
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++)
		n += spans[i]->n;
	item->more = n > sizeof(item->text) ? mem_alloc(n) : NULL;
	at = item->more ? item->more : item->text;
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++)
		at = keep(at, spans[i]);
	STAILQ_INSERT_TAIL(&b->items, item, link);
}

void backlog_begin_pass(struct backlog *b, unsigned calls)
{
	b->left = calls;
}

void backlog_end_pass(struct backlog *b)
{
	b->left = 0;
}

static bool backlog_spend(struct backlog *b)
{
	if (b->left == 0)
		return false;
	b->left--;
	return true;
}

bool backlog_lets_pass(struct backlog *b)
{
	return backlog_is_empty(b) && backlog_spend(b);
}

bool backlog_first(struct backlog *b, struct call *ret_call)
{
	if (backlog_is_empty(b) || !backlog_spend(b))
		return false;
	*ret_call = STAILQ_FIRST(&b->items)->call;
	return true;
}

void backlog_drop_first(struct backlog *b)
{
	struct backlog_item *item = STAILQ_FIRST(&b->items);

	STAILQ_REMOVE_HEAD(&b->items, link);
	mem_free(item->more);
	pool_put(&b->pool, item);
}
