/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those whose clients limits count together, a user of a host or an address, and how much they have of what all share: none takes it from the others. Data
 * alone.
 */
#ifndef CORE_ORIGIN_H
#define CORE_ORIGIN_H

#include "daemon/base/map.h"
#include "proto/span.h"

#include <sys/queue.h>

#define NAME_BYTES 200 /* bytes that a name takes at a store besides its own */

TAILQ_HEAD(vacants, session);

struct origin {
	struct map_node by_name;
	struct origins *all;
	uint64_t names;        /* bytes that names take at a store: see lock_charge() */
	size_t ahead;          /* bytes that its sessions have read ahead */
	unsigned queues;       /* for whose jobs they wait: see job_queue_count_for() */
	unsigned sessions;
	unsigned detached;     /* those of them that have no connection */
	struct vacants vacant; /* of these the ones without a claim, in the order in which they lost their connections or their last claims */
	size_t n;
	char name[];           /* as session_origin() writes it */
};

struct origins {
	struct map by_name;
	uint64_t names; /* bytes, of all */
};

void origins_init(struct origins *t, const uint64_t key[2]);
void origins_release(struct origins *t); /* nothing refers to any */

/* That of one more session. */
struct origin *origin_join(struct origins *t, struct span name);
/* One more session of it. NULL: it is not known. */
void origin_refer(struct origin *o);
void origin_leave(struct origin *o);
/* Frees it if it has nothing. */
void origin_drop_if_unused(struct origin *o);

/* A number for it; never 0. */
static inline uint64_t origin_id(const struct origin *o)
{
	return o ? o->by_name.hash | 1 : 1;
}

#endif
