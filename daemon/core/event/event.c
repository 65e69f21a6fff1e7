/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/event/event.h"

#include "daemon/base/mem.h"

#include <string.h>

/* The list of effects: grows, never shrinks, and owns whatever its items point to. */

void effects_init(struct effects *e)
{
	memset(e, 0, sizeof(*e));
	arena_init(&e->arena);
}

void effects_release(struct effects *e)
{
	arena_release(&e->arena);
	mem_free(e->item);
	memset(e, 0, sizeof(*e));
}

void effects_reset(struct effects *e)
{
	e->count = 0;
	arena_reset(&e->arena);
}

void effects_grow(struct effects *e)
{
	e->cap = e->cap ? 2 * e->cap : 64;
	e->item = mem_grow(e->item, e->cap, sizeof(*e->item));
}
