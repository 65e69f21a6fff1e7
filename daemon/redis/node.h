/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node is one Redis server: an address, its links, and the back-off between attempts. It is up when all of its links are ready, and
 * down as soon as one breaks; then all are closed, their calls answered, and the address is dialled anew: at once, then with pauses that
 * double up to one second. A host name may have several addresses: all links go to the same one, and each is tried in turn.
 */
#ifndef REDIS_NODE_H
#define REDIS_NODE_H

#include "daemon/redis/ear.h"
#include "daemon/redis/link.h"
#include "daemon/redis/resolver.h"
#include "daemon/redis/upstream.h"

struct node;

/* What a node needs of its upstream, which outlives it. */
struct node_conf {
	struct event_base *base;
	const struct link_conf *link;
	struct resolver *resolver;
	struct rng *rng;
	unsigned links;
	const char *channel; /* NULL: nothing is listened to */
	const struct upstream_sink *sink;
};

struct node *node_new(const struct node_conf *conf, unsigned index,
		      const struct upstream_address *address); /* begins to dial in the next pass */
void node_free(struct node *n);                                /* answers nothing any more */

/* False: the node is down, and the call is the caller's to answer. */
bool node_call(struct node *n, const struct call *call, uint64_t hash) __attribute__((warn_unused_result));
void node_flush(struct node *n);

/* Why it is down; "" while it is up or has not been tried. */
const char *node_reason(const struct node *n);

#endif
