/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A web listener. There are two. That of listen.http serves health, metrics, a snapshot and the events of locks as JSON, and the page that shows them. It only
 * reads. That of listen.api serves the requests of daemon/api (struct web_room). evhttp speaks HTTP, one request per connection. For questions about locks a
 * listener is a client: it opens sessions through its sink, sends them lines, and gets the answers by web_send. So it knows the protocol and nothing of the
 * core, and each request gets what a session of its peer would get. The sessions of listen.http (peer.is_web) have the slots below WEB_SESSIONS, those of
 * listen.api the next API_SESSIONS. Nothing here waits for a client. Callbacks of the sink come on the loop's thread, never from inside web_send. Not
 * thread-safe.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "daemon/base/buf.h"
#include "daemon/base/fdlist.h"
#include "daemon/base/peer.h"
#include "daemon/net/listener.h"

#include <stddef.h>
#include <stdint.h>

#define WEB_SESSIONS    64
#define API_SESSIONS    960
#define WEB_CONNECTIONS 128
#define API_CONNECTIONS 512
#define WEB_DESCRIPTORS (WEB_CONNECTIONS + 32) /* including its listening sockets */
#define API_DESCRIPTORS (API_CONNECTIONS + 32)

struct event_base;
struct evhttp_request;
struct ssl_ctx_st;
struct web;

/* Serves requests in place of the page. w->context belongs to it. */
struct web_room {
	int (*start)(struct web *w); /* 0 or -errno */
	void (*serve)(struct web *w, struct evhttp_request *req);
	void (*end)(struct web *w, const char *why); /* answers all waiting requests, and ends all streams; the sessions end later */
	void (*expel)(struct web *w); /* the token has changed: ends waiting requests, and all streams; the sessions stay */
	void (*stop)(struct web *w); /* forgets all requests and sessions */
};

struct web_conf {
	const char *path;  /* of a Unix socket; NULL: host and port */
	struct listener_access access; /* of the Unix socket */
	const char *host;
	uint16_t port;
	const char *hosts; /* further names of this host in requests, separated by blanks; NULL: none */
	const char *token, *metrics_token; /* NULL: none; the second opens only /metrics, whatever `looks` returns */
	const struct web_room *room;       /* NULL: the page */
	struct ssl_ctx_st *tls;            /* NULL: plain; else owned from now on */
};

struct web_sink {
	void *context;
	void (*open)(void *context, uint64_t session, const struct peer *peer);
	void (*line)(void *context, uint64_t session, char *line, size_t n);
	void (*sent)(void *context, uint64_t session); /* after web_await_sent */
	bool (*taken)(void *context, uint32_t slot); /* a connection that an earlier build has handed over has this slot */
	void (*gone)(void *context, uint64_t session, enum gone how); /* the client is gone; nothing more is sent to this session */
	/* Whether the peer may see what concerns no lock; some: whether it may see anything at all. */
	bool (*looks)(void *context, const struct peer *peer, bool some);
	/* Appends the lines of /readyz. True: there is a quorum. */
	bool (*ready)(void *context, struct buf *out);
	void (*metrics)(void *context, struct buf *out); /* appends the text of /metrics */
	void (*server)(void *context, struct buf *out);  /* appends the facts about the server, as a row of the protocol: "* key=value …" */
};

/* Copies what conf points to. NULL: no memory. */
struct web *web_new(struct event_base *base, const struct web_conf *conf, const struct web_sink *sink);
void web_free(struct web *w); /* closes all connections, without callbacks; NULL is allowed */

/* Requires this token from now on; NULL: none. If it has changed, streams and waiting requests end. */
void web_set_token(struct web *w, const char *token);
void web_set_metrics_token(struct web *w, const char *token);
void web_set_tls(struct web *w, struct ssl_ctx_st *tls); /* for new connections; owned */

struct inherited;
/* 0 or -errno, as net_listen_…. An address of the previous process is taken over; NULL: there was none. */
int web_listen(struct web *w, struct inherited *before);
/* Makes the file of the Unix socket again if somebody has removed it, and logs it. */
void web_look(struct web *w);
/* Its socket file could not be made again. */
bool web_is_lost(const struct web *w);
void web_stop(struct web *w);  /* stops listening, ends all streams and snapshots, and opens no more sessions */

/* At the end of each pass of the loop, before the answers leave. All requests for /metrics in one pass share a text, which takes as long as ten answers. */
void web_end_pass(struct web *w);

/* For a restart: nothing is accepted, the service hears that all sessions are gone, and requests for locks get an error. Answers are still sent. */
void web_pause(struct web *w);
void web_resume(struct web *w);
bool web_is_idle(const struct web *w); /* no connection is open: each request was answered */
/* In a pause: appends the listening sockets, which the caller owns then. Returns their number. Only web_free may follow. */
size_t web_pack(struct web *w, struct fdlist *fds);
/* In place of web_listen: listens at this socket. 0: owns it; or -ENOMEM. */
int web_listen_at(struct web *w, const struct listener *l);

void web_send(struct web *w, uint64_t session, const void *bytes, size_t n);
void web_await_sent(struct web *w, uint64_t session);
void web_hangup(struct web *w, uint64_t session); /* no callback of this session follows */

/* Whether it is an open session of this listener; w NULL: it is not. */
bool web_has(const struct web *w, uint64_t session);

/* Whether the session may belong to one of the two. */
static inline bool web_may_own(uint64_t session)
{
	return (uint32_t)session < WEB_SESSIONS + API_SESSIONS;
}

#endif
