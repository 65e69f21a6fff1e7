/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the API: what its files share. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "daemon/web/internal.h"

#include <sys/queue.h>

#define SESSIONS_PATH "/v1/sessions"
#define SECRET_MOST   64
#define EVENTS_KEPT   64
#define EVENTS_BYTES  ((size_t)64 * 1024) /* of those of one session */
/* For a session that is made, or resumed, without one. */
#define HEARTBEAT    " heartbeat=30s"
#define HEARTBEAT_US (30 * SEC)
#define SUBJECT_MAX   257 /* of the subject of a certificate, with its end */

struct api;

enum ask { ASK_HELLO, ASK_RESUME, ASK_QUIT, ASK_LOCK, ASK_HAD, ASK_SUBSCRIBE, ASK_OTHER };

/* A request of HTTP that the service has to answer, or a line that is sent for a finished one. */
struct call {
	TAILQ_ENTRY(call) next;
	struct api_session *session;
	struct evhttp_request *req; /* NULL: nobody waits for the answer */
	struct visit *visit;        /* of req */
	enum ask ask;
	bool waits;  /* it may hold its connection for any time */
	bool sent;
	uint64_t tag;
	char *line;    /* without its tag */
	char *what;    /* LOCK, HAD: "name owner=…", which identifies the lock and its owner; else NULL */
	int64_t known; /* LOCK: the fence of a grant that the session already knows; 0: none */
};

struct happening {
	char *text;  /* as a stream sends it */
	size_t n;
};

struct api_session {
	struct asker asker; /* its first member */
	TAILQ_ENTRY(api_session) next;
	struct api *api;
	uint64_t number;
	char secret[SECRET_MOST + 1];
	bool open; /* HELLO or RESUME was answered: lines may be sent */
	uint64_t tags;
	TAILQ_HEAD(, call) calls;
	char origin[PEER_ORIGIN_MAX];
	size_t origin_n;
	int64_t uid; /* uid, is_local and subject: as in struct peer, and "" for none */
	bool is_local;
	char subject[SUBJECT_MAX];
	struct happening event[EVENTS_KEPT]; /* the event with this id is at id % EVENTS_KEPT */
	size_t event_bytes;
	uint64_t before, events;             /* the id before the first kept one, and the last id */
	struct follower *follower; /* its stream of events; NULL: none */
};

struct api {
	struct web *web;
	TAILQ_HEAD(, api_session) sessions;
	unsigned sessions_n;
	struct event *beat; /* each tick, while requests wait or streams are open */
	unsigned ticks;
};

/* --- problem.c: answers, a line of the protocol as JSON, or a problem (RFC 9457) --- */

/* The status of a line that answers a request: 200, or that of its error. */
int problem_status(const struct reply_line *line);
/* 200 or 201: its fields; else the problem that it reports. */
void problem_answer(struct evhttp_request *req, int status, const struct reply_line *line);
/* code: of the protocol. */
void problem(struct evhttp_request *req, int status, const char *code, const char *detail);

/* --- calls.c: the requests of a session that the service has not answered yet, and the lines that go out for those that were cut off --- */

/*
 * A line for the service. req NULL: nobody waits for its answer. waits: the request may hold its connection for any time, if its peer has a share left. what:
 * see struct call.
 */
void call_new(struct api_session *s, struct evhttp_request *req, enum ask ask, bool waits, const char *what, const char *line);
struct call *call_add(struct api_session *s, enum ask ask, const char *what, const char *line);
void call_begin(struct call *c); /* sends it, once the session is open */
void call_send(struct call *c);

void call_free(struct call *c);
struct evhttp_request *call_end(struct call *c); /* frees it; the request is the caller's. NULL: its client has gone */
bool call_is_left(const struct call *c);         /* its client has closed the connection, and evhttp has not noticed yet */
void call_drop_client(struct call *c);           /* closes the connection, with the request */
/* Its client has gone. A waiting LOCK is cancelled, and an unsent request is dropped. The rest is done, and nobody is notified. */
void call_is_cut(struct call *c);

void session_refuse_all(struct api_session *s, int status, const char *code, const char *why); /* answers all of its calls with that */
void session_expel(struct api_session *s); /* answers the waiting requests that the token has changed, and withdraws them */
/* Whether one of its requests waits, and its client is there. Closes up to *cuts of those whose client has gone. */
bool session_waits(struct api_session *s, unsigned *cuts);
void calls_beat(struct api *api); /* there is a request that waits, or a stream */

/* --- follower.c: GET …/events, the stream of server-sent events of a session --- */

#define EVENTS_UNSENT ((size_t)64 * 1024)

struct follower {
	struct api_session *session;
	struct sse out;
};

/* Takes over this request as the session's stream, in place of its former one. It begins with the kept events after this id. */
void follower_begin(struct api_session *s, struct evhttp_request *req, struct visit *v);
void follower_end(struct follower *f); /* properly terminated; NULL is allowed */
/* Keeps an event, and sends it to the stream, if there is one. */
void follower_keep(struct api_session *s, const struct reply_line *push);

/* --- sessions.c: those that have a session of the service now. One is freed when the service ends it, or refuses to take it up again --- */

/* A session for this request, which HELLO or RESUME begins. NULL: the request was answered. */
struct api_session *session_new(struct api *api, struct evhttp_request *req);
struct api_session *session_find(struct api *api, uint64_t number, const char *secret);
/* Whether this client may use it: uid, certificate, and whether it is on this host are those of the client that made it. */
bool session_is_for(const struct api_session *s, struct evhttp_request *req);
void session_is_gone(struct evhttp_request *req); /* answers that */
void session_drop(struct api_session *s); /* its calls were answered; the service hears that its client is gone */
int sessions_init(struct api *api); /* 0 or -ENOMEM */
void sessions_release(struct api *api);

#endif
