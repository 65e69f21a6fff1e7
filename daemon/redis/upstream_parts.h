/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of an upstream, for upstream.c and its tests. */
#ifndef REDIS_UPSTREAM_PARTS_H
#define REDIS_UPSTREAM_PARTS_H

#include "daemon/base/rng.h"
#include "daemon/redis/node.h"
#include "daemon/redis/upstream.h"

struct event;

struct refusal {
	uint64_t call;
	unsigned node;
};

struct refusals {
	struct refusal *item;
	unsigned count, cap;
};

struct upstream {
	struct upstream_sink sink;
	struct link_conf link;
	struct node_conf conf;
	struct sentinel_conf sentinel;
	char *channel, *server_name;
	struct resolver *resolver;
	struct rng rng;
	uint64_t key[2]; /* key of the hash that pins a name to a link */
	unsigned nodes;
	struct node *node[NODES_MAX];
	struct refusals refused, telling; /* new refusals; refusals that are being answered, which may lead to new ones */
	struct event *refuse;
};

#endif
