/* SPDX-License-Identifier: BSD-2-Clause */
/* See sse.h. */
#include "daemon/web/sse.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/web/answer.h"
#include "daemon/web/visits.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>

#define STALLED_US (30 * SEC)
#define COMMENT_US (10 * SEC)

size_t sse_unsent(const struct sse *s)
{
	return evbuffer_get_length(bufferevent_get_output(s->visit->bev));
}

void sse_say(struct sse *s, const void *bytes, size_t n)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk || evbuffer_add(chunk, bytes, n))
		mem_exhausted();
	s->said = clock_boottime();
	evhttp_send_reply_chunk(s->req, chunk);
	evbuffer_free(chunk);
}

void sse_greet(struct sse *s)
{
	static const char begun[] = "retry: 2000\n: from here on\n\n";

	sse_say(s, begun, sizeof(begun) - 1);
}

void sse_begin(struct sse *s, struct evhttp_request *req, struct visit *v, void (*on_close)(struct evhttp_connection *c, void *context), void *context)
{
	*s = (struct sse){.req = req, .visit = v, .moved = clock_boottime(), .said = clock_boottime()};
	v->is_stream = true;
	visit_hold(v, req, on_close, context);
	answer_headers(req, "text/event-stream; charset=utf-8", NULL);
	evhttp_send_reply_start(req, HTTP_OK, "OK");
}

void sse_end(struct evhttp_request *req, struct visit *v)
{
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
	visit_ends_stream(v);
	evhttp_send_reply_end(req);
}

/* A comment now and then shows a client that the daemon lives, and the daemon a client that has gone without a word. */
bool sse_beat(struct sse *s, struct instant now)
{
	size_t unsent = sse_unsent(s);

	if (unsent == 0 || unsent < s->unsent)
		s->moved = now;
	s->unsent = unsent;
	if (s->visit->shut || instant_diff(now, s->moved) > STALLED_US) {
		visit_shut(s->visit);
		sse_say(s, ":\n\n", 3);
		return false;
	}
	if (unsent == 0 && instant_diff(now, s->said) > COMMENT_US)
		sse_say(s, ":\n\n", 3);
	return true;
}
