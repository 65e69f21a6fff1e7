/* SPDX-License-Identifier: BSD-2-Clause */
/* A map of names, pools of a few sizes, and a heap of deadlines. It does not know locks, and must never read a clock. */
#include "daemon/store/keyspace.h"

#include "daemon/base/mem.h"
#include "daemon/store/keyfile.h"

#include <stdlib.h>

#define RECLAIM 64
#define KEYS_A_CALL  1024 /* keys that one call of keyspace_move_to_file checks; about a millisecond */

struct key_apart {
	TAILQ_ENTRY(key_apart) in_apart;
	/* the key follows */
};

_Static_assert(sizeof(struct key_apart) % _Alignof(struct key) == 0, "the key is aligned");

/* Bytes of a key. Most fit the first size. The fifth holds the longest name with the value of one holder, the last 256 readers. A larger key is allocated. */
static const uint32_t key_size[KEY_CLASSES] = {144, 176, 224, 288, 704, 1792, 4608, 12288, 49152};

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

/* The process may be killed between any two stores, so the compiler must keep their order. */
static void store_in_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

uint32_t keyspace_layout(void)
{
	return (uint32_t)(sizeof(struct key) << 24 | offsetof(struct key, until) << 16 | offsetof(struct key, name_n) << 8 | offsetof(struct key, state));
}

bool keyspace_read(const void *object, size_t size, struct span *ret_name, struct span *ret_value, struct instant *ret_until)
{
	const struct key *key = object;
	size_t room = size < sizeof(*key) ? 0 : size - offsetof(struct key, bytes);

	if (size < sizeof(*key) || key->state == KEY_NONE || key->name_n > room)
		return false;
	*ret_name = key_name(key);
	*ret_value = key->state == KEY_WHOLE && key->value_n <= room - key->name_n ? key_value(key) : SPAN("");
	*ret_until = key->until;
	return true;
}

void keyspace_init(struct keyspace *s, const uint64_t seed[2], struct keyfile *file)
{
	unsigned i;

	s->file = file;
	s->looked_up = 0;
	TAILQ_INIT(&s->apart);
	map_init(&s->names, seed);
	heap_init(&s->deadlines);
	for (i = 0; i < KEY_CLASSES; i++)
		pool_init(&s->pool[i], key_size[i]);
}

/* Whether a key of this class has room in the file, if there is a file. */
__attribute__((noinline)) static bool pool_has_room(struct keyspace *s, unsigned i)
{
	struct pool *p = &s->pool[i];
	size_t bytes = 0;
	void *slab;

	if (i == KEY_CLASSES)
		return false;
	if (!p->free && s->file && (slab = keyfile_slab(s->file, p->size, &bytes)))
		pool_add(p, slab, bytes);
	return p->free || !s->file;
}

__attribute__((noinline)) static struct key *key_of_its_own(struct keyspace *s, size_t bytes)
{
	struct key_apart *apart = mem_alloc(sizeof(*apart) + sizeof(struct key) + bytes);
	struct key *key = (void *)(apart + 1);

	if (s->file)
		keyfile_lose(s->file);
	TAILQ_INSERT_TAIL(&s->apart, apart, in_apart);
	key->apart = true;
	return key;
}

static struct key *key_new(struct keyspace *s, struct span name, size_t value_n)
{
	size_t bytes = name.n + value_n;
	unsigned i = key_class(bytes);
	uint32_t cap = i < KEY_CLASSES ? key_room(i) : (uint32_t)bytes;
	bool pooled = (i < KEY_CLASSES && s->pool[i].free) || pool_has_room(s, i);
	struct key *key = pooled ? pool_get(&s->pool[i]) : key_of_its_own(s, cap);

	key->cap = cap;
	key->name_n = (uint32_t)name.n;
	memcpy(key->bytes, name.p, name.n);
	map_insert(&s->names, &key->node, s->looked_up);
	return key;
}

static void key_free(struct keyspace *s, struct key *key)
{
	struct key_apart *apart = (struct key_apart *)(void *)key - 1;

	if (!key->apart) {
		pool_put(&s->pool[key_class(key->cap)], key);
		return;
	}
	TAILQ_REMOVE(&s->apart, apart, in_apart);
	mem_free(apart);
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
	key->state = KEY_NONE;
	store_in_order();
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

/* If the process is killed in here, the key keeps the later deadline, and its value only if that is complete. */
static void key_write(struct key *key, struct span value, struct instant until)
{
	if (key->state == KEY_WHOLE) {
		if (instant_before(key->until, until))
			key->until = until;
		store_in_order();
		key->state = KEY_CHANGING;
		store_in_order();
	}
	key->value_n = (uint32_t)value.n;
	if (value.n)
		memcpy(key->bytes + key->name_n, value.p, value.n);
	if (key->state == KEY_NONE)
		key->until = until;
	store_in_order();
	key->state = KEY_WHOLE;
	store_in_order();
	key->until = until;
}

struct key *keyspace_set(struct keyspace *s, struct key *key, struct span name, struct span value, struct instant until)
{
	struct key *small = key && name.n + value.n > key->cap ? key : NULL;

	if (!key || small)
		key = key_new(s, name, value.n);
	if (key->foreign)
		key->foreign = false;
	if (key->state == KEY_WHOLE && span_equal(key_value(key), value))
		key->until = until;
	else
		key_write(key, value, until);
	if (small)
		keyspace_drop(s, small); /* of two keys with one name the next run takes the one with the longer value */
	if (!timer_is_set(&key->timer) || instant_before(until, key->timer.at))
		heap_set(&s->deadlines, &key->timer, until);
	return key;
}

/* False: there is no room for it yet. */
static bool key_moves(struct keyspace *s, struct key *from)
{
	struct key *to;

	if (!pool_has_room(s, key_class(from->name_n + (size_t)from->value_n)))
		return false;
	(void)keyspace_find(s, key_name(from));
	to = key_new(s, key_name(from), from->value_n);
	to->foreign = from->foreign;
	key_write(to, key_value(from), from->until);
	heap_set(&s->deadlines, &to->timer, from->until);
	keyspace_drop(s, from);
	return true;
}

bool keyspace_move_to_file(struct keyspace *s)
{
	struct key_apart *apart;
	unsigned looked, moved = 0;

	if (!s->file || !keyfile_lost(s->file))
		return false;
	keyfile_retry(s->file);
	for (looked = 0; looked < KEYS_A_CALL && (apart = TAILQ_FIRST(&s->apart)); looked++) {
		if (key_moves(s, (void *)(apart + 1))) {
			moved++;
			continue;
		}
		TAILQ_REMOVE(&s->apart, apart, in_apart); /* moves it to the end, for the others to be tried */
		TAILQ_INSERT_TAIL(&s->apart, apart, in_apart);
	}
	if (TAILQ_EMPTY(&s->apart))
		keyfile_complete(s->file);
	return moved > 0 && !TAILQ_EMPTY(&s->apart);
}

struct key *keyspace_over(struct keyspace *s, struct instant now)
{
	struct timer *first;
	struct key *key;
	unsigned n;

	for (n = 0; n < RECLAIM; n++) {
		first = heap_first(&s->deadlines);
		if (!first || instant_before(now, first->at))
			return NULL;
		key = container_of(first, struct key, timer);
		if (!key_live(key, now))
			return key;
		heap_set(&s->deadlines, first, key->until);
	}
	return NULL;
}

void keyspace_reclaim(struct keyspace *s, struct instant now)
{
	const struct timer *first = heap_first(&s->deadlines);
	struct key *key;

	if (!first || instant_before(now, first->at))
		return; /* the usual case */
	for (unsigned n = 0; n < RECLAIM && (key = keyspace_over(s, now)); n++)
		keyspace_drop(s, key);
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
