/* SPDX-License-Identifier: BSD-2-Clause */
/* GET …/events: the stream of server-sent events of a session. */
#ifndef API_FOLLOWER_H
#define API_FOLLOWER_H

#include "daemon/api/internal.h"
#include "daemon/base/instant.h"

#define EVENTS_UNSENT ((size_t)64 * 1024)

struct follower {
	struct api_session *session;
	struct evhttp_request *req;
	struct visit *visit;
	size_t unsent;        /* at the last beat */
	struct instant moved; /* when less was unsent than at the beat before */
	struct instant said;  /* when something was sent last */
};

/* A stream for this request, which is taken, in place of the one that the session has. It begins with what was kept behind this id. */
void follower_begin(struct api_session *s, struct evhttp_request *req, struct visit *v);
void follower_end(struct follower *f); /* as the protocol has it; NULL is allowed */
void follower_forget(struct follower *f); /* its connection is being closed; NULL is allowed */
/* Keeps an event, which the stream tells, if there is one. */
void follower_keep(struct api_session *s, const struct reply_line *push);
void follower_beat(struct follower *f, struct instant now); /* once a second */

#endif
