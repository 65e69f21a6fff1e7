/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link is one connection to a Redis server: a stream and its socket. It is dialled, becomes ready, and breaks once. A broken link
 * keeps its calls unanswered until link_close.
 * The sink is never called from inside link_dial, link_call or link_flush; link_close calls script.answer only. Not thread-safe.
 */
#ifndef REDIS_LINK_H
#define REDIS_LINK_H

#include "daemon/redis/resolver.h"
#include "daemon/redis/stream.h"
#include <sys/socket.h>

struct event_base;
struct link;
struct ssl_ctx_st;

/* Owned by the upstream, shared by all its links. */
struct link_conf {
	struct stream_conf stream;
	int64_t connect_timeout_us; /* for connect and handshake together */
	int64_t stall_us, ping_us;
	struct ssl_ctx_st *tls; /* of new connections; NULL: they are plain */
};

struct link_sink {
	void *context;
	void (*ready)(void *context);
	void (*broken)(void *context, enum defect defect, const char *reason); /* borrowed; no other callback until link_close and the next link_dial */
	struct script_sink script;
};

struct link *link_new(struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink);
void link_free(struct link *l); /* answers no calls */
void link_demand_master(struct link *l); /* later connections to a replica break before they are ready */
const char *link_run_id(const struct link *l); /* of the server of the last handshake; "": not given */
int64_t link_cert_ends(const struct link *l); /* of the server of the last TLS handshake: as tls_peer_ends; INT64_MAX: there was none */
struct instant link_answered(const struct link *l); /* the server was alive then, or later */
void link_expect(struct link *l, const char *name); /* the name that the certificate must have; borrowed. Without it the link is plain */

/* On a closed link. 0, or a negative errno of socket(2) or connect(2); the link stays closed then. */
int link_dial(struct link *l, const struct sockaddr *address, socklen_t n) __attribute__((warn_unused_result));

/* On a ready link: collects the call. link_flush sends the collected calls in one write, see departure.h. hash: of the lock name. */
void link_call(struct link *l, const struct call *call, uint64_t hash);
/* True: some calls wait for the next pass, which must come at once. at_once: all collected calls leave now. */
bool link_flush(struct link *l, struct instant now, bool at_once);

bool link_waits(const struct link *l); /* for the answer to a command */

/* In any state. Calls in flight and collected calls are answered as by stream_close. */
void link_close(struct link *l, const char *reason);

bool link_is_quiet(const struct link *l); /* no call is unanswered, collected or half sent; a PING may be unanswered */

/* The links of one node: all go to the same address, and are dialled and closed together. Not thread-safe. */
struct links {
	struct link **item;
	unsigned count;
};

void links_init(struct links *l, unsigned count, struct event_base *base, const struct link_conf *conf, unsigned node, const struct link_sink *sink);
void links_release(struct links *l); /* answers no calls */
void links_expect(struct links *l, const char *name);
void links_demand_master(struct links *l);
int links_dial(struct links *l, const struct endpoint *to) __attribute__((warn_unused_result)); /* as link_dial; the error of the first link that fails */
void links_close(struct links *l, const char *reason);
bool links_flush(struct links *l, struct instant now, bool at_once);
bool links_agree(const struct links *l); /* all lead to one server */
bool links_wait(const struct links *l); /* for the answer to a command */
struct instant links_answered(const struct links *l); /* the server was alive then, or later */

#endif
