/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ear is the connection on which what a server publishes for this daemon arrives. Nothing depends on it: what it misses, timers make up
 * for. It is dialled with the node and dials itself anew when it breaks, as long as the node is up.
 */
#ifndef REDIS_EAR_H
#define REDIS_EAR_H

#include "daemon/redis/stream.h"
#include <sys/socket.h>

struct event_base;
struct ear;

struct ear_sink {
	void *context;
	/* 'w' woken, 'c' wanted; the name is without the key prefix and borrowed for the length of the call. */
	void (*message)(void *context, unsigned node, char what, struct span name);
};

/* channel: "redlockd:<key_prefix>d:<daemon-id>"; copied. */
struct ear *ear_new(struct event_base *base, const struct stream_conf *conf, unsigned node, const char *channel, const struct ear_sink *sink);
void ear_free(struct ear *e);
void ear_open(struct ear *e, const struct sockaddr *address, socklen_t n); /* keeps the address for further attempts */
void ear_close(struct ear *e);

#endif
