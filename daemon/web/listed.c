/* SPDX-License-Identifier: BSD-2-Clause */
/* See listed.h. */
#include "daemon/web/listed.h"

#include "daemon/base/mem.h"

#include <stdlib.h>
#include <string.h>

struct listed_row *listed_add(struct listed *l, struct span name, bool queue)
{
	struct listed_row *row;

	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->row = mem_grow(l->row, l->cap, sizeof(*l->row));
	}
	row = &l->row[l->n++];
	*row = (struct listed_row){.name = mem_copy(name.p, name.n), .n = name.n, .queue = queue};
	l->queues += queue;
	l->bytes += name.n;
	return row;
}

static int name_order(const struct listed_row *a, const struct listed_row *b)
{
	int order = memcmp(a->name, b->name, a->n < b->n ? a->n : b->n);

	return order ? order : (a->n > b->n) - (a->n < b->n);
}

static int row_order(const void *a, const void *b)
{
	const struct listed_row *x = a, *y = b;
	int order = name_order(x, y);

	return order ? order : x->queue - y->queue;
}

/* Leaves n rows, or one more that shares the name of the last one. */
static void page_end(struct listed *l, size_t n)
{
	if (n > 0 && n < l->n && name_order(&l->row[n - 1], &l->row[n]) == 0)
		n++;
	while (l->n > n) {
		l->n--;
		l->bytes -= l->row[l->n].n;
		l->queues -= l->row[l->n].queue;
		free(l->row[l->n].name);
	}
}

/* A list that has more rows ends the page with its last one here: what is missing comes behind that. */
static void page_bound(struct listed *l, bool queue)
{
	size_t last = l->n;

	while (last > 0 && l->row[last - 1].queue != queue)
		last--;
	if (last > 0)
		page_end(l, last);
}

bool listed_arrange(struct listed *l, size_t most, bool more_locks, bool more_queues)
{
	size_t found;

	if (l->n > 0)
		qsort(l->row, l->n, sizeof(*l->row), row_order);
	if (more_locks)
		page_bound(l, false);
	if (more_queues)
		page_bound(l, true);
	found = l->n;
	page_end(l, most);
	return more_locks || more_queues || l->n < found;
}

void listed_release(struct listed *l)
{
	page_end(l, 0);
	free(l->row);
}
