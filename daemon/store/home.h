/* SPDX-License-Identifier: BSD-2-Clause */
/* What the memory store keeps as the home of rate limits and queues: daemon/redis/lua/home.lua in C. */
#ifndef STORE_HOME_H
#define STORE_HOME_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"
#include "daemon/store/jobs.h"
#include "daemon/store/keyspace.h"
#include "daemon/store/ledger.h"

/* Rate limits: daemon/redis/lua/rate.lua in C. They end with the process. */
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

struct home {
	struct buf name; /* the name that the first daemon gave this store; "" = none yet */
	struct buf result; /* the text of the last answer */
	struct ledger ledger;
	struct rates rates;
	struct job_store jobs;
};

struct home *home_new(const uint64_t seed[2]);
void home_free(struct home *h);
/* A question to a store with this marker. The caller has already set the time of the answer. The answer is valid until the next question. */
void home_call(struct home *h, struct span marker, int64_t epoch_us, const struct call *c, struct instant now, struct answer *a);

#endif
