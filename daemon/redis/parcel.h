/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one process leaves to the next of its connections to the servers, see carry.h. All of it is memory of a segment (daemon/base/segment.h), so no pointer
 * leads out of it, and no password stands in it. A descriptor is its place in a struct fdlist.
 */
#ifndef REDIS_PARCEL_H
#define REDIS_PARCEL_H

#include "daemon/redis/resolver.h"
#include "daemon/redis/stream.h"
#include "daemon/redis/told.h"
#include "daemon/redis/upstream.h"
#include "tls/digest.h"

/* A link that is ready, and on which no call is unanswered. */
struct link_parcel {
	size_t fd;
	struct stream_parcel stream;
};

struct subscriber_parcel {
	bool refused;   /* the server refused the last attempt that it answered, and the sink was told */
	unsigned tries; /* since then */
	bool listening; /* the subscription is confirmed, and the rest is valid */
	bool asked;     /* a PING is unanswered */
	size_t fd;
	struct rest unread, unsent;
};

struct node_parcel {
	unsigned char settings[TLS_DIGEST_BYTES]; /* of what its connections depend on: settings.h */
	bool up;                                  /* as the sink was told */
	bool replica;                             /* it is to go down, for it has become one */
	struct instant up_since;
	struct link_parcel *link; /* as many as the settings say; NULL: they do not outlive this process */
	struct endpoint dialled;
	struct addresses addresses;
	char *host; /* where the sentinels said last that it is; NULL: nowhere */
	uint16_t port;
	char reason[256];
	enum defect defect;
	struct told told;
	struct upstream_failures failures;
	struct subscriber_parcel subscriber;
};

struct upstream_parcel {
	uint64_t salt[2];
	unsigned char scripts[TLS_DIGEST_BYTES]; /* the servers know these by the hashes in stream_parcel */
	unsigned nodes, links;                   /* links: of each node */
	struct node_parcel *node;
};

#endif
