/* SPDX-License-Identifier: BSD-2-Clause */
/* See readers.h. */
#include "daemon/core/lock/readers.h"

struct reader {
	struct map_node node;
	struct claim *claim;
};

struct wanted {
	const struct lock *lock;
	const struct session *session;
	struct span owner;
};

void readers_init(struct readers *r, const uint64_t key[2])
{
	map_init(&r->map, key);
	pool_init(&r->pool, sizeof(struct reader));
}

void readers_release(struct readers *r)
{
	map_release(&r->map);
	pool_release(&r->pool);
}

static struct wanted wanted_of(const struct claim *c)
{
	return (struct wanted){c->lock, c->session, claim_owner(c)};
}

static uint64_t wanted_hash(const struct readers *r, const struct wanted *w)
{
	uint64_t hash = siphash_word(r->map.key, siphash_word(r->map.key, (uintptr_t)w->lock) ^ (uintptr_t)w->session);

	return w->owner.n > 0 ? hash ^ map_hash(&r->map, w->owner.p, w->owner.n) : hash;
}

static bool is_wanted(const struct map_node *node, const void *wanted, size_t n)
{
	const struct claim *c = container_of(node, struct reader, node)->claim;
	const struct wanted *w = wanted;

	(void)n;
	return c->lock == w->lock && claim_is_of(c, w->session, w->owner);
}

static bool is_claim(const struct map_node *node, const void *claim, size_t n)
{
	(void)n;
	return container_of(node, struct reader, node)->claim == claim;
}

static struct reader *reader_find(const struct readers *r, const struct wanted *w)
{
	struct map_node *node = map_find(&r->map, wanted_hash(r, w), w, sizeof(*w), is_wanted);

	return node ? container_of(node, struct reader, node) : NULL;
}

void readers_add(struct readers *r, struct claim *c)
{
	struct reader *reader = pool_get(&r->pool);
	const struct wanted w = wanted_of(c);

	reader->claim = c;
	map_insert(&r->map, &reader->node, wanted_hash(r, &w));
}

void readers_remove(struct readers *r, const struct claim *c)
{
	const struct wanted w = wanted_of(c);
	struct reader *reader = container_of(map_find(&r->map, wanted_hash(r, &w), c, sizeof(*c), is_claim), struct reader, node);

	map_remove(&r->map, &reader->node);
	pool_put(&r->pool, reader);
}

struct claim *readers_find(const struct readers *r, const struct lock *l, const struct session *session, struct span owner)
{
	const struct wanted w = {l, session, owner};
	const struct reader *reader = reader_find(r, &w);

	return reader ? reader->claim : NULL;
}
