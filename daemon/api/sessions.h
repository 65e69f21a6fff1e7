/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions of the API that have a session of the service now, and the requests of each that are not answered yet. A session is freed when the service
 * ends it, or refuses to take it up again.
 */
#ifndef API_SESSIONS_H
#define API_SESSIONS_H

#include "daemon/api/internal.h"

/* A session for this request, which HELLO or RESUME begins. NULL: the request was answered. */
struct api_session *session_new(struct api *api, struct evhttp_request *req);
struct api_session *session_find(struct api *api, uint64_t number, const char *secret);
void session_drop(struct api_session *s); /* its calls were answered; the service hears that its client is gone */
/* Answers all of its calls so. */
void session_refuse_all(struct api_session *s, int status, const char *code, const char *why);

/*
 * A line for the service. req NULL: nobody waits for its answer. waits: the request may hold its connection for as long as it takes, if its peer has a share
 * left. what: see struct call.
 */
void call_new(struct api_session *s, struct evhttp_request *req, enum ask ask, bool waits, const char *what, const char *line);
void sessions_beat(struct api *api); /* there is a request that waits, or a stream */

int sessions_init(struct api *api); /* 0 or -ENOMEM */
void sessions_release(struct api *api);

#endif
