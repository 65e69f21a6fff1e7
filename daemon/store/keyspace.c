/* SPDX-License-Identifier: BSD-2-Clause */
/* A map of names, pools of a few sizes, and a heap of deadlines. It knows nothing of locks, and must never read a clock. */
#include "daemon/store/keyspace.h"

#include "daemon/base/mem.h"

#include <stdlib.h>

#define RECLAIM 64

/* Bytes of a key. Most fit the first size; the last holds the longest name and value. A larger key is allocated by itself. */
static const uint32_t key_size[KEY_CLASSES] = {144, 176, 224, 288, 704};

static uint32_t key_room(unsigned size)
{
	return key_size[size] - (uint32_t)offsetof(struct key, bytes);
}

static unsigned key_class(size_t bytes)
{
	unsigned i = 0;

	while (i < KEY_CLASSES && bytes > key_room(i))
		i++;
	return i;
}

void keyspace_init(struct keyspace *s, const uint64_t seed[2])
{
	unsigned i;

	map_init(&s->names, seed);
	heap_init(&s->deadlines);
	for (i = 0; i < KEY_CLASSES; i++)
		pool_init(&s->pool[i], key_size[i]);
}

static struct key *key_new(struct keyspace *s, struct span name, size_t value_n)
{
	size_t bytes = name.n + value_n;
	unsigned i = key_class(bytes);
	struct key *key = i < KEY_CLASSES ? pool_get(&s->pool[i]) : mem_alloc(sizeof(*key) + bytes);

	key->cap = i < KEY_CLASSES ? key_room(i) : (uint32_t)bytes;
	s->large += i < KEY_CLASSES ? 0 : key->cap;
	key->name_n = (uint32_t)name.n;
	memcpy(key->bytes, name.p, name.n);
	map_insert(&s->names, &key->node, s->looked_up);
	return key;
}

static void key_free(struct keyspace *s, struct key *key)
{
	unsigned i = key_class(key->cap);

	s->large -= i < KEY_CLASSES ? 0 : key->cap;
	if (i < KEY_CLASSES)
		pool_put(&s->pool[i], key);
	else
		free(key);
}

void keyspace_release(struct keyspace *s)
{
	struct map_node *node, *next;
	unsigned i;

	for (node = map_next(&s->names, NULL); node; node = next) {
		next = map_next(&s->names, node);
		key_free(s, container_of(node, struct key, node));
	}
	for (i = 0; i < KEY_CLASSES; i++)
		pool_release(&s->pool[i]);
	map_release(&s->names);
	heap_release(&s->deadlines);
}

static bool key_match(const struct map_node *node, const void *name, size_t n)
{
	const struct key *key = (const void *)node; /* node is the first member */

	return span_equal(key_name(key), (struct span){name, n});
}

struct key *keyspace_find(struct keyspace *s, struct span name)
{
	struct map_node *node;

	s->looked_up = map_hash(&s->names, name.p, name.n);
	node = map_find(&s->names, s->looked_up, name.p, name.n, key_match);
	return node ? container_of(node, struct key, node) : NULL;
}

void keyspace_drop(struct keyspace *s, struct key *key)
{
	heap_cancel(&s->deadlines, &key->timer);
	map_remove(&s->names, &key->node);
	key_free(s, key);
}

struct key *keyspace_get(struct keyspace *s, struct span name, struct instant now)
{
	struct key *key = keyspace_find(s, name);

	if (!key || key_live(key, now))
		return key;
	keyspace_drop(s, key);
	return NULL;
}

struct key *keyspace_set(struct keyspace *s, struct key *key, struct span name, struct span value, struct instant until)
{
	if (key && name.n + value.n > key->cap) {
		keyspace_drop(s, key);
		key = NULL;
	}
	if (!key)
		key = key_new(s, name, value.n);
	key->value_n = (uint32_t)value.n;
	key->foreign = false;
	if (value.n)
		memcpy(key->bytes + key->name_n, value.p, value.n);
	key->until = until;
	if (!timer_is_set(&key->timer) || instant_before(until, key->timer.at))
		heap_set(&s->deadlines, &key->timer, until);
	return key;
}

void keyspace_reclaim(struct keyspace *s, struct instant now)
{
	struct timer *first;
	struct key *key;
	unsigned n;

	for (n = 0; n < RECLAIM; n++) {
		first = heap_first(&s->deadlines);
		if (!first || instant_before(now, first->at))
			return;
		key = container_of(first, struct key, timer);
		if (key_live(key, now))
			heap_set(&s->deadlines, first, key->until);
		else
			keyspace_drop(s, key);
	}
}

static int key_order(const void *a, const void *b)
{
	const struct key *x = *(struct key *const *)a, *y = *(struct key *const *)b;
	int order = memcmp(x->bytes, y->bytes, x->name_n < y->name_n ? x->name_n : y->name_n);

	return order ? order : (x->name_n > y->name_n) - (x->name_n < y->name_n);
}

struct key **keyspace_sorted(const struct keyspace *s, struct instant now, size_t *ret_count)
{
	struct key **sorted = mem_grow(NULL, s->names.count + 1, sizeof(struct key *));
	struct map_node *node;
	size_t n = 0;

	for (node = map_next(&s->names, NULL); node; node = map_next(&s->names, node)) {
		sorted[n] = container_of(node, struct key, node);
		n += key_live(sorted[n], now);
	}
	qsort(sorted, n, sizeof(struct key *), key_order);
	*ret_count = n;
	return sorted;
}
