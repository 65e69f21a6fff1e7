/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitrecords.h. */
#include "daemon/core/waitrecords.h"

#include "daemon/base/mem.h"

#include <stdlib.h>

void records_release(struct records *r)
{
	mem_free(r->now.item);
	mem_free(r->before.item);
	*r = (struct records){0};
}

static int record_order(const void *a, const void *b)
{
	const struct record *ra = a, *rb = b;

	return (ra->hash > rb->hash) - (ra->hash < rb->hash);
}

static const struct record *record_find(const struct record_list *of, uint64_t hash)
{
	if (of->count == 0)
		return NULL;
	return bsearch(&(struct record){.hash = hash}, of->item, of->count, sizeof(*of->item), record_order);
}

void records_renew(struct records *r, const struct wait_owners *owners, uint64_t exchange)
{
	struct record_list old = r->before;

	r->before = r->now;
	r->now = old;
	r->now.count = 0;
	if (r->now.cap < owners->count) {
		r->now.cap = owners->count;
		r->now.item = mem_grow(r->now.item, r->now.cap, sizeof(*r->now.item));
	}
	for (unsigned i = 0; i < owners->count; i++) {
		const struct wait_owner *o = &owners->item[i];
		const struct record *known = record_find(&r->before, o->hash);

		r->now.item[r->now.count++] = known ? *known : (struct record){.hash = o->hash, .exchange = exchange, .place = o->place};
	}
}

void records_sort(struct records *r)
{
	if (r->now.count > 0)
		qsort(r->now.item, r->now.count, sizeof(*r->now.item), record_order);
}

const struct record *records_find(const struct records *r, uint64_t hash)
{
	return record_find(&r->now, hash);
}

void records_forget(struct records *r, unsigned node)
{
	for (unsigned i = 0; i < r->now.count; i++)
		r->now.item[i].since[node] = 0;
}

void records_answered(struct records *r, unsigned node, uint64_t exchange, int64_t number)
{
	for (unsigned i = 0; i < r->now.count; i++) {
		struct record *known = &r->now.item[i];

		if (known->since[node] == 0 && known->exchange <= exchange)
			known->since[node] = number;
	}
}
