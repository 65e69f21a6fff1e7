/* SPDX-License-Identifier: BSD-2-Clause */
/* What the memory store keeps as the home of rate limits and queues: daemon/redis/lua/home.lua in C. */
#ifndef STORE_HOME_H
#define STORE_HOME_H

#include "daemon/store/jobs.h"
#include "daemon/store/ledger.h"
#include "daemon/store/rate.h"

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
