/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of the web listener. evhttp owns them, and does not tell when one ends: each has a second owner here, which counts them and closes one
 * that has not finished its request in time, even if it sends a byte now and then.
 *
 * Peers share the connections, and the streams among them: one that has more than VISITS_RATIO times as many as are left gets no further one, but in the place
 * of one that its own client keeps waiting. So a few slow clients do not keep the others of their peer from asking whether the daemon lives. Peers are told
 * apart as peer_origin does.
 *
 * evhttp bounds the bytes of a head and of a body. But it takes time for each line, and as many as come between the chunks of a body. So whoever sends more
 * lines or bytes than a request has is cut off here, before evhttp sees them.
 *
 * TLS: the steps of handshakes are paced (net/pacing.h).
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
	size_t origin_n; /* 0: it has just been accepted, and counts for nobody yet */
	char origin[PEER_ORIGIN_MAX];
	size_t bytes;   /* that it has sent of its request */
	unsigned lines; /* among these */
	bool asked;    /* its request has come */
	struct paced handshake; /* its tls is NULL: plain */
	bool shakes;            /* it is not done */
	bool is_stream;
	bool shut;     /* evhttp was made to see its end */
};

struct visits {
	TAILQ_HEAD(visit_list, visit) all;
	unsigned count, most;
	unsigned arrived;     /* those accepted in this pass of the loop */
	bool paused;          /* nothing is accepted */
	struct instant pause_end;
	struct event *sweep;
	struct event *arrivals; /* there are connections whose origin is to be seen */
	struct pacing pacing;
};

int visits_init(struct web *w);     /* after w->http was made */
void visits_release(struct web *w); /* after evhttp_free */

/* The subject of the certificate that the client of this request has shown. False: none, or the connection is plain. */
bool visit_subject(struct evhttp_request *req, char *out, size_t size);
/* The connection of a request that has come. */
struct visit *visit_of(struct web *w, struct evhttp_request *req);
bool visits_are_over(const struct web *w);
/* Whether its peer may have this connection as a stream, of `most` streams. */
bool visit_may_stream(const struct web *w, const struct visit *v, unsigned most);
/* The stream is over: what its client has not read yet is an answer as others, that may take as long from here on. */
void visit_ends_stream(struct visit *v);
size_t visits_unsent(const struct web *w); /* bytes of answers that the clients have not read yet */
/* Its request is answered later, after any time; on_close: its client has left before. */
void visit_hold(struct visit *v, struct evhttp_request *req, void (*on_close)(struct evhttp_connection *c, void *context), void *context);
void visit_shut(struct visit *v); /* evhttp sees the end of the connection, and frees it */
void visits_accept(struct web *w, bool on);
/* The listening sockets were added: watches over their errors. */
void visits_watch_listeners(struct web *w);

#endif
