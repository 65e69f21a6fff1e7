/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link is one connection to a Redis server: a stream and the socket under it. It is dialled, becomes ready, and breaks once: a broken
 * link stays as it is, with its calls unanswered, until link_close.
 * The sink is never called from inside link_dial, link_call, link_flush or link_close, but for the answers of link_close.
 */
#ifndef REDIS_LINK_H
#define REDIS_LINK_H

#include "daemon/redis/stream.h"
#include <sys/socket.h>

struct event_base;
struct link;

/* Shared by all links of an upstream and owned by it. */
struct link_conf {
	struct stream_conf stream;
	int64_t connect_timeout_us; /* for connect and handshake together */
	int64_t stall_us, ping_us;
};

struct link_sink {
	void *context;
	void (*ready)(void *context);
	void (*broken)(void *context,
		       const char *reason); /* borrowed; nothing else is told until link_close and the next link_dial */
	struct script_sink script;
};

struct link *link_new(struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink);
void link_free(struct link *l); /* answers nothing any more */

/* On a closed link. 0, or a negative errno of socket(2) or connect(2): it is closed still. */
int link_dial(struct link *l, const struct sockaddr *address, socklen_t n) __attribute__((warn_unused_result));

/* On a ready link: collects, until link_flush hands over all that was collected in one write. hash stands for the name. */
void link_call(struct link *l, const struct call *call, uint64_t hash);
void link_flush(struct link *l);

/* In any state. What is in flight or collected is answered as stream_close says. */
void link_close(struct link *l, const char *reason);

#endif
