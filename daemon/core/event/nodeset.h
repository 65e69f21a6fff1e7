/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of stores, by their numbers. A value: pass and compare it as one. */
#ifndef CORE_NODESET_H
#define CORE_NODESET_H

#include "daemon/core/event/event.h"

struct nodeset {
	uint16_t bits;
};

_Static_assert(NODES_MAX <= 16, "a set has a bit for each store");

#define NODESET_NONE ((struct nodeset){0})

/* The stores 0 .. nodes-1. */
static inline struct nodeset nodeset_all(unsigned nodes)
{
	return (struct nodeset){(uint16_t)((1u << nodes) - 1)};
}

static inline struct nodeset nodeset_of(unsigned node)
{
	return (struct nodeset){(uint16_t)(1u << node)};
}

static inline bool nodeset_has(struct nodeset s, unsigned node)
{
	return s.bits >> node & 1;
}

static inline bool nodeset_any(struct nodeset s)
{
	return s.bits != 0;
}

/* Sets are small. The builtin is a function call unless the target processor is known to count bits. */
static inline unsigned nodeset_count(struct nodeset s)
{
	unsigned count = 0;

	for (unsigned rest = s.bits; rest; rest &= rest - 1)
		count++;
	return count;
}

static inline struct nodeset nodeset_or(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits | b.bits};
}

static inline struct nodeset nodeset_and(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits & b.bits};
}

static inline struct nodeset nodeset_without(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){(uint16_t)(a.bits & ~b.bits)};
}

static inline void nodeset_add(struct nodeset *s, unsigned node)
{
	*s = nodeset_or(*s, nodeset_of(node));
}

static inline void nodeset_remove(struct nodeset *s, unsigned node)
{
	*s = nodeset_without(*s, nodeset_of(node));
}

#endif
