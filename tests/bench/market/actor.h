/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sellers make items and list them, buyers take an offer by chance and buy it: each is a thread with connections of its own, from actors_start() on until
 * actors_stop().
 */
#ifndef MARKET_ACTOR_H
#define MARKET_ACTOR_H

#include "tests/bench/market/guard.h"

#include <pthread.h>

struct market {
	const char *redis, *redlockd; /* paths of sockets */
	const char *way;              /* of guard.h */
	bool item_locks;              /* a lock for each item, not one for the market */
	unsigned sellers, buyers;
};

struct actor {
	const struct market *market;
	bool sells;
	struct shop shop;
	struct guard guard;
	pthread_t thread;
	/* What this actor did, to be read when the thread has ended. */
	uint64_t made, listed, bought;
	uint64_t retries; /* purchases that had to be begun anew: somebody else was faster */
	int64_t paid;
	int64_t wait_us; /* in all, from the first try of a purchase until it was done */
};

/* Seller or buyer number i is called s0 … or b0 … */
void actor_open(struct actor *a, const struct market *m, bool sells, unsigned i);
void actors_start(struct actor *a, unsigned count);
void actors_stop(struct actor *a, unsigned count);
void actor_close(struct actor *a);

#endif
