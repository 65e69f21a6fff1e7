/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of the web listener. evhttp owns them, and does not report when one ends. So each has a second owner here, which counts them. It closes a
 * connection that has not finished its request in time, even if it sends a byte now and then. Peers share the connections, and the streams among them. A peer
 * with more than VISITS_RATIO times as many as are left gets no further one, unless that replaces one that its own client keeps waiting. So a few slow clients
 * do not stop health checks of the same peer. Peers are distinguished as in peer_origin(). evhttp bounds the bytes of a head and of a body. But it takes time
 * for each line, and any number of lines may come between the chunks of a body. So a client that sends more lines or bytes than a request may have is cut off
 * here, before evhttp sees them. TLS: the steps of handshakes are paced (net/pacing.h).
 */
#ifndef WEB_VISITS_H
#define WEB_VISITS_H

#include "daemon/base/instant.h"
#include "daemon/base/peer.h"
#include "daemon/net/pacing.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#define VISITS_RATIO 15u

struct web;
struct event;
struct bufferevent;
struct evhttp_connection;
struct evhttp_request;

struct visit {
	TAILQ_ENTRY(visit) next;
	struct web *web;
	struct bufferevent *bev;
	struct instant since;
	size_t origin_n; /* 0: it was just accepted, and counts for no peer yet */
	char origin[PEER_ORIGIN_MAX];
	size_t bytes;   /* of its request that were received */
	unsigned lines; /* in these bytes */
	bool asked;    /* its request is complete */
	struct paced handshake; /* its tls is NULL: plain */
	bool shakes;            /* the handshake is not finished */
	bool is_stream;
	bool shut;     /* evhttp was shown its end */
};

struct visits {
	TAILQ_HEAD(visit_list, visit) all;
	unsigned count, most;
	unsigned arrived;     /* connections that were accepted in this pass of the loop */
	bool paused;          /* nothing is accepted */
	struct instant pause_end;
	struct event *sweep;
	struct event *arrivals; /* there are connections whose origin is still unknown */
	struct pacing pacing;
};

int visits_init(struct web *w);     /* after w->http was made */
void visits_release(struct web *w); /* after evhttp_free */

/* The subject of the certificate of this request's client. False: none, or the connection is plain. */
bool visit_subject(struct evhttp_request *req, char *out, size_t size);
/* The connection of a request that has come. */
struct visit *visit_of(struct web *w, struct evhttp_request *req);
bool visits_are_over(const struct web *w);
/* Whether its peer may have this connection as a stream, of `most` streams. */
bool visit_may_stream(const struct web *w, const struct visit *v, unsigned most);
/* The stream is over: what its client has not read yet counts as an answer, which may take as long as others from now on. */
void visit_ends_stream(struct visit *v);
size_t visits_unsent(const struct web *w); /* bytes of answers that the clients have not read yet */
/* Its request is answered later, after any time. on_close: its client has left before that. */
void visit_hold(struct visit *v, struct evhttp_request *req, void (*on_close)(struct evhttp_connection *c, void *context), void *context);
void visit_shut(struct visit *v); /* evhttp sees the end of the connection, and frees it */
void visits_accept(struct web *w, bool on);
/* Call it after the listening sockets were added: watches for their errors. */
void visits_watch_listeners(struct web *w);

#endif
