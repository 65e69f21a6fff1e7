/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pool keeps objects of one size on a free list, so that a steady load allocates nothing. Objects come zero-filled.
 * Only pool_release frees slabs; it asserts that no object is live. Not thread-safe.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "daemon/base/poison.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct pool_slab;

struct pool {
	size_t size; /* of an object, bytes */
	size_t live;
	void *free;
	struct pool_slab *slabs;
};

void pool_init(struct pool *p, size_t size);
void pool_release(struct pool *p);
void pool_grow(struct pool *p); /* the slow path of pool_get */
void pool_add(struct pool *p, void *memory, size_t bytes); /* cuts memory that the caller owns into objects; aligned to 16 bytes */

/* The first word of a free object links the free list. */
static inline void pool_link(struct pool *p, void *object)
{
	*(void **)object = p->free;
	p->free = object;
	memory_poison(object, p->size);
}

static inline void *pool_get(struct pool *p)
{
	void *object;

	if (!p->free)
		pool_grow(p);
	object = p->free;
	memory_unpoison(object, p->size);
	p->free = *(void **)object;
	p->live++;
	return memset(object, 0, p->size);
}

static inline void pool_put(struct pool *p, void *object)
{
	if (!object)
		return;
	assert(p->live > 0);
	p->live--;
	pool_link(p, object);
}

#endif
