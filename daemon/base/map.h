/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chained hash map of embedded nodes, keyed with SipHash-2-4 (Aumasson, Bernstein 2012), so that chosen names cannot
 * make chains long. It grows by doubling and shrinks when nearly empty; 16 bytes per entry and 8 per bucket.
 * Iteration order is not specified and nothing that is observable may depend on it.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_node {
	struct map_node *next;
	uint64_t hash;
};

struct map {
	struct map_node **bucket;
	size_t mask; /* buckets - 1 */
	size_t count;
	uint64_t key[2];
};

typedef bool map_match(const struct map_node *node, const void *key, size_t n);

uint64_t siphash(const uint64_t key[2], const void *p, size_t n);

void map_init(struct map *m, const uint64_t key[2]);
void map_release(struct map *m); /* the nodes are the caller's */
uint64_t map_hash(const struct map *m, const void *key, size_t n);
struct map_node *map_find(const struct map *m, uint64_t hash, const void *key, size_t n, map_match *match);
void map_insert(struct map *m, struct map_node *node, uint64_t hash); /* not checked for a duplicate */
void map_remove(struct map *m, struct map_node *node);
/* NULL starts. The map must not change meanwhile. */
struct map_node *map_next(const struct map *m, const struct map_node *after);

/* Through an integer, so that a match function can come from its const node to a const type without a cast of its own. */
#define container_of(p, type, member) ((type *)((uintptr_t)(p)-offsetof(type, member)))

#endif
