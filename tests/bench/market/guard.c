/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/market/guard.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MARGIN_US  INT64_C(100000) /* a change takes no longer, by far */
#define TIMEOUT_MS 10000
#define PAUSE_US   1000 /* between two tries of SET NX PX, 0.5 to 1.5 times as long */

struct guard_kind {
	const char *way;
	void (*open)(struct guard *g, const char *address);
	void (*close)(struct guard *g);
	void (*take)(struct guard *g, const char *key);
	void (*give)(struct guard *g, bool changed);
};

/* --- WATCH, and nothing ------------------------------------------------------------------------------------------ */

static void nothing_open(struct guard *g, const char *address)
{
	(void)address;
	g->until_us = INT64_MAX;
}

static void nothing_close(struct guard *g)
{
	(void)g;
}

static void nothing_take(struct guard *g, const char *key)
{
	(void)g;
	(void)key;
}

static void nothing_give(struct guard *g, bool changed)
{
	(void)g;
	(void)changed;
}

static void watch_take(struct guard *g, const char *key)
{
	shop_append(g->shop, "WATCH %s", key);
}

static void watch_give(struct guard *g, bool changed)
{
	if (!changed)
		shop_append(g->shop, "UNWATCH");
}

/* --- redlockd ---------------------------------------------------------------------------------------------------- */

static void must(struct guard *g, const char *what, int outcome)
{
	if (outcome)
		errx(1, "%s: %s: %s", g->shop->actor, what, redlock_errmsg(g->session));
}

static void session_open(struct guard *g, const char *address)
{
	if (redlock_open(address, TIMEOUT_MS, &g->session))
		errx(1, "%s: %s", address ? address : "redlockd", redlock_errmsg(NULL));
	must(g, "HELLO", redlock_hello(g->session, &(struct redlock_session){.size = sizeof(struct redlock_session), .label = g->shop->actor}));
}

static void session_close(struct guard *g)
{
	redlock_close(g->session);
}

static void session_released(struct guard *g)
{
	if (g->releasing)
		must(g, "UNLOCK", redlock_finish(g->session, TIMEOUT_MS));
	g->releasing = false;
}

/* The validity counts from before the request, and the actor asks for a new one only where it has waited for long. */
static void session_take(struct guard *g, const char *key)
{
	struct redlock_options options = {.size = sizeof(options), .wait_ms = REDLOCK_FOREVER, .ttl_ms = GUARD_LEASE_MS};
	struct redlock_grant grant;

	(void)key;
	session_released(g);
	must(g, "LOCK", redlock_lock_send(g->session, g->name, &options));
	must(g, "LOCK", redlock_finish(g->session, REDLOCK_FOREVER));
	must(g, "LOCK", redlock_grant(g->session, &grant));
	if (redlock_left_us(&grant) < 2 * MARGIN_US)
		must(g, "CHECK", redlock_check(g->session, g->name, &grant));
	g->until_us = grant.until_us;
}

static void session_give(struct guard *g, bool changed)
{
	char line[sizeof(g->name) + 8];

	(void)changed;
	snprintf(line, sizeof(line), "UNLOCK %s", g->name);
	must(g, "UNLOCK", redlock_send(g->session, line));
	g->releasing = true;
}

/* --- SET NX PX --------------------------------------------------------------------------------------------------- */

static void direct_open(struct guard *g, const char *address)
{
	redisReply *r = shop_ask(g->shop, "SCRIPT LOAD %s", "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end");

	(void)address;
	snprintf(g->sha, sizeof(g->sha), "%s", r->str);
	freeReplyObject(r);
}

static void pause_us(int64_t us)
{
	nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static bool direct_try(struct guard *g)
{
	int64_t asked_us = redlock_now_us();
	redisReply *r = shop_ask(g->shop, "SET lock:%s %s NX PX %d", g->name, g->token, GUARD_LEASE_MS);
	bool held = r->type == REDIS_REPLY_STATUS;

	freeReplyObject(r);
	if (held)
		g->until_us = asked_us + GUARD_LEASE_MS * INT64_C(1000);
	return held;
}

static void direct_take(struct guard *g, const char *key)
{
	(void)key;
	snprintf(g->token, sizeof(g->token), "%s-%llu", g->shop->actor, (unsigned long long)++g->tokens);
	while (!direct_try(g))
		pause_us(PAUSE_US / 2 + rand_r(&g->seed) % PAUSE_US);
}

static void direct_give(struct guard *g, bool changed)
{
	(void)changed;
	shop_send(g->shop, "EVALSHA %s 1 lock:%s %s", g->sha, g->name, g->token);
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

static const struct guard_kind kinds[] = {
	{"watch", nothing_open, nothing_close, watch_take, watch_give},
	{"redlockd", session_open, session_close, session_take, session_give},
	{"direct", direct_open, nothing_close, direct_take, direct_give},
	{"none", nothing_open, nothing_close, nothing_take, nothing_give},
};

bool guard_open(struct guard *g, const char *way, struct shop *s, const char *address)
{
	*g = (struct guard){.shop = s};
	for (const char *c = s->actor; *c; c++)
		g->seed = g->seed * 31 + (unsigned char)*c;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].way, way) == 0)
			g->kind = &kinds[i];
	if (g->kind)
		g->kind->open(g, address);
	return g->kind;
}

void guard_close(struct guard *g)
{
	g->kind->close(g);
}

void guard_take(struct guard *g, const char *name, const char *key)
{
	snprintf(g->name, sizeof(g->name), "%s", name);
	g->kind->take(g, key);
}

bool guard_holds(const struct guard *g)
{
	return redlock_now_us() < g->until_us - MARGIN_US;
}

void guard_give(struct guard *g, bool changed)
{
	g->kind->give(g, changed);
}
