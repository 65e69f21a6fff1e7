/* SPDX-License-Identifier: BSD-2-Clause */
/* Rate limits of the memory store: daemon/redis/lua/rate.lua in C. They end with the process. */
#ifndef STORE_RATE_H
#define STORE_RATE_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"
#include "daemon/store/keyspace.h"

struct ledger;

struct rates {
	struct keyspace keys; /* value: the head, then pairs, then the peer */
	struct ledger *ledger;
	struct buf work;      /* the pairs of the last call */
};

void rates_init(struct rates *r, const uint64_t seed[2], struct ledger *ledger);
void rates_release(struct rates *r);
void rates_sweep(struct rates *r, struct instant now); /* removes some of those that are over */
/* Operation r with these arguments. The text of the answer goes to `result`. False: they are malformed. */
bool rate_call(struct rates *r, int64_t epoch_us, const struct call *c, struct span arguments, struct instant now, struct buf *result, struct answer *a);

#endif
