/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An asker is one session of the service, held by whoever answers an HTTP request. It sends lines, and is given each line that comes back in a later pass of
 * the loop. Embedded.
 */
#ifndef WEB_ASKER_H
#define WEB_ASKER_H

#include "daemon/base/buf.h"
#include "daemon/web/web.h"
#include "proto/proto.h"

#include <sys/queue.h>

struct event;
struct evhttp_request;

struct asker {
	TAILQ_ENTRY(asker) in_due;
	struct web *web;
	uint64_t session; /* 0: closed */
	struct buf in;
	bool due;         /* in askers.due */
	bool awaits;      /* the service asked to be told that all was sent */
	bool hung_up;     /* the service has ended the session */
	/* A line that came back. It may close the asker. */
	void (*line)(struct asker *a, const struct reply_line *line);
	/* The service has ended the session, and all its lines were given. The asker is closed. */
	void (*over)(struct asker *a);
};

struct askers {
	struct asker *slot[WEB_SESSIONS];
	uint32_t generation[WEB_SESSIONS];
	TAILQ_HEAD(due_list, asker) due;
	struct event *work;
};

int askers_init(struct web *w);
void askers_end(struct web *w); /* the service hears that their clients are gone, and whoever holds one that it is over */
void askers_silence(struct web *w); /* no callback of the sink follows */
void askers_release(struct web *w);

/* On behalf of whoever has sent the request. line and over are set. False: all sessions are in use. */
bool asker_open(struct web *w, struct asker *a, struct evhttp_request *req);
void asker_close(struct asker *a); /* once, or again without effect */
/* A line without its end; format as printf. */
void asker_say(struct asker *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
