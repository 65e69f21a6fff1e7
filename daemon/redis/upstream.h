/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream: N independent Redis servers, each a node with several links (connections). upstream_flush sends the calls of a loop pass in
 * one write per link. Every call is answered exactly once, on the loop's thread, never from inside upstream_call.
 *
 * A name is pinned to one link of a node, so a release never overtakes its own acquire. Link 0 carries PROBE and MARK. The node is up
 * when all its links are connected, authenticated, on the right database, with the scripts loaded. It goes down as soon as one link breaks. Then all
 * calls in flight on all its links are answered: ANSWER_REFUSED if the kernel took no byte of them, else ANSWER_UNKNOWN; after that comes `down`.
 * `down` also comes after each failed attempt of a node that cannot be reached, even if it never was up: only the last reason is true.
 * Calls to a node that is down are answered ANSWER_REFUSED in the next pass of the loop.
 *
 * Only the event loop calls the sink, never upstream_call or upstream_flush. The sink may call both, but not upstream_free.
 * This layer decides nothing about locks. Not thread-safe; one event base. SIGPIPE must be ignored by the process.
 */
#ifndef REDIS_UPSTREAM_H
#define REDIS_UPSTREAM_H

#include "daemon/core/event/event.h"

struct event_base;
struct ssl_ctx_st;
struct upstream;

struct upstream_host {
	const char *host; /* name or address */
	uint16_t port;
};

struct upstream_address {
	const char *label; /* as configured: for logs and LIST nodes */
	const char *master; /* what these sentinels call the server, whose address they tell; NULL: path or host tells it */
	const struct upstream_host *sentinel;
	unsigned sentinels;
	const char *path;  /* Unix socket; or NULL */
	const char *host;  /* name or address; resolved by a thread, the last good answer is kept */
	uint16_t port;
};

struct upstream_conf {
	const struct upstream_address *address; /* copied */
	unsigned nodes;
	unsigned links;             /* per node, 1 .. 16 */
	const char *key_prefix;     /* "lock:" */
	const char *daemon_id;      /* subscribe to what servers publish for this daemon; NULL: do not subscribe */
	const char *user;           /* NULL: AUTH with the password alone */
	const char *password;       /* NULL: no AUTH */
	const char *sentinel_user, *sentinel_password; /* the same for sentinels */
	unsigned database;          /* SELECT when not 0 */
	struct ssl_ctx_st *tls;     /* owned from now on; NULL: connections are plain, those to sentinels as well. Those to Unix sockets always are */
	const char *server_name;    /* that certificates must be for; NULL: the host of each address */
	int64_t connect_timeout_us; /* for connect and handshake together */
	int64_t stall_us;           /* a link whose oldest call waits longer is closed, and the node dialled again */
	int64_t ping_us;            /* PING on a link that was idle that long */
	int64_t skew_us;            /* how far ahead of the server's clock a join lifts its fence */
	int64_t tolerance_us;       /* how much further than skew_us a fence may run */
};

struct upstream_sink {
	void *context;
	void (*up)(void *context, unsigned node, const char *address); /* where it is, as sentinels told; "": as configured */
	/* address: "", or where another server has taken its place */
	void (*down)(void *context, unsigned node, enum defect defect, const char *reason, const char *address);
	void (*answer)(void *context, const struct answer *answer); /* borrowed during the call */
	/* Published for this daemon, see subscriber.h. May be lost, repeated or late. May be NULL if daemon_id is. */
	void (*message)(void *context, unsigned node, char what, struct span name);
	/* The node is up, but publishes nothing for this daemon: why, for people; told at each attempt. "": it does again. May be NULL if daemon_id is. */
	void (*subscribed)(void *context, unsigned node, enum defect defect, const char *refusal);
	/* The node is up, but its sentinels are silent or differ, or its name leads to several servers: why; may be repeated. "": neither. May be NULL. */
	void (*unwatched)(void *context, unsigned node, enum defect defect, const char *reason);
};

struct upstream *upstream_new(struct event_base *base, const struct upstream_conf *conf, const struct upstream_sink *sink);
void upstream_free(struct upstream *u);                          /* answers no calls */
void upstream_call(struct upstream *u, const struct call *call); /* copied */
/*
 * At the end of a loop pass: sends the collected calls, one script call per link and marker, at most 256 entries each. Some may be held back for a moment
 * (departure.h), unless at_once. True: the next pass must come without delay.
 */
bool upstream_flush(struct upstream *u, struct instant now, bool at_once);
bool upstream_waits(const struct upstream *u); /* for the answer to a command */

/* Since the daemon was started; a restart in place goes on counting. */
struct upstream_failures {
	uint64_t broken;   /* times that a node that was up went down */
	uint64_t attempts; /* attempts to connect to one address of it that failed */
};
struct upstream_failures upstream_failures(const struct upstream *u, unsigned node);

/* Sets the credentials of later handshakes; connections stay. Copies both; NULL: none. */
void upstream_set_password(struct upstream *u, const char *user, const char *password);
/* Later connections use this context, and it is owned; those that there are keep theirs. */
void upstream_set_tls(struct upstream *u, struct ssl_ctx_st *context);

/* Before a restart: whether no call is unanswered, collected or half sent. The calls to nodes that are down are answered by the loop as well. */
bool upstream_is_quiet(const struct upstream *u);

#endif
