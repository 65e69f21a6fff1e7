/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subscriber of a node: the connection that receives what the server publishes for this daemon. Nothing depends on it, because timers replace a lost
 * message. It is connected when the node is up, and reconnects by itself until subscriber_close: after half a second, or after pauses that grow to 30 s while
 * the server refuses. Subscriptions that end again and again are reported, too. Not thread-safe.
 */
#ifndef REDIS_SUBSCRIBER_H
#define REDIS_SUBSCRIBER_H

#include "daemon/base/fdlist.h"
#include "daemon/redis/stream.h"
#include <sys/socket.h>

struct event_base;
struct rng;
struct subscriber;
struct ssl_ctx_st;

struct subscriber_sink {
	void *context;
	/* what: 'w' woken, 'c' wanted …. The name comes without the key prefix, and is borrowed during the call. For 'i' and 'I', asked and told, it is any
	 * text. */
	void (*message)(void *context, unsigned node, char what, struct span name);
	/* Each time that the server refuses, or subscriptions end too often: why, and what to do, for people; borrowed. "": all is well again. */
	void (*subscribed)(void *context, unsigned node, enum defect defect, const char *refusal);
};

/* channel: "redlockd:<key_prefix>d:<daemon-id>"; copied. */
struct subscriber *subscriber_new(struct event_base *base, const struct stream_conf *conf, struct rng *rng, unsigned node, const char *channel,
				  const struct subscriber_sink *sink);
void subscriber_free(struct subscriber *e);
/* Attempts use TLS if *context is not NULL at that time; the certificate must have this name. Both are borrowed. */
void subscriber_expect(struct subscriber *e, struct ssl_ctx_st *const *context, const char *name);
void subscriber_open(struct subscriber *e, const struct sockaddr *address, socklen_t n); /* copies the address, also for later attempts */
void subscriber_close(struct subscriber *e);

/* The server says that it has published for this daemon. If no message arrives, time after time, that is reported like a refusal. */
void subscriber_note_published(struct subscriber *e);

/* The run id of the connected server; "": not known, or not connected. Valid until the next callback. */
const char *subscriber_run_id(const struct subscriber *e);

#endif
