/* SPDX-License-Identifier: BSD-2-Clause */
/* Slabs cut into objects of one size. Objects are cleared by pool_get. */
#include "daemon/base/pool.h"

#include "daemon/base/mem.h"

#include <assert.h>

#define POOL_SLAB  ((size_t)16 * 1024)
#define POOL_ALIGN ((size_t)16)

struct pool_slab {
	struct pool_slab *next;
	size_t size;
	char bytes[] __attribute__((aligned(16)));
};

void pool_init(struct pool *p, size_t size)
{
	assert(size > 0);
	*p = (struct pool){.size = (size + POOL_ALIGN - 1) & ~(POOL_ALIGN - 1)};
}

void pool_release(struct pool *p)
{
	struct pool_slab *slab, *next;

	assert(p->live == 0);
	for (slab = p->slabs; slab; slab = next) {
		next = slab->next;
		memory_unpoison(slab->bytes, slab->size);
		mem_free(slab);
	}
	*p = (struct pool){.size = p->size};
}

void pool_grow(struct pool *p)
{
	size_t n = POOL_SLAB / p->size > 4 ? POOL_SLAB / p->size : 4;
	struct pool_slab *slab = mem_grow(NULL, sizeof(*slab) + n * p->size, 1);

	slab->size = n * p->size;
	slab->next = p->slabs;
	p->slabs = slab;
	pool_add(p, slab->bytes, slab->size);
}

void pool_add(struct pool *p, void *memory, size_t bytes)
{
	size_t n = bytes / p->size;

	/* Links backwards, so that objects are handed out in the order of their addresses. */
	while (n--)
		pool_link(p, (char *)memory + n * p->size);
}
