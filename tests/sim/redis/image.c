/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks in a reserved range of addresses, of which only used pages take memory. A block that has not grown must never move. */
#include "tests/sim/redis/image.h"
#include "daemon/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define IMAGE_RESERVE ((size_t)256 * 1024 * 1024) /* more than any script needs */
#define IMAGE_GARBAGE ((size_t)384 * 1024) /* so much stays in the processor's cache */
#define IMAGE_ALIGN   ((size_t)16)

void image_init(struct image *m)
{
	*m = (struct image){.cap = IMAGE_RESERVE};
	m->base = mmap(NULL, m->cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->base == MAP_FAILED)
		mem_exhausted();
}

static size_t aligned(size_t n)
{
	return (n + IMAGE_ALIGN - 1) & ~(IMAGE_ALIGN - 1);
}

static void *block_new(struct image *m, size_t n)
{
	char *block = m->base + m->used;

	if (aligned(n) > m->cap - m->used)
		return NULL;
	m->used += aligned(n);
	return block;
}

void *image_alloc(void *context, void *block, size_t before, size_t after)
{
	struct image *m = context;
	char *at = block;
	void *moved;

	if (after == 0)
		return NULL;
	if (at && after <= before)
		return at;
	moved = block_new(m, after);
	if (moved && at)
		memcpy(moved, at, before);
	return moved;
}

void image_keep(struct image *m)
{
	m->kept = m->used;
	m->copy = mem_grow(m->copy, m->kept, 1);
	memcpy(m->copy, m->base, m->kept);
}

void image_reset(struct image *m)
{
	memcpy(m->base, m->copy, m->kept);
	m->used = m->kept;
}

bool image_is_full(const struct image *m)
{
	return m->used > m->kept + IMAGE_GARBAGE;
}
