/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the API: what its files share. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "daemon/base/peer.h"
#include "daemon/web/asker.h"

#include <sys/queue.h>

#define SESSIONS_PATH "/v1/sessions"
#define SECRET_MOST   64
#define EVENTS_KEPT   64
#define EVENTS_BYTES  ((size_t)64 * 1024) /* of those of one session */
#define SUBJECT_MAX   257 /* of the subject of a certificate, with its end */

struct api;
struct event;
struct evhttp_request;
struct visit;

enum ask { ASK_HELLO, ASK_RESUME, ASK_QUIT, ASK_LOCK, ASK_HAD, ASK_SUBSCRIBE, ASK_OTHER };

/* A request of HTTP that the service has to answer, or a line that goes out for one that is over. */
struct call {
	TAILQ_ENTRY(call) next;
	struct api_session *session;
	struct evhttp_request *req; /* NULL: nobody waits for the answer */
	struct visit *visit;        /* of req */
	enum ask ask;
	bool waits;  /* it holds its connection for as long as it takes */
	bool sent;
	uint64_t tag;
	char *line;    /* without its tag */
	char *what;    /* LOCK, HAD: "name owner=…", by which the same lock of the same owner is known; else NULL */
	int64_t known; /* LOCK: the fence of a grant that the session has heard of; 0: none */
};

struct happening {
	char *text;  /* as a stream has it */
	size_t n;
};

struct api_session {
	struct asker asker; /* its first member */
	TAILQ_ENTRY(api_session) next;
	struct api *api;
	uint64_t number;
	char secret[SECRET_MOST + 1];
	bool open; /* HELLO or RESUME was answered: lines may go out */
	uint64_t tags;
	TAILQ_HEAD(, call) calls;
	char origin[PEER_ORIGIN_MAX];
	size_t origin_n;
	int64_t uid; /* uid, is_local and subject: as in struct peer, and "" for none */
	bool is_local;
	char subject[SUBJECT_MAX];
	struct happening event[EVENTS_KEPT]; /* that of id stands at id % EVENTS_KEPT */
	size_t event_bytes;
	uint64_t before, events;             /* the id before the first one that is kept, and the last id */
	struct follower *follower; /* its stream of events; NULL: none */
};

struct api {
	struct web *web;
	TAILQ_HEAD(, api_session) sessions;
	unsigned sessions_n;
	struct event *beat; /* each tick, while requests wait or streams are open */
	unsigned ticks;
};

#endif
