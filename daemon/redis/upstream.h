/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream: N independent Redis servers, each a node with several links (connections). Calls go out in one write per link and
 * loop pass; every call is answered exactly once, on the loop's thread, never from inside upstream_call.
 *
 * A name is pinned to one link of a node, so a release never overtakes its own acquire. Link 0 carries PROBE and JOIN. The node is up
 * when all its links are connected, authenticated, on the right database, with the scripts loaded; it goes down as soon as one of them
 * breaks: all calls in flight on all its links are then answered ANSWER_UNKNOWN (sent) or ANSWER_REFUSED (not one byte handed over), then `down` is told.
 * A node that cannot be reached is told down too, also before it was ever up: once for each reason, at most eight times until it is up.
 * Calls to a node that is down are answered ANSWER_REFUSED in the next pass of the loop.
 *
 * The sinks are called from the event loop only, never from inside upstream_call or upstream_flush; they may call both, not upstream_free.
 * This layer decides nothing about locks. Not thread-safe; one event base. SIGPIPE must be ignored by the process.
 */
#ifndef REDIS_UPSTREAM_H
#define REDIS_UPSTREAM_H

#include "daemon/core/event.h"

struct event_base;
struct upstream;

struct upstream_address {
	const char *label; /* as configured: for logs and LIST nodes */
	const char *path;  /* Unix socket; or NULL */
	const char *host;  /* name or address; resolved by a thread, the last good answer is kept */
	uint16_t port;
};

struct upstream_conf {
	const struct upstream_address *address; /* copied */
	unsigned nodes;
	unsigned links;             /* per node, 1 .. 16 */
	const char *key_prefix;     /* "lock:" */
	const char *daemon_id;      /* what servers publish for this daemon is listened to; NULL: nothing is */
	const char *user;           /* NULL: AUTH with the password alone */
	const char *password;       /* NULL: no AUTH */
	unsigned database;          /* SELECT when not 0 */
	int64_t connect_timeout_us; /* for connect and handshake together */
	int64_t stall_us;           /* a link whose oldest call waits longer is given up and dialled again */
	int64_t ping_us;            /* PING on a link that was silent that long (PROBE does it for link 0) */
	int64_t skew_us;            /* how far ahead of the server's clock a join lifts its fence */
	int64_t tolerance_us;       /* how much further a fence may run */
};

struct upstream_sink {
	void *context;
	void (*up)(void *context, unsigned node);
	void (*down)(void *context, unsigned node, const char *reason);
	void (*answer)(void *context, const struct answer *answer); /* borrowed for the length of the call */
	/* Published for this daemon: 'w' woken, 'c' wanted. May be lost, repeated, late. NULL when daemon_id is. */
	void (*message)(void *context, unsigned node, char what, struct span name);
};

struct upstream *upstream_new(struct event_base *base, const struct upstream_conf *conf, const struct upstream_sink *sink);
void upstream_free(struct upstream *u);                          /* answers nothing any more */
void upstream_call(struct upstream *u, const struct call *call); /* copied */
void upstream_flush(
	struct upstream *
		u); /* end of a loop pass: hand over what was collected, one script call per link and marker, at most 256 entries each */
/* New credentials for the next handshake; what is connected stays. */
void upstream_set_password(struct upstream *u, const char *user, const char *password);

#endif
