/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Redis directly, as a library does it: SET NX PX with a value of its own, and a script that deletes the key if it still has that value. With several servers:
 * Redlock (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/), all servers at once, and the first majority decides. hiredis writes the
 * commands and reads the replies. Each client has a connection to each server.
 */
#include "tests/bench/drive/clients.h"
#include "daemon/base/mem.h"

#include <err.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS_MAX 16
#define ASKED_MAX   256 /* commands that one server may leave unanswered */

static const char release_script[] = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/* The commands without a reply, in order: which attempt each belongs to, and whether it is the release. */
struct asked {
	uint64_t attempt;
	bool release;
};

struct server_link {
	struct peer peer; /* number: client * SERVERS_MAX + server */
	redisReader *reader;
	struct asked asked[ASKED_MAX];
	uint64_t said, answered; /* counts */
};

struct caller {
	struct server_link link[SERVERS_MAX];
	char value[41];
	uint64_t attempt;
	unsigned granted, refused, released; /* of this attempt */
	bool decided;
};

static struct caller *caller; /* by client */
static const struct options *options;
static unsigned servers, quorum;
static char sha[41];

static void link_says(struct server_link *l, struct asked what, int argc, const char **argv)
{
	char *text;
	int n = redisFormatCommandArgv(&text, argc, argv, NULL);

	if (n < 0)
		errx(1, "out of memory");
	if (l->said - l->answered == ASKED_MAX)
		errx(1, "a server does not answer");
	l->asked[l->said++ % ASKED_MAX] = what;
	peer_say(&l->peer, text, (size_t)n);
	peer_flush(&l->peer);
	redisFreeCommand(text);
}

static void all_release(struct client *c)
{
	struct caller *a = &caller[c->number];
	char key[64];
	const char *argv[] = {"EVALSHA", sha, "1", key, a->value};

	snprintf(key, sizeof(key), "%s%u", options->prefix, c->name);
	for (unsigned i = 0; i < servers; i++)
		link_says(&a->link[i], (struct asked){a->attempt, true}, 5, argv);
}

static void redis_ask(struct client *c)
{
	static uint64_t values;
	struct caller *a = &caller[c->number];
	char key[64];
	const char *argv[] = {"SET", key, a->value, "NX", "PX", "10000"};

	snprintf(key, sizeof(key), "%s%u", options->prefix, c->name);
	snprintf(a->value, sizeof(a->value), "%020u%020llu", c->number, (unsigned long long)++values);
	a->attempt++;
	a->granted = a->refused = a->released = 0;
	a->decided = false;
	for (unsigned i = 0; i < servers; i++)
		link_says(&a->link[i], (struct asked){a->attempt, false}, 6, argv);
}

static void ask_answered(struct client *c, struct caller *a, bool granted)
{
	a->granted += granted;
	a->refused += !granted;
	if (a->decided)
		return;
	if (a->granted >= quorum) {
		a->decided = true;
		client_granted(c);
	} else if (a->refused > servers - quorum) {
		a->decided = true;
		if (a->granted || servers > 1)
			all_release(c);
		client_refused(c);
	}
}

static void reply_heard(struct server_link *l, const redisReply *r)
{
	unsigned number = l->peer.number / SERVERS_MAX;
	struct caller *a = &caller[number];
	struct asked what = l->asked[l->answered++ % ASKED_MAX];

	if (r->type == REDIS_REPLY_ERROR)
		errx(1, "Redis: %s", r->str);
	if (what.attempt == 0) {
		snprintf(sha, sizeof(sha), "%s", r->str); /* of SCRIPT LOAD */
	} else if (what.attempt == a->attempt) {
		struct client *c = client_at(number);

		if (!what.release)
			ask_answered(c, a, r->type == REDIS_REPLY_STATUS);
		else if (++a->released == quorum && c->state == CLIENT_RELEASING)
			client_released(c);
	}
}

static void bytes_heard(struct peer *p, const char *bytes, size_t n)
{
	struct server_link *l = (struct server_link *)(void *)p;
	void *reply;

	redisReaderFeed(l->reader, bytes, n);
	while (redisReaderGetReply(l->reader, &reply) == REDIS_OK && reply) {
		reply_heard(l, reply);
		freeReplyObject(reply);
	}
}

static void server_ended(struct peer *p)
{
	errx(1, "connection %u was closed", p->number);
}

static const struct peer_kind kind = {.bytes = bytes_heard, .ended = server_ended};

static void redis_open(const struct options *o)
{
	const char *load[] = {"SCRIPT", "LOAD", release_script};

	options = o;
	servers = gen_addresses();
	quorum = servers / 2 + 1;
	if (servers > SERVERS_MAX)
		errx(2, "too many servers");
	caller = mem_alloc(o->clients * sizeof(*caller));
	for (unsigned i = 0; i < o->clients; i++)
		for (unsigned k = 0; k < servers; k++) {
			struct server_link *l = &caller[i].link[k];

			peer_dial_at(&l->peer, &kind, i * SERVERS_MAX + k, k);
			l->reader = redisReaderCreate();
			if (i == 0)
				link_says(l, (struct asked){0, false}, 3, load);
		}
}

static void redis_release(struct client *c)
{
	all_release(c);
}

/* The lock of a library stays until it expires: nobody measures that. */
static void redis_leave(struct client *c)
{
	errx(2, "client %u: leaving is for the line protocol", c->number);
}

const struct driver redis_driver = {redis_open, redis_ask, redis_release, redis_leave};
