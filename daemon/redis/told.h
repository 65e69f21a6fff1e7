/* SPDX-License-Identifier: BSD-2-Clause */
/* The reasons that the owner of a node was told since it was last up: each once, and at most TOLD_MAX of them, so a server cannot flood the log. Pure. */
#ifndef REDIS_TOLD_H
#define REDIS_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#define TOLD_MAX 8

struct told {
	uint64_t hash[TOLD_MAX];
	unsigned count;
};

/* Whether the reason is new, and there is room for it. It is noted then. */
bool told_is_new(struct told *t, const char *reason);

#endif
