/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A web listener. There are two: that of listen.http has health, metrics, a snapshot and the events of locks as JSON, and the page that shows them; it reads
 * only. That of listen.api has what daemon/api serves (struct web_room). HTTP is spoken by evhttp, one request per connection.
 *
 * What a listener needs of locks it asks as a client does: it opens sessions through its sink, sends them lines, and is given the answers by web_send.
 * So it knows the protocol and nothing of the core, and whoever asks gets what a session of that peer would get. The sessions of listen.http (peer.is_web) have
 * the slots below WEB_SESSIONS, those of listen.api the API_SESSIONS after. Nothing here waits for a client. Callbacks of the sink come on the loop's thread,
 * never from inside web_send. Not thread-safe.
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
#define WEB_DESCRIPTORS (WEB_CONNECTIONS + 32) /* with its listening sockets */
#define API_DESCRIPTORS (API_CONNECTIONS + 32)

struct event_base;
struct evhttp_request;
struct ssl_ctx_st;
struct web;

/* What is served in place of the page. w->context is its own. */
struct web_room {
	int (*start)(struct web *w); /* 0 or -errno */
	void (*serve)(struct web *w, struct evhttp_request *req);
	void (*end)(struct web *w, const char *why); /* answers all requests that wait, and ends all streams; the sessions end afterwards */
	void (*expel)(struct web *w); /* the token is another one: ends the requests that wait, and all streams; the sessions stay */
	void (*stop)(struct web *w); /* forgets all requests and sessions */
};

struct web_conf {
	const char *path;  /* of a Unix socket; NULL: host and port */
	struct listener_access access; /* of the Unix socket */
	const char *host;
	uint16_t port;
	const char *hosts; /* further names that requests may call this host, a blank between two; NULL: none */
	const char *token, *metrics_token; /* NULL: none; the second opens /metrics alone, whatever `looks` says */
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
	/* Whether the peer may look at what concerns no lock; some: at anything at all. */
	bool (*looks)(void *context, const struct peer *peer, bool some);
	/* Appends the lines of /readyz. True: there is a quorum. */
	bool (*ready)(void *context, struct buf *out);
	void (*metrics)(void *context, struct buf *out); /* appends the text of /metrics */
	void (*server)(void *context, struct buf *out);  /* appends what is known of the server, as a row of the protocol: "* key=value …" */
};

/* Copies what conf points to. NULL: no memory. */
struct web *web_new(struct event_base *base, const struct web_conf *conf, const struct web_sink *sink);
void web_free(struct web *w); /* closes all connections, without callbacks; NULL is allowed */

/* From now on this token is asked for; NULL: none. If it is another one, streams and requests that wait end. */
void web_set_token(struct web *w, const char *token);
void web_set_metrics_token(struct web *w, const char *token);
void web_set_tls(struct web *w, struct ssl_ctx_st *tls); /* for connections from now on; owned */

struct inherited;
/* 0 or -errno, as net_listen_…. An address that the previous process listened at is taken over; NULL: there was none. */
int web_listen(struct web *w, struct inherited *before);
/* Makes the file of the Unix socket again if somebody has removed it, and logs it. */
void web_look(struct web *w);
/* Its socket file could not be made again. */
bool web_is_lost(const struct web *w);
void web_stop(struct web *w);  /* stops listening, ends all streams and snapshots, and opens no session from then on */

/* At the end of each pass of the loop, before the answers leave. All who ask for /metrics in one pass share a text: it takes as long as ten answers. */
void web_end_pass(struct web *w);

/* For a restart: nothing is accepted, the service hears that all sessions are gone, and requests for locks are answered with an error. Answers go out. */
void web_pause(struct web *w);
void web_resume(struct web *w);
bool web_is_idle(const struct web *w); /* no connection is open: each request was answered */
/* In a pause: appends the listening sockets, which the caller owns. Returns how many. Nothing but web_free may follow. */
size_t web_pack(struct web *w, struct fdlist *fds);
/* In place of web_listen: listens at this one. 0: owns it; or -ENOMEM. */
int web_listen_at(struct web *w, const struct listener *l);

void web_send(struct web *w, uint64_t session, const void *bytes, size_t n);
void web_await_sent(struct web *w, uint64_t session);
void web_hangup(struct web *w, uint64_t session); /* no callback of this session follows */

/* Whether it is an open session of this listener; w NULL: it is not. */
bool web_has(const struct web *w, uint64_t session);

/* Whether it may be one of the two. */
static inline bool web_may_own(uint64_t session)
{
	return (uint32_t)session < WEB_SESSIONS + API_SESSIONS;
}

#endif
