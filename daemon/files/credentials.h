/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates, keys and authorities: makes TLS contexts from the files of the configuration. They are few, and read at start and at a reload. */
#ifndef DAEMON_CREDENTIALS_H
#define DAEMON_CREDENTIALS_H

#include "conf/conf.h"
#include "daemon/base/instant.h"

struct ssl_ctx_st;

/* When the certificates that are in use end, and whether that was reported. */
struct credentials {
	int64_t listen_ends, redis_ends; /* seconds of CLOCK_REALTIME; INT64_MAX: there is none */
	struct instant server_due[CONF_NODES_MAX]; /* no new report about a server's certificate before then */
	struct instant report_at;
};

/*
 * Reads and checks all files of listen.tls and of redis.tls, if these are on. It leaves out keys that were refused before. Adds an error at the place of the
 * key for each file that is wrong. Adds a warning for a certificate that ends within three weeks, or has ended. 0, or -1 if there was an error.
 */
int credentials_check(const struct conf *c, struct conf_report *report) __attribute__((warn_unused_result));

void credentials_init(struct credentials *k);
/* What the listener of listen.tls, or a connection to Redis, uses; the caller frees it. NULL: it cannot be used, and the log says why. */
struct ssl_ctx_st *credentials_listen(struct credentials *k, const struct conf *c);
struct ssl_ctx_st *credentials_redis(struct credentials *k, const struct conf *c);

/* The same for the certificate that a server shows. Call it repeatedly. */
void credentials_look(struct credentials *k, unsigned server, const char *label, int64_t ends);
/* Logs once a day which certificate ends within three weeks, or has ended. */
void credentials_tick(struct credentials *k, const struct conf *c);

#endif
