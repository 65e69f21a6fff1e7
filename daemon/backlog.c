/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue in front of the memory store. It must never change a call, nor the order of the calls. */
#include "daemon/backlog.h"

#include "daemon/core/journal.h"

#include <assert.h>
#include <string.h>

#define NAME_MOST 512
#define TEXT_MOST (NAME_MOST + (3 + JOURNAL_PRIORS) * VALUE_MAX + 2 * MARKER_MAX) /* bytes: name, value, new value, ticket, priors and markers */

struct backlog_item {
	STAILQ_ENTRY(backlog_item) link;
	struct call call;
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

static void keep(struct backlog_item *item, size_t *used, struct span *s)
{
	assert(s->n <= sizeof(item->text) - *used);
	if (s->n)
		memcpy(item->text + *used, s->p, s->n);
	s->p = item->text + *used;
	*used += s->n;
}

void backlog_add(struct backlog *b, const struct call *call)
{
	struct backlog_item *item = pool_get(&b->pool);
	size_t used = 0;

	item->call = *call;
	keep(item, &used, &item->call.name);
	keep(item, &used, &item->call.value);
	keep(item, &used, &item->call.new_value);
	keep(item, &used, &item->call.prior);
	keep(item, &used, &item->call.marker);
	keep(item, &used, &item->call.new_marker);
	keep(item, &used, &item->call.ticket);
	STAILQ_INSERT_TAIL(&b->items, item, link);
}

void backlog_begin_pass(struct backlog *b, unsigned calls)
{
	b->left = calls;
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
	pool_put(&b->pool, item);
}
