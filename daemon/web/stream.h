/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /api/v1/events: server-sent events, one for each EVENT of the names with a prefix. */
#ifndef WEB_STREAM_H
#define WEB_STREAM_H

#include <event2/util.h>

struct web;
struct evhttp_request;

void stream_begin(struct web *w, struct evhttp_request *req);
void streams_end(struct web *w); /* each is ended as the protocol has it */
void streams_beat(evutil_socket_t fd, short what, void *web); /* once a second */

#endif
