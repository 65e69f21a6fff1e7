/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes the names take at a store that this daemon has left taken: by UNLOCK keep=, with a lock-delay, or since the client of a permit went unsurely.
 * Each is a key there that no session has any more. Data alone. A name counts for up to a quarter, or two seconds, longer than it is left.
 */
#ifndef CORE_KEPT_NAMES_H
#define CORE_KEPT_NAMES_H

#include "daemon/base/instant.h"
#include "daemon/core/event/origin.h"

#include <stddef.h>

#define KEPT_RINGS  5   /* of steps of 1 s, 16 s, 4 min, 68 min, 18 h */
#define KEPT_STEPS  66  /* 64, and those in which a time begins and ends */
#define KEPT_GROUPS 16  /* of peers, by their hash */

struct kept_ring {
	int64_t step; /* of the last look */
	uint64_t total;
	uint32_t ends[KEPT_STEPS]; /* bytes that end in steps that are not over, at their number modulo KEPT_STEPS */
};

struct kept_bytes {
	struct kept_ring ring[KEPT_RINGS];
};

struct kept_names {
	struct kept_bytes all, of_group[KEPT_GROUPS];
};

static inline struct kept_bytes *kept_of_peer(struct kept_names *k, const struct origin *o)
{
	return &k->of_group[origin_id(o) / 2 % KEPT_GROUPS];
}

/* A name of n bytes is left, which counted for that peer. */
void kept_names_add(struct kept_names *k, const struct origin *o, struct instant now, int64_t us, size_t n);

/* How many there are now. */
uint64_t kept_bytes_count(struct kept_bytes *k, struct instant now);

#endif
