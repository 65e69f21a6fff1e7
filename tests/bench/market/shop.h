/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of the market in Redis, and one actor's connection to it: hiredis, blocking, over a Unix socket.
 *
 *   market          a sorted set: each item that is for sale, by price
 *   goods:ACTOR     a set: the items that a seller has not listed yet, or that a buyer has bought
 *   money:ACTOR     a number
 *
 * An item is called SELLER.N, so that its name tells whom to pay. A change is one MULTI … EXEC. Whether nobody comes between what an actor has read and
 * its change is the business of guard.h. What cannot be done ends the program.
 */
#ifndef MARKET_SHOP_H
#define MARKET_SHOP_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#define MARKET_PURSE 1000000000 /* what each actor owns at first */
#define MARKET_STOCK 100        /* items that a seller makes at a time */
#define ITEM_SIZE    32

struct shop {
	redisContext *redis;
	char actor[16];
	unsigned unread; /* replies of commands that were sent and not waited for */
};

struct offer {
	char item[ITEM_SIZE];
	int64_t price;
};

void shop_open(struct shop *s, const char *path, const char *actor);
void shop_close(struct shop *s);

/* A command whose reply nobody waits for: it is read, and must be no error, before that of the next one. Goes out with the next one, or at once. */
void shop_append(struct shop *s, const char *format, ...);
void shop_send(struct shop *s, const char *format, ...);
/* Sends a command, and waits for its reply, which the caller frees. */
redisReply *shop_ask(struct shop *s, const char *format, ...);

void shop_stock(struct shop *s, uint64_t first);        /* makes items first … first + MARKET_STOCK - 1 */
bool shop_browse(struct shop *s, struct offer *ret);    /* one of the offers, by chance. False: there are none */
bool shop_has(struct shop *s, const char *item);        /* whether this actor owns it */
/* Whether the offer stands, and this actor can pay. */
bool shop_sells(struct shop *s, const struct offer *o);

/* These two are false when something that the actor watches has changed: then nothing is done. */
bool shop_list(struct shop *s, const struct offer *o);
bool shop_buy(struct shop *s, const struct offer *o);

#endif
