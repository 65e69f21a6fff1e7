/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buckets, a power of two of them, with chains of embedded nodes. The high bits of a hash choose the bucket, so a bucket is a range of hashes in a table
 * of any size. The map owns the buckets only, and never touches the struct that embeds a node.
 */
#include "daemon/base/map.h"
#include "daemon/base/mem.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define MAP_FIRST ((size_t)16)
#define MAP_AHEAD ((size_t)8) /* distance of a prefetch during a walk, in buckets */
#define MAP_MOVED ((size_t)16) /* buckets that an insertion or a removal moves: the move ends long before the next one is due */
#define MAP_AT_ONCE ((size_t)1024) /* buckets that are moved at the beginning */
#define MAP_KEEP  ((size_t)1024) /* buckets that are never freed, so that a count that varies by hundreds allocates nothing */

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v2 = rotate(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t m)
{
	s->v3 ^= m;
	sip_round(s);
	sip_round(s);
	s->v0 ^= m;
}

static inline struct sip sip_begin(const uint64_t key[2])
{
	return (struct sip){key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
}

static inline uint64_t sip_end(struct sip *s)
{
	s->v2 ^= 0xff;
	sip_round(s);
	sip_round(s);
	sip_round(s);
	sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline uint64_t sip_load(const unsigned char *at)
{
	uint64_t m;

	memcpy(&m, at, sizeof(m));
	return le64toh(m);
}

uint64_t siphash(const uint64_t key[2], const void *p, size_t n)
{
	struct sip s = sip_begin(key);
	uint64_t last = (uint64_t)n << 56;
	const unsigned char *at = p;
	size_t left, i;

	for (left = n; left >= 8; left -= 8, at += 8)
		sip_word(&s, sip_load(at));
	if (left && n >= 8)
		last |= sip_load(at + left - 8) >> (64 - 8 * left); /* includes bytes that are already hashed, which the shift drops */
	else
		for (i = 0; i < left; i++)
			last |= (uint64_t)at[i] << (8 * i);
	sip_word(&s, last);
	return sip_end(&s);
}

uint64_t siphash_word(const uint64_t key[2], uint64_t word)
{
	struct sip s = sip_begin(key);

	sip_word(&s, word);
	sip_word(&s, UINT64_C(8) << 56);
	return sip_end(&s);
}

static unsigned shift_of(size_t buckets)
{
	return 64 - (unsigned)__builtin_ctzll(buckets);
}

void map_init(struct map *m, const uint64_t key[2])
{
	*m = (struct map){.mask = MAP_FIRST - 1, .shift = shift_of(MAP_FIRST), .key = {key[0], key[1]}};
	m->bucket = mem_alloc(MAP_FIRST * sizeof(struct map_node *));
}

void map_release(struct map *m)
{
	mem_free(m->bucket);
	mem_free(m->old);
	*m = (struct map){0};
}

static void __attribute__((noinline)) map_move(struct map *m, size_t most)
{
	struct map_node *node, *next;

	for (; most > 0 && m->moved < m->old_n; m->moved++, most--) {
		for (node = m->old[m->moved]; node; node = next) {
			struct map_node **head = &m->bucket[node->hash >> m->shift];

			next = node->next;
			node->next = *head;
			*head = node;
		}
	}
	if (m->moved < m->old_n)
		return;
	mem_free(m->old);
	m->old = NULL;
}

static void map_resize(struct map *m, size_t buckets)
{
	if (m->old)
		map_move(m, m->old_n);
	m->old = m->bucket;
	m->old_shift = m->shift;
	m->old_n = m->mask + 1;
	m->moved = 0;
	m->bucket = mem_alloc(buckets * sizeof(struct map_node *));
	m->mask = buckets - 1;
	m->shift = shift_of(buckets);
	map_move(m, MAP_AT_ONCE);
}

void map_insert(struct map *m, struct map_node *node, uint64_t hash)
{
	struct map_node **head;

	if (m->old)
		map_move(m, MAP_MOVED);
	if (m->count > m->mask)
		map_resize(m, (m->mask + 1) * 2);
	head = map_bucket(m, hash);
	node->hash = hash;
	node->next = *head;
	*head = node;
	m->count++;
}

void map_remove(struct map *m, struct map_node *node)
{
	struct map_node **link = map_bucket(m, node->hash);

	while (*link && *link != node)
		link = &(*link)->next;
	assert(*link == node);
	*link = node->next;
	node->next = NULL;
	m->count--;
	if (m->old)
		map_move(m, MAP_MOVED);
	/* Shrinks to a quarter: the table is then half full, and the next growth is far away. */
	if (m->mask >= MAP_KEEP && m->count < (m->mask + 1) / 8)
		map_resize(m, (m->mask + 1) / 4 < MAP_KEEP ? MAP_KEEP : (m->mask + 1) / 4);
}

/* The first hash after those that map_bucket() finds in the same chain; 0: there is none. */
static uint64_t map_chain_end(const struct map *m, uint64_t hash)
{
	uint64_t end = ((hash >> m->shift) + 1) << m->shift, moved;

	if (!m->old)
		return end;
	if (hash >> m->old_shift >= m->moved)
		return ((hash >> m->old_shift) + 1) << m->old_shift;
	moved = (uint64_t)m->moved << m->old_shift; /* a bucket of the new table may include hashes on both sides of it */
	return end == 0 || end > moved ? moved : end;
}

struct map_node *map_next(const struct map *m, const struct map_node *after)
{
	uint64_t at = 0;

	if (after && after->next)
		return after->next;
	if (after && (at = map_chain_end(m, after->hash)) == 0)
		return NULL;
	do {
		if (*map_bucket(m, at))
			return *map_bucket(m, at);
		at = map_chain_end(m, at);
	} while (at != 0);
	return NULL;
}

bool map_walk(const struct map *m, struct map_walk *w, struct map_node **ret_chain)
{
	uint64_t i = w->next >> m->shift;

	if (w->over)
		return false;
	w->from = w->next;
	w->next = map_chain_end(m, w->from);
	w->over = w->next == 0;
	w->ahead = !m->old && i + MAP_AHEAD <= m->mask ? m->bucket[i + MAP_AHEAD] : NULL;
	*ret_chain = *map_bucket(m, w->from);
	return true;
}
