/* SPDX-License-Identifier: BSD-2-Clause */
/* The claims that hold a lock together with others, or those that have lost one, by lock, session and owner: one of thousands is found at once. Data alone. */
#ifndef CORE_READERS_H
#define CORE_READERS_H

#include "daemon/base/map.h"
#include "daemon/base/pool.h"
#include "daemon/core/lock/claim.h"

struct readers {
	struct map map;
	struct pool pool;
};

void readers_init(struct readers *r, const uint64_t key[2]);
void readers_release(struct readers *r);

void readers_add(struct readers *r, struct claim *c);
void readers_remove(struct readers *r, const struct claim *c);
struct claim *readers_find(const struct readers *r, const struct lock *l, const struct session *session, struct span owner); /* NULL: there is none */

#endif
