/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pool keeps objects of one size on a free list, so that a steady load allocates nothing. Objects come zero-filled.
 * Only pool_release frees slabs; it asserts that no object is live. Not thread-safe.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

struct pool_slab;

struct pool {
	size_t size; /* of an object, bytes */
	size_t live;
	void *free;
	struct pool_slab *slabs;
};

void pool_init(struct pool *p, size_t size);
void pool_release(struct pool *p);
void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *object);

#endif
