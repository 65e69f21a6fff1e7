/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See follower.h. A client that does not read is never waited for: with EVENTS_UNSENT unread, or after STALLED_US without a byte, the stream is ended. It comes
 * back with Last-Event-ID, and is told what it has missed, as far as it was kept.
 */
#include "daemon/api/follower.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/web/answer.h"
#include "daemon/web/internal.h"
#include "daemon/web/notation.h"

#include <event2/bufferevent.h>
#include <stdlib.h>

#define STALLED_US (30 * SEC)
#define COMMENT_US (10 * SEC)

static size_t follower_unsent(const struct follower *f)
{
	return evbuffer_get_length(bufferevent_get_output(f->visit->bev));
}

static void follower_say(struct follower *f, const char *bytes, size_t n)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk || evbuffer_add(chunk, bytes, n))
		mem_exhausted();
	f->said = clock_boottime();
	evhttp_send_reply_chunk(f->req, chunk);
	evbuffer_free(chunk);
}

void follower_forget(struct follower *f)
{
	if (!f)
		return;
	evhttp_connection_set_closecb(evhttp_request_get_connection(f->req), NULL, NULL);
	f->session->follower = NULL;
	mem_free(f);
}

static void on_close(struct evhttp_connection *c, void *context)
{
	struct follower *f = context;
	struct evhttp_request *req = f->req;

	(void)c;
	f->session->follower = NULL;
	mem_free(f);
	request_abandoned(req);
}

void follower_end(struct follower *f)
{
	struct evhttp_request *req = f ? f->req : NULL;

	if (!f)
		return;
	visit_ends_stream(f->visit);
	follower_forget(f);
	evhttp_send_reply_end(req);
}

/* --- what is told --------------------------------------------------------------------------------------------------- */

static void follower_tell(struct follower *f, const struct happening *h)
{
	follower_say(f, h->text, h->n);
}

void follower_keep(struct api_session *s, const struct reply_line *push)
{
	struct happening *h = &s->event[++s->events % EVENTS_KEPT];
	struct buf text;

	buf_init(&text);
	buf_printf(&text, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)s->events, (int)push->code.n, push->code.p);
	notation_line(&text, push);
	notation_raw(&text, "\n\n");
	mem_free(h->text);
	*h = (struct happening){s->events, mem_copy(buf_begin(&text), buf_length(&text)), buf_length(&text)};
	buf_release(&text);
	if (!s->follower)
		return;
	if (follower_unsent(s->follower) > EVENTS_UNSENT)
		follower_end(s->follower);
	else
		follower_tell(s->follower, h);
}

/* An id that this process has not given is one of a process before: the client is told all that is kept. */
static void follower_catch_up(struct follower *f)
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(f->req), "Last-Event-ID");
	const struct api_session *s = f->session;
	uint64_t last = header ? strtoull(header, NULL, 10) : 0, id;

	if (last > s->events)
		last = 0;
	for (id = s->events > EVENTS_KEPT ? s->events - EVENTS_KEPT + 1 : 1; id <= s->events; id++)
		if (id > last)
			follower_tell(f, &s->event[id % EVENTS_KEPT]);
}

/* A comment now and then shows a client that the daemon lives, and the daemon a client that has gone without a word. */
void follower_beat(struct follower *f, struct instant now)
{
	size_t unsent = follower_unsent(f);

	if (unsent == 0 || unsent < f->unsent)
		f->moved = now;
	f->unsent = unsent;
	if (f->visit->shut || instant_diff(now, f->moved) > STALLED_US) {
		visit_shut(f->visit);
		follower_say(f, ":\n\n", 3);
	} else if (unsent == 0 && instant_diff(now, f->said) > COMMENT_US) {
		follower_say(f, ":\n\n", 3);
	}
}

void follower_begin(struct api_session *s, struct evhttp_request *req, struct visit *v)
{
	static const char begun[] = "retry: 2000\n: from here on\n\n";
	struct follower *f = mem_alloc(sizeof(*f));

	follower_end(s->follower);
	*f = (struct follower){.session = s, .req = req, .visit = v, .said = clock_boottime(), .moved = clock_boottime()};
	s->follower = f;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, f);
	answer_headers(req, "text/event-stream; charset=utf-8", NULL);
	evhttp_send_reply_start(req, HTTP_OK, "OK");
	follower_say(f, begun, sizeof(begun) - 1);
	follower_catch_up(f);
}
