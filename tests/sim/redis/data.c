/* SPDX-License-Identifier: BSD-2-Clause */
/* No result may depend on the order of the map: all walks go over a sorted list. */
#include "tests/sim/redis/data.h"
#include "daemon/base/mem.h"
#include "tests/sim/redis/load8.h"

#include <stdlib.h>

static const uint64_t seed[2] = {1, 2}; /* unused: key_hash has no seed */

/* Quick, and good enough for our own keys: multiply and fold, eight bytes at a time. */
static uint64_t key_hash(struct span key)
{
	uint64_t hash = key.n;
	size_t i;

	for (i = 0; i < key.n; i += 8) {
		hash = (hash ^ load8(key.p + i, key.n - i)) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

static void text_free(struct span text)
{
	free((void *)(uintptr_t)text.p);
}

static void data_notify(const struct data *d, struct span key, struct span before, struct span after)
{
	if (d->changed)
		d->changed(d->context, key, before, after);
}

static void datum_free(struct datum *datum)
{
	text_free(datum->key);
	text_free(datum->text);
	items_release(&datum->items);
	free(datum);
}

static struct datum *datum_new(struct data *d, struct span key, enum datum_type type)
{
	struct datum *datum = mem_alloc(sizeof(*datum));

	datum->key = (struct span){mem_copy(key.p, key.n), key.n};
	datum->type = type;
	datum->expires_ms = DATUM_FOREVER;
	map_insert(&d->keys, &datum->node, key_hash(key));
	d->changes++;
	return datum;
}

static int key_order(const void *a, const void *b)
{
	const struct datum *x = *(struct datum *const *)a, *y = *(struct datum *const *)b;
	size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
	int order = memcmp(x->key.p, y->key.p, n);

	return order ? order : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

struct datum **data_sorted(const struct data *d, size_t *ret_count)
{
	struct datum **sorted = mem_grow(NULL, d->keys.count, sizeof(struct datum *));
	struct map_node *node;
	size_t n = 0;

	for (node = map_next(&d->keys, NULL); node; node = map_next(&d->keys, node))
		sorted[n++] = container_of(node, struct datum, node);
	qsort(sorted, n, sizeof(struct datum *), key_order);
	*ret_count = n;
	return sorted;
}

void data_init(struct data *d)
{
	*d = (struct data){0};
	map_init(&d->keys, seed);
}

void data_clear(struct data *d)
{
	size_t n, i;
	struct datum **sorted = data_sorted(d, &n);

	for (i = 0; i < n; i++)
		data_remove(d, sorted[i]);
	free(sorted);
}

void data_release(struct data *d)
{
	d->changed = NULL;
	data_clear(d);
	map_release(&d->keys);
}

static void datum_copy(struct data *to, const struct datum *from)
{
	struct datum *copy = datum_new(to, from->key, from->type);

	copy->expires_ms = from->expires_ms;
	copy->text = (struct span){mem_copy(from->text.p, from->text.n), from->text.n};
	items_copy(&copy->items, &from->items);
	data_notify(to, copy->key, SPAN(""), copy->text);
}

void data_copy(struct data *to, const struct data *from)
{
	size_t n, i;
	struct datum **sorted = data_sorted(from, &n);

	data_clear(to);
	for (i = 0; i < n; i++)
		datum_copy(to, sorted[i]);
	free(sorted);
}

static bool key_match(const struct map_node *node, const void *key, size_t n)
{
	const struct datum *datum = container_of(node, struct datum, node);

	return datum->key.n == n && same8(datum->key.p, key, n);
}

static struct datum *datum_at(const struct data *d, struct span key)
{
	struct map_node *node = map_find(&d->keys, key_hash(key), key.p, key.n, key_match);

	return node ? container_of(node, struct datum, node) : NULL;
}

const struct datum *data_peek(const struct data *d, struct span key)
{
	return datum_at(d, key);
}

bool datum_live(const struct datum *datum, int64_t now_ms)
{
	return datum->expires_ms == DATUM_FOREVER || now_ms <= datum->expires_ms;
}

struct datum *data_find(struct data *d, struct span key, int64_t now_ms)
{
	struct datum *datum = datum_at(d, key);

	if (!datum || datum_live(datum, now_ms))
		return datum;
	data_remove(d, datum);
	return NULL;
}

struct datum *data_set_text(struct data *d, struct datum *datum, struct span key, struct span text)
{
	struct span before = {0}, after = {mem_copy(text.p, text.n), text.n};

	if (datum) {
		before = datum->text;
		items_release(&datum->items);
	} else {
		datum = datum_new(d, key, DATUM_STRING);
	}
	datum->type = DATUM_STRING;
	datum->text = after;
	data_notify(d, datum->key, before, after);
	text_free(before);
	return datum;
}

struct datum *data_add_items(struct data *d, struct span key, enum datum_type type)
{
	return datum_new(d, key, type);
}

void data_remove(struct data *d, struct datum *datum)
{
	map_remove(&d->keys, &datum->node);
	d->changes++;
	data_notify(d, datum->key, datum->text, SPAN(""));
	datum_free(datum);
}
