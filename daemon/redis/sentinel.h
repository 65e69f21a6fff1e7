/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sentinels that know where one master is. All are asked at once, each with a time limit, over connections that stay. The master is the one that more than
 * half of all sentinels name, whether or not the others answer. So no two daemons get different masters. While the master is followed, they are asked once a
 * second. Their word alone does not make a master: after connecting, check its role. Callbacks come from the loop only, never from inside a function here. A
 * callback may call all but sentinel_free. Not thread-safe.
 */
#ifndef REDIS_SENTINEL_H
#define REDIS_SENTINEL_H

#include "daemon/redis/resolver.h"
#include "daemon/redis/upstream_types.h"

#define SENTINELS_MAX    9
#define SENTINEL_POLL_US SEC

#define MASTER_HOST_MAX 256 /* bytes of the host that a sentinel names, with a NUL */

/* Owned by the upstream, shared by all users of sentinels. */
struct sentinel_conf {
	struct event_base *base;
	struct resolver *resolver;
	struct ssl_ctx_st *const *tls; /* NULL, or what it points to: plain */
	const char *server_name;       /* of TLS; NULL: the host of each sentinel */
	char *user, *password;         /* NULL: none */
	int64_t timeout_us;            /* of each sentinel, to connect and to answer */
	int64_t poll_us;               /* between two questions while the master is followed */
};

struct sentinel;

struct sentinel_sink {
	void *context;
	/* Answers sentinel_ask. host NULL: no majority names one; reason says why. The texts are borrowed during the call. */
	void (*located)(void *context, const char *host, uint16_t port, enum defect defect, const char *reason);
	/* While it is followed: a majority names another server than last reported. It is no longer followed then. */
	void (*moved)(void *context, const char *host, uint16_t port);
	/* While it is followed, after each round: why the sentinels would not report a fail-over, or what each names if they differ; "": all is well. May be
	 * NULL. */
	void (*trouble)(void *context, enum defect defect, const char *reason);
};

/* The address is copied. */
struct sentinel *sentinel_new(const struct sentinel_conf *conf, const struct upstream_address *address, const struct sentinel_sink *sink);
void sentinel_free(struct sentinel *s); /* NULL is allowed */

void sentinel_ask(struct sentinel *s); /* one answer for one or more calls before it */
void sentinel_follow(struct sentinel *s, bool on);
void sentinel_restore(struct sentinel *s, const char *host, uint16_t port); /* the master that was last reported, in the previous process; host < 256 bytes */
void sentinel_where(const struct sentinel *s, char *out, size_t size); /* host:port of the master that was last reported */

#endif
