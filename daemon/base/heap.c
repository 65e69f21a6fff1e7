/* SPDX-License-Identifier: BSD-2-Clause */
/* A 4-ary heap: half the depth of a binary one, and the four children of a slot lie in one or two cache lines. */
#include "daemon/base/heap.h"
#include "daemon/base/mem.h"

#include <assert.h>

#define HEAP_FIRST ((size_t)64)

void heap_init(struct heap *h)
{
	*h = (struct heap){0};
}

void heap_release(struct heap *h)
{
	mem_free(h->slot);
	heap_init(h);
}

/* (at, order) as one number: one comparison orders two timers, without a branch that a processor could mispredict. */
static inline __int128 timer_key(const struct timer *t)
{
	return (__int128)((unsigned __int128)t->at.us << 64 | t->order);
}

static inline bool timer_before(const struct timer *a, const struct timer *b)
{
	return timer_key(a) < timer_key(b);
}

static inline void heap_place(struct heap *h, size_t i, struct timer *t)
{
	h->slot[i] = t;
	t->index = (uint32_t)i + 1;
}

static inline size_t heap_rise(struct heap *h, size_t i, const struct timer *t)
{
	while (i) {
		size_t parent = (i - 1) / 4;

		if (!timer_before(t, h->slot[parent]))
			break;
		heap_place(h, i, h->slot[parent]);
		i = parent;
	}
	return i;
}

/*
 * Slot i is free: fills it with the first of its children, then the slot of that child, and so on. Returns the slot at the bottom that is free now. The key of
 * the best child is kept. If it were read again through its pointer, each child's load would wait for the choice between the earlier ones.
 */
static size_t heap_sink(struct heap *h, size_t i)
{
	size_t child, best, end;
	__int128 first, key;

	while ((child = 4 * i + 1) < h->count) {
		end = child + 4 < h->count ? child + 4 : h->count;
		best = child;
		first = timer_key(h->slot[best]);
		while (++child < end) {
			key = timer_key(h->slot[child]);
			if (key < first) {
				first = key;
				best = child;
			}
		}
		heap_place(h, i, h->slot[best]);
		i = best;
	}
	return i;
}

/* Slot i is free: puts t there, or further up or down. Most timers here belong near the bottom, so none is compared with t on the way down. */
static void heap_settle(struct heap *h, size_t i, struct timer *t)
{
	heap_place(h, heap_rise(h, heap_sink(h, i), t), t);
}

static void heap_grow(struct heap *h)
{
	size_t cap = h->cap ? 2 * h->cap : HEAP_FIRST;

	assert(cap < UINT32_MAX);
	h->slot = mem_grow(h->slot, cap, sizeof(*h->slot));
	h->cap = cap;
}

void heap_set(struct heap *h, struct timer *t, struct instant at)
{
	if (at.us == INSTANT_NEVER.us) {
		heap_cancel(h, t);
		return;
	}
	t->at = at;
	t->order = ++h->order;
	if (t->index) {
		heap_settle(h, t->index - 1, t);
		return;
	}
	if (h->count == h->cap)
		heap_grow(h);
	h->count++;
	heap_place(h, heap_rise(h, h->count - 1, t), t);
}

void heap_take_out(struct heap *h, struct timer *t)
{
	size_t i = t->index;
	struct timer *last;

	assert(i <= h->count && h->slot[i - 1] == t);
	t->index = 0;
	last = h->slot[--h->count];
	if (last != t)
		heap_settle(h, i - 1, last);
}
