/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/market/shop.h"

#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shop_open(struct shop *s, const char *path, const char *actor)
{
	memset(s, 0, sizeof(*s));
	snprintf(s->actor, sizeof(s->actor), "%s", actor);
	s->redis = redisConnectUnix(path);
	if (!s->redis || s->redis->err)
		errx(1, "%s: %s", path, s->redis ? s->redis->errstr : "out of memory");
}

static redisReply *reply_next(struct shop *s)
{
	void *reply;

	if (redisGetReply(s->redis, &reply) != REDIS_OK)
		errx(1, "%s: Redis: %s", s->actor, s->redis->errstr);
	return reply;
}

static redisReply *reply_checked(struct shop *s)
{
	redisReply *r = reply_next(s);

	if (r->type == REDIS_REPLY_ERROR)
		errx(1, "%s: Redis: %s", s->actor, r->str);
	return r;
}

/* The reply of the command that was appended last. */
static redisReply *reply_last(struct shop *s)
{
	for (; s->unread; s->unread--)
		freeReplyObject(reply_checked(s));
	return reply_checked(s);
}

void shop_close(struct shop *s)
{
	freeReplyObject(shop_ask(s, "PING"));
	redisFree(s->redis);
}

void shop_append(struct shop *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	redisvAppendCommand(s->redis, format, args);
	va_end(args);
	s->unread++;
}

void shop_send(struct shop *s, const char *format, ...)
{
	va_list args;
	int done = 0;

	va_start(args, format);
	redisvAppendCommand(s->redis, format, args);
	va_end(args);
	s->unread++;
	while (!done)
		if (redisBufferWrite(s->redis, &done) != REDIS_OK)
			errx(1, "%s: Redis: %s", s->actor, s->redis->errstr);
}

redisReply *shop_ask(struct shop *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	redisvAppendCommand(s->redis, format, args);
	va_end(args);
	return reply_last(s);
}

void shop_stock(struct shop *s, uint64_t first)
{
	for (uint64_t i = first; i < first + MARKET_STOCK; i++)
		shop_append(s, "SADD goods:%s %s.%llu", s->actor, s->actor, (unsigned long long)i);
	freeReplyObject(shop_ask(s, "PING"));
}

bool shop_browse(struct shop *s, struct offer *ret)
{
	redisReply *r = shop_ask(s, "ZRANDMEMBER market 1 WITHSCORES");
	bool found = r->type == REDIS_REPLY_ARRAY && r->elements == 2;

	if (found) {
		snprintf(ret->item, sizeof(ret->item), "%s", r->element[0]->str);
		ret->price = atoll(r->element[1]->str);
	}
	freeReplyObject(r);
	return found;
}

bool shop_has(struct shop *s, const char *item)
{
	redisReply *r = shop_ask(s, "SISMEMBER goods:%s %s", s->actor, item);
	bool has = r->integer == 1;

	freeReplyObject(r);
	return has;
}

bool shop_sells(struct shop *s, const struct offer *o)
{
	redisReply *price, *money;
	bool stands;

	redisAppendCommand(s->redis, "ZSCORE market %s", o->item);
	redisAppendCommand(s->redis, "GET money:%s", s->actor);
	price = reply_last(s);
	money = reply_checked(s);
	stands = price->type == REDIS_REPLY_STRING && atoll(price->str) == o->price && money->type == REDIS_REPLY_STRING && atoll(money->str) >= o->price;
	freeReplyObject(price);
	freeReplyObject(money);
	return stands;
}

static bool exec(struct shop *s)
{
	redisReply *r = shop_ask(s, "EXEC");
	bool done = r->type == REDIS_REPLY_ARRAY;

	freeReplyObject(r);
	return done;
}

bool shop_list(struct shop *s, const struct offer *o)
{
	shop_append(s, "MULTI");
	shop_append(s, "SREM goods:%s %s", s->actor, o->item);
	shop_append(s, "ZADD market %lld %s", (long long)o->price, o->item);
	return exec(s);
}

bool shop_buy(struct shop *s, const struct offer *o)
{
	int seller = (int)strcspn(o->item, ".");
	char payee[ITEM_SIZE];

	snprintf(payee, sizeof(payee), "%.*s", seller, o->item);
	shop_append(s, "MULTI");
	shop_append(s, "ZREM market %s", o->item);
	shop_append(s, "SADD goods:%s %s", s->actor, o->item);
	shop_append(s, "DECRBY money:%s %lld", s->actor, (long long)o->price);
	shop_append(s, "INCRBY money:%s %lld", payee, (long long)o->price);
	return exec(s);
}
