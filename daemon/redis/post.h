/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A post is one sentinel of a master. It is asked where the master is, over a connection that stays until it fails, or until post_close. Each question is
 * answered once, from the loop, never from inside a function here. Not thread-safe.
 */
#ifndef REDIS_POST_H
#define REDIS_POST_H

#include "daemon/redis/resolver.h"
#include "daemon/redis/upstream_types.h"

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

struct post;

/* The callback may call all but post_free. The texts are borrowed during the call. */
struct post_sink {
	void *context;
	void (*told)(void *context, const char *host, uint16_t port);
	void (*failed)(void *context, enum defect defect, const char *reason, bool unaware); /* unaware: it answered that it does not know this master */
};

/* conf and master are borrowed, and must outlive the post. */
struct post *post_new(const struct sentinel_conf *conf, const char *master, const struct upstream_host *at, const struct post_sink *sink);
void post_free(struct post *p);

void post_ask(struct post *p); /* not while a question is unanswered */
void post_close(struct post *p);

#endif
