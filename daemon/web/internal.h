/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the web listener: what its files and those of daemon/api share. */
#ifndef WEB_INTERNAL_H
#define WEB_INTERNAL_H

#include "daemon/net/tcp_listeners.h"
#include "daemon/web/asker.h"
#include "daemon/web/visits.h"
#include "daemon/web/web.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#define STREAMS_MOST 32
#define HEAD_MOST    8192 /* bytes of a request */
#define BODY_MOST    8192

struct web {
	struct event_base *base;
	struct evhttp *http;
	struct web_sink sink;
	const struct web_room *room; /* NULL: the page */
	void *context;               /* of the room */
	struct ssl_ctx_st *tls;      /* NULL: plain */
	char *path, *host, *hosts, *token, *metrics_token;
	uint16_t port;
	struct listener listener[LISTENER_ADDRESSES_MAX];
	unsigned listeners;
	struct listener_access access;
	int trouble; /* the error of its Unix socket that is in the log */
	struct visits visits;
	struct askers askers;
	unsigned snapshots_n; /* those in progress */
	size_t snapshots;     /* bytes of these */
	struct buf figures;   /* the text of /metrics of this pass of the loop; empty: not requested yet */
	struct instant requests_end; /* when this pass of the loop must end, so that requests do not delay others */
	TAILQ_HEAD(, stream) streams;
	unsigned streams_n;
	struct event *beat; /* once a second, while there are streams */
	bool stopping;
	bool paused;          /* for a restart */
};

/* --- answer.c: each answer ends its connection --- */

#define TYPE_TEXT    "text/plain; charset=utf-8"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_JSON    "application/json"
#define TYPE_HTML    "text/html; charset=utf-8"

#define UNASKED_MOST ((size_t)4 * 1024) /* what a client may send after its request: evhttp keeps it, and nobody reads it */

const char *reason_of(int status);
bool request_is_head(struct evhttp_request *req);
/* The headers that all answers have. csp NULL: nothing may be loaded. */
void answer_headers(struct evhttp_request *req, const char *type, const char *csp);
void answer(struct evhttp_request *req, int status, const char *type, const void *body, size_t n, const char *csp);
void answer_long(struct evhttp_request *req, const char *type, struct buf *text); /* 200; takes the text, which is not copied, and leaves an empty one */

/*
 * For the close callback of a connection with an unanswered request. If the client has closed it, evhttp has detached the request, and leaves it to us.
 * Otherwise evhttp frees the request itself.
 */
void request_abandoned(struct evhttp_request *req);
void answer_error(struct evhttp_request *req, int status, const char *text); /* one line of text */

/* --- gate.c: who is let in, by the Host that a request names, its token, its peer --- */

/* The status of the refusal: 400, 401 or 421; 0: it may pass. open: the path needs no token. */
int gate_refuses(struct web *w, struct evhttp_request *req, bool open);
const char *gate_text(const struct web *w, int status); /* the explanation for the client */
/* Whether it has the token that opens only /metrics. */
bool gate_has_metrics_token(const struct web *w, struct evhttp_request *req);
/* Returns the groups of the peer, which refers to them. The caller frees them; NULL: none. Its address is "" if the client has reset the connection. */
uint32_t *gate_peer(struct evhttp_request *req, struct peer *ret_peer);

/* --- stream.c: server-sent events to one client, which is never waited for: one that reads nothing for 30 s is cut off --- */

struct sse {
	struct evhttp_request *req;
	struct visit *visit;
	size_t unsent;        /* at the last beat */
	struct instant moved; /* the last beat at which less was unsent than before */
	struct instant sent_at; /* when something was last sent */
};

/* The head of the answer. on_close: see visit_hold(). */
void sse_begin(struct sse *s, struct evhttp_request *req, struct visit *v, void (*on_close)(struct evhttp_connection *c, void *context), void *context);
void sse_greet(struct sse *s); /* the first message for a client */
void sse_send(struct sse *s, const void *bytes, size_t n);
size_t sse_unsent(const struct sse *s);
/* Once a second. False: the stream was ended. */
bool sse_beat(struct sse *s, struct instant now);
void sse_end(struct evhttp_request *req, struct visit *v); /* properly terminated; on_close does not follow */

/* GET /api/v1/events: one for each EVENT of the names with a prefix. */
void stream_begin(struct web *w, struct evhttp_request *req);
void streams_beat(evutil_socket_t fd, short what, void *web); /* once a second */

/* --- snapshot.c --- */

/* GET /api/v1/snapshot: stores, figures, and a page of locks with their holders and waiters, as one JSON object. */
void snapshot_begin(struct web *w, struct evhttp_request *req);

#endif
