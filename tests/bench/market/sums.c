/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/market/sums.h"

#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sums {
	char **item; /* wherever it was found */
	size_t count, room;
	bool hold;
};

static void held(struct sums *s, const char *what, int64_t found, int64_t expected)
{
	if (found == expected)
		return;
	warnx("%s: %lld, and should be %lld", what, (long long)found, (long long)expected);
	s->hold = false;
}

static int64_t money_of(struct actor *a)
{
	redisReply *r = shop_ask(&a->shop, "GET money:%s", a->shop.actor);
	int64_t money = r->type == REDIS_REPLY_STRING ? atoll(r->str) : 0;

	freeReplyObject(r);
	return money;
}

/* Collects the items of this reply, frees it, and returns how many they were. */
static size_t items_found(struct sums *s, redisReply *r)
{
	size_t n = r->elements;

	if (s->count + n > s->room) {
		s->room = (s->count + n) * 2;
		s->item = reallocarray(s->item, s->room, sizeof(*s->item));
		if (!s->item)
			errx(1, "out of memory");
	}
	for (size_t i = 0; i < n; i++) {
		s->item[s->count] = strdup(r->element[i]->str);
		if (!s->item[s->count++])
			errx(1, "out of memory");
	}
	freeReplyObject(r);
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t items_distinct(struct sums *s)
{
	size_t distinct = 0;

	if (s->count)
		qsort(s->item, s->count, sizeof(*s->item), by_name);
	for (size_t i = 0; i < s->count; i++)
		distinct += i == 0 || strcmp(s->item[i], s->item[i - 1]) != 0;
	return distinct;
}

static void money_adds_up(struct sums *s, struct actor *actors, unsigned count)
{
	int64_t money = 0;

	for (unsigned i = 0; i < count; i++) {
		struct actor *a = &actors[i];
		int64_t own = money_of(a);
		char what[64];

		snprintf(what, sizeof(what), "money of buyer %s", a->shop.actor);
		if (!a->sells)
			held(s, what, own, MARKET_PURSE - a->paid);
		money += own;
	}
	held(s, "money in all", money, (int64_t)count * MARKET_PURSE);
}

static void goods_add_up(struct sums *s, struct actor *actors, unsigned count)
{
	uint64_t made = 0, listed = 0, bought = 0;
	size_t offered = items_found(s, shop_ask(&actors[0].shop, "ZRANGE market 0 -1"));

	for (unsigned i = 0; i < count; i++) {
		struct actor *a = &actors[i];
		size_t own = items_found(s, shop_ask(&a->shop, "SMEMBERS goods:%s", a->shop.actor));
		char what[64];

		snprintf(what, sizeof(what), "goods of %s", a->shop.actor);
		held(s, what, (int64_t)own, (int64_t)(a->sells ? a->made - a->listed : a->bought));
		made += a->made;
		listed += a->listed;
		bought += a->bought;
	}
	held(s, "offers on the market", (int64_t)offered, (int64_t)(listed - bought));
	held(s, "goods in all", (int64_t)s->count, (int64_t)made);
	held(s, "different goods", (int64_t)items_distinct(s), (int64_t)made);
}

bool sums_hold(struct actor *actors, unsigned count)
{
	struct sums s = {.hold = true};

	money_adds_up(&s, actors, count);
	goods_add_up(&s, actors, count);
	for (size_t i = 0; i < s.count; i++)
		free(s.item[i]);
	free(s.item);
	return s.hold;
}
