/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream: N independent Redis servers, each a node with several links (connections). upstream_flush sends the calls of a loop pass in
 * one write per link. Every call is answered exactly once, on the loop's thread, never from inside upstream_call.
 *
 * A name is pinned to one link of a node, so a release never overtakes its own acquire. Link 0 carries PROBE and MARK. The node is up when all its links are
 * connected, authenticated, on the right database, with the scripts loaded. It goes down as soon as one link breaks. Then all calls in flight on all its links
 * are answered: ANSWER_REFUSED if the kernel took no byte of them, else ANSWER_UNKNOWN. `down` follows. `down` also comes after each failed attempt of a node
 * that cannot be reached, even if it was never up. Only the last reason is valid. Calls to a node that is down are answered ANSWER_REFUSED in the next pass of
 * the loop.
 *
 * Only the event loop calls the sink, never upstream_call or upstream_flush. The sink may call both, but not upstream_free.
 * This layer decides nothing about locks. Not thread-safe; one event base. SIGPIPE must be ignored by the process.
 */
#ifndef REDIS_UPSTREAM_H
#define REDIS_UPSTREAM_H

#include "daemon/redis/upstream_types.h"

struct event_base;
struct ssl_ctx_st;
struct upstream;

struct upstream_conf {
	const struct upstream_address *address; /* copied */
	unsigned nodes;
	unsigned links;             /* per node, 1 .. 16 */
	const char *key_prefix;     /* "lock:" */
	const char *daemon_id;      /* subscribes to what servers publish for this daemon; NULL: does not subscribe */
	const char *user;           /* NULL: AUTH with the password alone */
	const char *password;       /* NULL: no AUTH */
	const char *sentinel_user, *sentinel_password; /* the same for sentinels */
	unsigned database;          /* SELECT when not 0 */
	struct ssl_ctx_st *tls;     /* owned from now on; NULL: connections are plain, those to sentinels as well. Those to Unix sockets always are */
	const char *server_name;    /* the name that certificates must have; NULL: the host of each address */
	int64_t connect_timeout_us; /* for connect and handshake together */
	int64_t stall_us;           /* if the oldest call of a link waits longer, the link is closed, and the node dialled again */
	int64_t ping_us;            /* PING on a link that was idle for that long */
	int64_t quarantine_us;      /* a store that has taken the place of another grants after that time at the earliest */
	int64_t skew_us;            /* how far ahead of the server's clock a join lifts its fence */
	int64_t tolerance_us;       /* how much further than skew_us a fence may run */
};

struct upstream *upstream_new(struct event_base *base, const struct upstream_conf *conf, const struct upstream_sink *sink);
void upstream_free(struct upstream *u);                          /* answers no calls */
void upstream_call(struct upstream *u, const struct call *call); /* copied */
/*
 * At the end of a loop pass: sends the collected calls, one script call per link and marker, at most 256 entries each. Some may be held back for a moment
 * (departure.h), unless at_once. True: the next pass must come at once.
 */
bool upstream_flush(struct upstream *u, struct instant now, bool at_once);
bool upstream_waits(const struct upstream *u); /* for the answer to a command */

/* When the certificate that the node last showed ends, or the first of its issuers: seconds of CLOCK_REALTIME. INT64_MAX: it has shown none. */
int64_t upstream_cert_ends(const struct upstream *u, unsigned node);
struct upstream_failures upstream_failures(const struct upstream *u, unsigned node);

/* Sets the credentials of later handshakes; connections stay. Copies both; NULL: none. */
void upstream_set_password(struct upstream *u, const char *user, const char *password);
/* New connections use this context, which is owned. Existing ones keep theirs. */
void upstream_set_tls(struct upstream *u, struct ssl_ctx_st *context);

/* Before a restart: whether no call is unanswered, collected or half sent. The loop also answers the calls to nodes that are down. */
bool upstream_is_quiet(const struct upstream *u);

#endif
