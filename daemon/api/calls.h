/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of a session that the service has not answered yet, and the lines that go out for those that were cut off. */
#ifndef API_CALLS_H
#define API_CALLS_H

#include "daemon/api/internal.h"

/*
 * A line for the service. req NULL: nobody waits for its answer. waits: the request may hold its connection for as long as it takes, if its peer has a share
 * left. what: see struct call.
 */
void call_new(struct api_session *s, struct evhttp_request *req, enum ask ask, bool waits, const char *what, const char *line);
struct call *call_add(struct api_session *s, enum ask ask, const char *what, const char *line);
void call_begin(struct call *c); /* sends it, once the session is open */
void call_send(struct call *c);

void call_free(struct call *c);
struct evhttp_request *call_end(struct call *c); /* frees it; the request is the caller's. NULL: its client has gone */
bool call_is_left(const struct call *c);         /* its client has closed the connection, and evhttp has not noticed */
void call_drop_client(struct call *c);           /* closes the connection, with the request */
/* Its client has gone. What it has asked for and is not done yet is not done; the rest of it is done, and told to nobody. */
void call_is_cut(struct call *c);

void session_refuse_all(struct api_session *s, int status, const char *code, const char *why); /* answers all of its calls so */
void session_expel(struct api_session *s); /* answers those that wait that the token is another one, and withdraws them */
/* Whether one of its requests waits, with its client there. Closes up to so many of those whose client has gone. */
bool session_waits(struct api_session *s, unsigned *cuts);
void calls_beat(struct api *api); /* there is a request that waits, or a stream */

#endif
