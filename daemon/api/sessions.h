/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions of the API that have a session of the service now, and the requests of each that are not answered yet. A session is freed when the service
 * ends it, or refuses to take it up again.
 */
#ifndef API_SESSIONS_H
#define API_SESSIONS_H

#include "daemon/api/internal.h"

/* Of a session that is made, or taken over, without one. */
#define HEARTBEAT    " heartbeat=30s"
#define HEARTBEAT_US (30 * SEC)

/* A session for this request, which HELLO or RESUME begins. NULL: the request was answered. */
struct api_session *session_new(struct api *api, struct evhttp_request *req);
struct api_session *session_find(struct api *api, uint64_t number, const char *secret);
/* Whether this client may use it: that of the same uid or certificate, and of this host as the one that made it. */
bool session_is_for(const struct api_session *s, struct evhttp_request *req);
void session_is_gone(struct evhttp_request *req); /* answers so */
void session_drop(struct api_session *s); /* its calls were answered; the service hears that its client is gone */
int sessions_init(struct api *api); /* 0 or -ENOMEM */
void sessions_release(struct api *api);

#endif
