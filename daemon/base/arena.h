/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An arena hands out memory that never moves and is freed all at once by arena_reset or arena_release. Chunks are kept over
 * arena_reset, so a steady load allocates nothing. Not thread-safe.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "daemon/base/poison.h"

#include <assert.h>
#include <stddef.h>

#define ARENA_ALIGN ((size_t)16)

struct arena_chunk;

struct arena {
	struct arena_chunk *first, *current;
	char *at, *end; /* the free part of the current chunk; aligned */
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
void arena_reset(struct arena *a); /* keeps up to 256 KiB of chunks */

void arena_advance(struct arena *a, size_t n); /* the slow path of arena_reserve */

/* Returns at least n contiguous bytes, aligned to 16. They are scratch memory. arena_commit takes the part that was used. */
static inline char *arena_reserve(struct arena *a, size_t n)
{
	if ((size_t)(a->end - a->at) <= n) /* one byte more than is needed, so that an arena without a chunk has no room for 0 bytes */
		arena_advance(a, n);
	memory_unpoison(a->at, n);
	return a->at;
}

static inline void arena_commit(struct arena *a, size_t used)
{
	assert(used <= (size_t)(a->end - a->at));
	a->at += (used + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
	memory_poison(a->at, (size_t)(a->end - a->at));
}

/* reserve + commit, zero-filled. */
void *arena_alloc(struct arena *a, size_t n);
/* A copy of n bytes, followed by a NUL. */
char *arena_copy(struct arena *a, const void *p, size_t n);

#endif
