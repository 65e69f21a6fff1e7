/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of slots, and a bitmap to find the lowest free one. A session number recurs only after 2^32 - 1 uses of its slot. */
#include "daemon/net/slots.h"
#include "daemon/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	struct conn *conn;
	uint32_t generation;
};

#define SLOTS_FIRST ((size_t)64)
#define SLOTS_MOST  ((size_t)1 << 24)

void slots_init(struct slots *s, uint32_t first, uint32_t reserved)
{
	assert(reserved % 64 == 0);
	*s = (struct slots){.first = first, .reserved = reserved, .lowest = reserved};
}

void slots_release(struct slots *s)
{
	free(s->slot);
	free(s->used);
	slots_init(s, s->first, s->reserved);
}

static void slots_grow(struct slots *s)
{
	size_t cap = s->cap ? s->cap * 2 : SLOTS_FIRST;

	s->slot = mem_grow(s->slot, cap, sizeof(*s->slot));
	memset(s->slot + s->cap, 0, (cap - s->cap) * sizeof(*s->slot));
	s->used = mem_grow(s->used, cap / 64, sizeof(*s->used));
	memset(s->used + s->cap / 64, 0, (cap - s->cap) / 64 * sizeof(*s->used));
	s->cap = cap;
}

static size_t slots_lowest_free(struct slots *s)
{
	size_t word;

	while (s->cap <= s->reserved)
		slots_grow(s);
	for (word = s->lowest / 64; word < s->cap / 64; word++)
		if (~s->used[word])
			return word * 64 + (size_t)__builtin_ctzll(~s->used[word]);
	word = s->cap;
	slots_grow(s);
	return word;
}

uint64_t slots_take(struct slots *s, struct conn *conn)
{
	size_t i = slots_lowest_free(s);
	struct slot *slot = &s->slot[i];

	s->used[i / 64] |= UINT64_C(1) << i % 64;
	s->lowest = i + 1;
	s->live++;
	slot->conn = conn;
	if (++slot->generation == 0)
		slot->generation = 1;
	return (uint64_t)slot->generation << 32 | (s->first + i);
}

static struct slot *slots_at(const struct slots *s, uint64_t session)
{
	uint32_t i = (uint32_t)session - s->first; /* below the first: beyond cap */

	if (i >= s->cap || !s->slot[i].conn || s->slot[i].generation != session >> 32)
		return NULL;
	return &s->slot[i];
}

struct conn *slots_find(const struct slots *s, uint64_t session)
{
	const struct slot *slot = slots_at(s, session);

	return slot ? slot->conn : NULL;
}

void slots_give(struct slots *s, uint64_t session)
{
	struct slot *slot = slots_at(s, session);
	size_t i;

	assert(slot);
	i = (size_t)(slot - s->slot);
	slot->conn = NULL;
	s->used[i / 64] &= ~(UINT64_C(1) << i % 64);
	s->live--;
	if (i < s->lowest && i >= s->reserved)
		s->lowest = i;
}

bool slots_has(const struct slots *s, uint32_t slot)
{
	uint32_t i = slot - s->first;

	return i < s->cap && s->slot[i].conn;
}

bool slots_put(struct slots *s, uint64_t session, struct conn *conn)
{
	size_t i = (uint32_t)session - s->first;

	if (i >= SLOTS_MOST || session >> 32 == 0)
		return false;
	while (i >= s->cap)
		slots_grow(s);
	if (s->slot[i].conn)
		return false;
	s->slot[i] = (struct slot){conn, (uint32_t)(session >> 32)};
	s->used[i / 64] |= UINT64_C(1) << i % 64;
	s->live++;
	return true;
}

struct conn *slots_next(const struct slots *s, size_t *at)
{
	while (*at < s->cap) {
		size_t i = (*at)++;

		if (s->slot[i].conn)
			return s->slot[i].conn;
	}
	return NULL;
}

struct conn *slots_any(const struct slots *s)
{
	size_t word;

	for (word = 0; word < s->cap / 64; word++)
		if (s->used[word])
			return s->slot[word * 64 + (size_t)__builtin_ctzll(s->used[word])].conn;
	return NULL;
}
