/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subscription of a daemon at a node, as daemon/redis keeps it: a connection of its own that exists as long as the node is up. A message on the daemon's
 * channel arrives after a while, late, twice or not at all; nobody hears of a loss.
 */
#ifndef SIM_SUBSCRIBER_H
#define SIM_SUBSCRIBER_H

#include "daemon/base/heap.h"
#include "proto/span.h"
#include "tests/sim/plan/stream.h"

struct server;
struct sim_daemon;
struct world;

struct subscriber {
	struct sim_daemon *daemon;
	struct stream stream, words;
	unsigned node;
	uint64_t epoch; /* counts the connections */
	int64_t from;   /* true time since when it is subscribed; INT64_MAX: it is not */
};

/* A message on its way. */
struct message {
	struct timer timer;
	struct subscriber *subscriber;
	uint64_t epoch;
	size_t n;
	char text[];
};

void subscriber_init(struct subscriber *e, struct sim_daemon *d, unsigned node);
void subscriber_open(struct subscriber *e);
void subscriber_close(struct subscriber *e);
/* A node publishes. Returns how many subscribers there are. */
int64_t subscriber_published(void *server, struct span channel, struct span message);
void message_fired(struct message *m);
void message_heard(struct message *m); /* the daemon, which runs, reads it */

#endif
