/* SPDX-License-Identifier: BSD-2-Clause */
/* GET …/events: the stream of server-sent events of a session. */
#ifndef API_FOLLOWER_H
#define API_FOLLOWER_H

#include "daemon/api/internal.h"
#include "daemon/web/sse.h"

#define EVENTS_UNSENT ((size_t)64 * 1024)

struct follower {
	struct api_session *session;
	struct sse out;
};

/* A stream for this request, which is taken, in place of the one that the session has. It begins with what was kept behind this id. */
void follower_begin(struct api_session *s, struct evhttp_request *req, struct visit *v);
void follower_end(struct follower *f); /* as the protocol has it; NULL is allowed */
/* Keeps an event, which the stream tells, if there is one. */
void follower_keep(struct api_session *s, const struct reply_line *push);

#endif
