/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node is one Redis server: an address, its links, and the back-off between attempts. It is up when all its links are ready, and down as soon as one breaks.
 * Then all links are closed, their calls answered, and the address is dialled again: at once, then after pauses that double up to one second. A host name may
 * have several addresses: all links use the same one, and each is tried in turn. The name of a node that is up is resolved regularly. If the address in use is
 * no longer among the answers, a replica there is left; of a master this is only reported. The path of a Unix socket is checked: a server that takes it over
 * replaces the former one, because new connections reach that server. Where sentinels name the address, they are asked before each attempt. While no majority
 * names one, the server that was up a moment ago is dialled again, unless they have named another one since. Then only that server is used there: its run id
 * must be the same. The node goes down when a majority names another server, and when its server becomes a replica.
 */
#ifndef REDIS_NODE_H
#define REDIS_NODE_H

#include "daemon/redis/subscriber.h"
#include "daemon/redis/link.h"
#include "daemon/redis/resolver.h"
#include "daemon/redis/sentinel.h"
#include "daemon/redis/upstream_types.h"

struct node;

/* Owned by the upstream, which outlives its nodes. */
struct node_conf {
	struct event_base *base;
	const struct link_conf *link;
	struct resolver *resolver;
	const struct sentinel_conf *sentinel;
	struct rng *rng;
	unsigned links;
	const char *channel; /* of the subscriber; NULL: none */
	int64_t name_us, path_us; /* while a server is up: between two checks of its name, or of the path of its socket */
	int64_t redial_us; /* between two tries whether a server that is up accepts another connection */
	int64_t reuse_us;  /* how long a server may have been away that is used again while the sentinels name none */
	const char *server_name; /* of TLS; NULL: the host of the address */
	const struct upstream_sink *sink;
};

struct node *node_new(const struct node_conf *conf, unsigned index,
		      const struct upstream_address *address); /* address is copied; dials in the next pass */
void node_free(struct node *n);                                /* answers no calls */

/* False: the node is down, and the caller must answer the call. */
bool node_call(struct node *n, const struct call *call, uint64_t hash) __attribute__((warn_unused_result));
bool node_waits(const struct node *n);
bool node_flush(struct node *n, struct instant now, bool at_once);

/* Why the node is down; "" while it is up or was not tried yet. Valid until the next callback. */
const char *node_reason(const struct node *n);
int64_t node_cert_ends(const struct node *n); /* see upstream_cert_ends */
struct upstream_failures node_failures(const struct node *n);

bool node_is_quiet(const struct node *n); /* no call is unanswered */

#endif
