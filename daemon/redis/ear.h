/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subscriber of a node: the connection that receives what the server publishes for this daemon. Nothing depends on it, because timers
 * replace a lost message. It is connected when the node is up, and reconnects by itself until ear_close. Not thread-safe.
 */
#ifndef REDIS_EAR_H
#define REDIS_EAR_H

#include "daemon/redis/stream.h"
#include <sys/socket.h>

struct event_base;
struct ear;

struct ear_sink {
	void *context;
	/* what: 'w' woken, 'c' wanted. The name is without the key prefix, and borrowed during the call. */
	void (*message)(void *context, unsigned node, char what, struct span name);
};

/* channel: "redlockd:<key_prefix>d:<daemon-id>"; copied. */
struct ear *ear_new(struct event_base *base, const struct stream_conf *conf, unsigned node, const char *channel, const struct ear_sink *sink);
void ear_free(struct ear *e);
void ear_open(struct ear *e, const struct sockaddr *address, socklen_t n); /* copies the address, also for later attempts */
void ear_close(struct ear *e);

#endif
