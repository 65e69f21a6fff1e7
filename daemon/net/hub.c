/* SPDX-License-Identifier: BSD-2-Clause */
/* See hub.h. */
#include "daemon/net/hub.h"

#include "daemon/base/mem.h"

#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>

#define SPARE_SIZE ((size_t)16 * 1024)  /* bytes; a larger spare buffer frees its memory … */
#define LARGE      ((size_t)128 * 1024) /* … and one larger than this does so in portions */
#define PORTION    ((size_t)256 * 1024)
#define WASTE_MOST ((size_t)32 * 1024 * 1024) /* more than that is freed at once: it comes faster than portions can free it */
#define PASSES     256 /* … or this fraction of what is to be freed, if that is more: so it is freed faster than it grows */

struct buf *hub_buf_get(struct hub *h)
{
	if (h->spares)
		return h->spare[--h->spares];
	return mem_alloc(sizeof(struct buf));
}

static void hub_waste(struct hub *h, struct buf *b)
{
	if (h->wastes == h->waste_cap) {
		h->waste_cap = h->waste_cap ? 2 * h->waste_cap : 16;
		h->waste = mem_grow(h->waste, h->waste_cap, sizeof(*h->waste));
	}
	h->waste[h->wastes++] = *b;
	h->wasted += b->cap;
	buf_init(b);
}

static size_t waste_shrink(struct hub *h, size_t n)
{
	struct buf *last = &h->waste[h->wastes - 1];
	size_t before = last->cap;

	buf_shrink(last, n);
	h->wastes -= last->cap == 0;
	h->wasted -= before - last->cap;
	return before - last->cap;
}

void hub_give_back(struct hub *h)
{
	size_t n = h->wasted / PASSES > PORTION ? h->wasted / PASSES : PORTION;

	while (h->wastes > 0 && n > 0)
		n -= waste_shrink(h, n);
	if (h->wastes > 0)
		event_active(h->run_turns, EV_TIMEOUT, 1); /* the next pass comes at once */
}

void hub_buf_put(struct hub *h, struct buf *b)
{
	if (!b)
		return;
	buf_clear(b);
	if (b->cap > LARGE && h->wasted <= WASTE_MOST)
		hub_waste(h, b);
	buf_trim(b, SPARE_SIZE);
	if (h->spares < HUB_SPARES) {
		h->spare[h->spares++] = b;
		return;
	}
	buf_release(b);
	free(b);
}

void hub_buf_release(struct hub *h)
{
	while (h->spares) {
		struct buf *b = h->spare[--h->spares];

		buf_release(b);
		free(b);
	}
	while (h->wastes > 0)
		waste_shrink(h, SIZE_MAX);
	free(h->waste);
}
