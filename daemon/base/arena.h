/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An arena hands out memory that never moves and is freed all at once by arena_reset or arena_release. Chunks are kept over
 * arena_reset, so a steady load allocates nothing. Not thread-safe.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *first, *current;
	size_t used; /* bytes of the current chunk */
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
void arena_reset(struct arena *a); /* keeps up to 256 KiB of chunks */

/* Returns at least n contiguous bytes, aligned to 16. They are scratch until arena_commit tells how many of them were used. */
char *arena_reserve(struct arena *a, size_t n);
void arena_commit(struct arena *a, size_t used);

/* reserve + commit, zero-filled. */
void *arena_alloc(struct arena *a, size_t n);
/* A copy of n bytes, followed by a NUL. */
char *arena_copy(struct arena *a, const void *p, size_t n);

#endif
