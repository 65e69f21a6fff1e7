/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A 4-ary min-heap of embedded timers, ordered by (at, order of heap_set), so equal deadlines fire in the order in which
 * they were set. The heap never owns a timer. O(log n) set and cancel, O(1) first.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "daemon/base/instant.h"
#include <stddef.h>

struct timer {
	struct instant at;
	uint64_t order;
	uint32_t index; /* position + 1; 0 = not set */
	uint32_t kind;  /* chosen by the owner: what to do, and which struct embeds the timer */
};

struct heap {
	struct timer **slot;
	size_t count, cap;
	uint64_t order;
};

void heap_init(struct heap *h);
void heap_release(struct heap *h);
/* Sets or moves the timer. INSTANT_NEVER cancels it. */
void heap_set(struct heap *h, struct timer *t, struct instant at);
void heap_take_out(struct heap *h, struct timer *t); /* t must be set */

/* NULL when empty */
static inline struct timer *heap_first(const struct heap *h)
{
	return h->count ? h->slot[0] : NULL;
}

static inline bool timer_is_set(const struct timer *t)
{
	return t->index != 0;
}

/* No effect on a timer that is not set. */
static inline void heap_cancel(struct heap *h, struct timer *t)
{
	if (timer_is_set(t))
		heap_take_out(h, t);
}

#endif
