/* SPDX-License-Identifier: BSD-2-Clause */
/* Rate limits of the memory store: daemon/redis/lua/rate.lua in C. */
#ifndef STORE_RATE_H
#define STORE_RATE_H

#include "daemon/base/buf.h"
#include "daemon/core/event.h"
#include "daemon/store/keyspace.h"

struct ledger;

struct rates {
	struct keyspace keys; /* value: the head, then pairs, then the peer; "": it is full until the key is over */
	struct ledger *ledger;
	struct buf work;      /* the pairs of the last call */
};

void rates_init(struct rates *r, const uint64_t seed[2], struct keyfile *file, struct ledger *ledger); /* file NULL: they end with the process */
void rates_release(struct rates *r);
/* Operation r with these arguments. The text of the answer goes to `said`. False: they are not sound. */
bool rate_call(struct rates *r, int64_t epoch_us, const struct call *c, struct span arguments, struct instant now, struct buf *said, struct answer *a);

/*
 * A limit that another run left. value "": what it held is not known, so it is full until `until`, but no longer than the longest window there is. False: it is
 * over, not sound, or one is there that lasts as long.
 */
bool rate_put(struct rates *r, int64_t epoch_us, struct span name, struct span value, struct instant until, struct instant now);

#endif
