/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chained hash map of embedded nodes, keyed with SipHash-2-4 (Aumasson, Bernstein 2012), so that no client can
 * choose names that make chains long. It grows by doubling and shrinks when nearly empty; 16 bytes per entry and 8 per bucket. A large table is replaced
 * little by little: each insertion and removal moves some chains to the new one, so that none takes long.
 * Iteration order is not specified and nothing that is observable may depend on it.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct map_node {
	struct map_node *next;
	uint64_t hash;
};

struct map {
	struct map_node **bucket;
	size_t mask; /* buckets - 1 */
	unsigned shift; /* hash >> shift is the bucket */
	unsigned old_shift;
	struct map_node **old; /* the table that is being replaced; NULL: none … */
	size_t moved, old_n;   /* … with this many of its buckets moved already, from the first on */
	size_t count;
	uint64_t key[2];
};

typedef bool map_match(const struct map_node *node, const void *key, size_t n);

uint64_t siphash(const uint64_t key[2], const void *p, size_t n);
uint64_t siphash_word(const uint64_t key[2], uint64_t word); /* siphash of its eight bytes, the lowest first */

void map_init(struct map *m, const uint64_t key[2]);
void map_release(struct map *m); /* the caller owns the nodes */
void map_insert(struct map *m, struct map_node *node, uint64_t hash); /* does not check for a duplicate */
void map_remove(struct map *m, struct map_node *node);

static inline struct map_node **map_bucket(const struct map *m, uint64_t hash)
{
	if (__builtin_expect(m->old != NULL, 0) && hash >> m->old_shift >= m->moved)
		return &m->old[hash >> m->old_shift];
	return &m->bucket[hash >> m->shift];
}

static inline uint64_t map_hash(const struct map *m, const void *key, size_t n)
{
	return siphash(m->key, key, n);
}

/* Inline, so that each caller has a loop with its own match built in. */
static inline struct map_node *map_find(const struct map *m, uint64_t hash, const void *key, size_t n, map_match *match)
{
	struct map_node *node;

	for (node = *map_bucket(m, hash); node; node = node->next)
		if (node->hash == hash && match(node, key, n))
			return node;
	return NULL;
}

/* The node after `after`; NULL starts. NULL: no more. The map must not change meanwhile. */
struct map_node *map_next(const struct map *m, const struct map_node *after);

/*
 * A walk through a map that may change between the steps, even in its size. The walk visits a node exactly once if the node is in the map from the first step
 * to the last. A node that is inserted or removed meanwhile is visited once or not at all.
 */
struct map_walk { /* a zero-filled walk is at the beginning */
	uint64_t from, next; /* the first hash of the last visited bucket, and of the next one */
	bool over;
	const struct map_node *ahead; /* a node that will be visited soon, for a prefetch; NULL: none. Invalid once the map changes */
};

/* One step: *ret_chain is the chain of one bucket, NULL if empty. The caller must skip nodes for which map_walk_meets is false. False: the walk is over. */
bool map_walk(const struct map *m, struct map_walk *w, struct map_node **ret_chain);

/* After the map has shrunk, a bucket may contain nodes that were visited before. */
static inline bool map_walk_meets(const struct map_walk *w, const struct map_node *node)
{
	return node->hash >= w->from;
}

/* Casts through an integer, so that a match function needs no cast from its const node to a const struct. */
#define container_of(p, type, member) ((type *)((uintptr_t)(p)-offsetof(type, member)))

/* Defines a match: the key is a text, which the struct around the node has in `text`, with its length in `length`. */
#define MAP_MATCH(match, type, member, text, length) \
	static bool match(const struct map_node *node, const void *key, size_t n) \
	{ \
		const type *of = container_of(node, type, member); \
\
		return of->length == n && memcmp(of->text, key, n) == 0; \
	}

#endif
