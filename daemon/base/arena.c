/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of chunks, filled one after the other. Chunks after the current one are empty and are filled later.
 * Memory that was handed out never moves. A reset keeps chunks of ARENA_KEEP bytes in total, so the memory of one burst is freed.
 */
#include "daemon/base/arena.h"
#include "daemon/base/mem.h"

#include <string.h>

#define ARENA_CHUNK ((size_t)16 * 1024)
#define ARENA_KEEP  ((size_t)256 * 1024)

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	char bytes[] __attribute__((aligned(16)));
};

static size_t align_up(size_t n)
{
	return (n + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
}

void arena_init(struct arena *a)
{
	*a = (struct arena){0};
}

static void chunk_free(struct arena_chunk *c)
{
	memory_unpoison(c->bytes, c->size);
	mem_free(c);
}

void arena_release(struct arena *a)
{
	struct arena_chunk *c, *next;

	for (c = a->first; c; c = next) {
		next = c->next;
		chunk_free(c);
	}
	arena_init(a);
}

/* The chunk is empty, and what is reserved next comes from it. NULL: there is none. */
static void arena_fill(struct arena *a, struct arena_chunk *c)
{
	a->current = c;
	a->at = c ? c->bytes : NULL;
	a->end = c ? c->bytes + c->size : NULL;
}

void arena_reset(struct arena *a)
{
	struct arena_chunk **link = &a->first, *c;
	size_t kept = 0;

	while ((c = *link)) {
		if (kept + c->size > ARENA_KEEP) {
			*link = c->next;
			chunk_free(c);
			continue;
		}
		kept += c->size;
		memory_poison(c->bytes, c->size);
		link = &c->next;
	}
	arena_fill(a, a->first);
}

/* Makes the next chunk the current one if it has n bytes, else inserts a new chunk before it. */
void arena_advance(struct arena *a, size_t n)
{
	struct arena_chunk **link = a->current ? &a->current->next : &a->first;
	struct arena_chunk *c = *link;

	if (!c || c->size < n) {
		size_t size = n > ARENA_CHUNK ? align_up(n) : ARENA_CHUNK;

		c = mem_grow(NULL, sizeof(*c) + size, 1);
		c->size = size;
		c->next = *link;
		*link = c;
		memory_poison(c->bytes, size);
	}
	arena_fill(a, c);
}

void *arena_alloc(struct arena *a, size_t n)
{
	char *p = arena_reserve(a, n);

	memset(p, 0, n);
	arena_commit(a, n);
	return p;
}

char *arena_copy(struct arena *a, const void *p, size_t n)
{
	char *copy = arena_reserve(a, n + 1);

	if (n)
		memcpy(copy, p, n);
	copy[n] = '\0';
	arena_commit(a, n + 1);
	return copy;
}
