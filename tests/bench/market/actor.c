/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/market/actor.h"

#include <err.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EMPTY_US 500 /* a buyer that finds the market empty looks again after that */
#define PRICE_MAX 100

static atomic_bool closing;

/* The change that the actor is about to make concerns this item: nobody else makes one until guard_give(). */
static void actor_locks(struct actor *a, const struct offer *o, const char *key)
{
	char name[ITEM_SIZE + 16];

	snprintf(name, sizeof(name), a->market->item_locks ? "market/%s" : "market", o->item);
	guard_take(&a->guard, name, key);
}

/* --- selling ----------------------------------------------------------------------------------------------------- */

static void seller_lists(struct actor *a)
{
	struct offer o = {.price = 1 + rand_r(&a->guard.seed) % PRICE_MAX};
	char own[32];
	bool tried, done = false;

	if (a->listed == a->made) {
		shop_stock(&a->shop, a->made);
		a->made += MARKET_STOCK;
	}
	snprintf(o.item, sizeof(o.item), "%s.%llu", a->shop.actor, (unsigned long long)a->listed);
	snprintf(own, sizeof(own), "goods:%s", a->shop.actor);
	actor_locks(a, &o, own);
	tried = shop_has(&a->shop, o.item) && guard_holds(&a->guard);
	if (tried)
		done = shop_list(&a->shop, &o);
	guard_give(&a->guard, tried);
	a->listed += done;
}

/* --- buying ------------------------------------------------------------------------------------------------------ */

/* Returns false when somebody else was faster. */
static bool buyer_buys(struct actor *a, const struct offer *o)
{
	bool tried, done = false;

	actor_locks(a, o, "market");
	tried = shop_sells(&a->shop, o) && guard_holds(&a->guard);
	if (tried)
		done = shop_buy(&a->shop, o);
	guard_give(&a->guard, tried);
	return done;
}

/* An empty market is nobody's fault: the wait begins when there is something to buy. */
static void buyer_shops(struct actor *a)
{
	int64_t begun_us = redlock_now_us();
	struct offer o;

	while (!closing) {
		if (!shop_browse(&a->shop, &o)) {
			nanosleep(&(struct timespec){0, EMPTY_US * 1000}, NULL);
			begun_us = redlock_now_us();
		} else if (buyer_buys(a, &o)) {
			a->bought++;
			a->paid += o.price;
			a->wait_us += redlock_now_us() - begun_us;
			return;
		} else {
			a->retries++;
		}
	}
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

static void *actor_runs(void *arg)
{
	struct actor *a = arg;

	while (!closing)
		if (a->sells)
			seller_lists(a);
		else
			buyer_shops(a);
	return NULL;
}

void actor_open(struct actor *a, const struct market *m, bool sells, unsigned i)
{
	char name[16];

	*a = (struct actor){.market = m, .sells = sells};
	snprintf(name, sizeof(name), "%c%u", sells ? 's' : 'b', i);
	shop_open(&a->shop, m->redis, name);
	if (!guard_open(&a->guard, m->way, &a->shop, m->redlockd))
		errx(2, "way=%s: it is watch, redlockd, direct or none", m->way);
	freeReplyObject(shop_ask(&a->shop, "SET money:%s %d", name, MARKET_PURSE));
}

void actors_start(struct actor *a, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&a[i].thread, NULL, actor_runs, &a[i]))
			errx(1, "cannot start a thread");
}

void actors_stop(struct actor *a, unsigned count)
{
	closing = true;
	for (unsigned i = 0; i < count; i++)
		pthread_join(a[i].thread, NULL);
}

void actor_close(struct actor *a)
{
	guard_close(&a->guard);
	shop_close(&a->shop);
}
