/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server-sent events, and the stream of GET /api/v1/events. Once STREAM_MOST bytes are unsent, events are dropped. When the client reads again, `event: gap`
 * says how many.
 */
#include "daemon/web/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/web/translate.h"

#include <event2/bufferevent.h>
#include <stdlib.h>

#define STALLED_US (30 * SEC)
#define COMMENT_US (10 * SEC)
#define STREAM_MOST  ((size_t)256 * 1024)
#define STREAM_AGAIN ((size_t)64 * 1024)

/* --- any stream ----------------------------------------------------------------------------------------------------- */

size_t sse_unsent(const struct sse *s)
{
	return evbuffer_get_length(bufferevent_get_output(s->visit->bev));
}

void sse_send(struct sse *s, const void *bytes, size_t n)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk || evbuffer_add(chunk, bytes, n))
		mem_exhausted();
	s->sent_at = clock_boottime();
	evhttp_send_reply_chunk(s->req, chunk);
	evbuffer_free(chunk);
}

void sse_greet(struct sse *s)
{
	static const char begun[] = "retry: 2000\n: from here on\n\n";

	sse_send(s, begun, sizeof(begun) - 1);
}

void sse_begin(struct sse *s, struct evhttp_request *req, struct visit *v, void (*on_close)(struct evhttp_connection *c, void *context), void *context)
{
	*s = (struct sse){.req = req, .visit = v, .moved = clock_boottime(), .sent_at = clock_boottime()};
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

/* A comment now and then shows the client that the daemon lives. It also shows the daemon that a client has disappeared. */
bool sse_beat(struct sse *s, struct instant now)
{
	size_t unsent = sse_unsent(s);

	if (unsent == 0 || unsent < s->unsent)
		s->moved = now;
	s->unsent = unsent;
	if (s->visit->shut || instant_diff(now, s->moved) > STALLED_US) {
		visit_shut(s->visit);
		sse_send(s, ":\n\n", 3);
		return false;
	}
	if (unsent == 0 && instant_diff(now, s->sent_at) > COMMENT_US)
		sse_send(s, ":\n\n", 3);
	return true;
}

/* --- that of the page ----------------------------------------------------------------------------------------------- */

struct stream {
	struct asker asker;
	TAILQ_ENTRY(stream) next;
	struct sse out;
	uint64_t missed;
};

static void stream_free(struct stream *s)
{
	struct web *w = s->asker.web;

	TAILQ_REMOVE(&w->streams, s, next);
	w->streams_n--;
	asker_close(&s->asker);
	free(s);
}

static void on_close(struct evhttp_connection *c, void *context)
{
	struct stream *s = context;
	struct evhttp_request *req = s->out.req;

	(void)c;
	stream_free(s);
	request_abandoned(req);
}

static void stream_end(struct stream *s)
{
	struct sse out = s->out;

	stream_free(s);
	sse_end(out.req, out.visit);
}

/* --- events --- */

static void stream_send_gap(struct stream *s)
{
	struct buf text;

	if (s->missed == 0 || sse_unsent(&s->out) > STREAM_AGAIN)
		return;
	buf_init(&text);
	buf_printf(&text, "event: gap\ndata: {\"missed\":%llu}\n\n", (unsigned long long)s->missed);
	s->missed = 0;
	sse_send(&s->out, buf_begin(&text), buf_length(&text));
	buf_release(&text);
}

/* Kinds are words of the protocol, so they need no escapes. */
static void stream_send_event(struct stream *s, const struct reply_line *line)
{
	struct span kind = reply_find(line, "kind");
	struct buf text;

	s->missed += s->asker.dropped;
	s->asker.dropped = 0;
	stream_send_gap(s);
	if (s->missed > 0 || sse_unsent(&s->out) > STREAM_MOST) {
		s->missed++;
		return;
	}
	buf_init(&text);
	buf_printf(&text, "event: %.*s\ndata: ", (int)kind.n, kind.p ? kind.p : "");
	notation_line(&text, line);
	notation_raw(&text, "\n\n");
	sse_send(&s->out, buf_begin(&text), buf_length(&text));
	buf_release(&text);
}

static void on_line(struct asker *a, const struct reply_line *line)
{
	struct stream *s = (struct stream *)a; /* its first member */

	if (line->kind == LINE_PUSH && span_equal(line->code, SPAN("EVENT")))
		stream_send_event(s, line);
	else if (line->kind == LINE_OK)
		sse_greet(&s->out);
	else if (line->kind == LINE_ERR)
		stream_end(s);
}

static void on_over(struct asker *a)
{
	stream_end((struct stream *)a);
}

void streams_beat(evutil_socket_t fd, short what, void *web)
{
	struct web *w = web;
	struct instant now = clock_boottime();
	struct stream *s, *next;

	(void)fd, (void)what;
	for (s = TAILQ_FIRST(&w->streams); s; s = next) {
		next = TAILQ_NEXT(s, next);
		if (sse_beat(&s->out, now))
			stream_send_gap(s);
	}
	if (TAILQ_EMPTY(&w->streams))
		event_del(w->beat);
}

/* --- begin --- */

static bool stream_watch_line(struct evhttp_request *req, char *line, size_t size)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	char prefix[NAME_MAX_BYTES], quoted[NAME_MAX_BYTES * 4 + 3];
	size_t n = 0, length = 0;

	if (query_get(query, "prefix", prefix, sizeof(prefix), &n) == QUERY_BAD)
		return false;
	if (n > 0)
		length = quote((struct span){prefix, n}, quoted, sizeof(quoted));
	return (n == 0 || length > 0) && snprintf(line, size, "WATCH%s%.*s", n > 0 ? " " : "", (int)length, quoted) < (int)size;
}

static void stream_start(struct web *w, struct stream *s, struct evhttp_request *req, struct visit *v)
{
	const struct timeval second = {.tv_sec = 1};

	TAILQ_INSERT_TAIL(&w->streams, s, next);
	w->streams_n++;
	sse_begin(&s->out, req, v, on_close, s);
	if (!event_pending(w->beat, EV_TIMEOUT, NULL))
		event_add(w->beat, &second);
}

static bool stream_open(struct web *w, struct stream *s, struct evhttp_request *req, const struct visit *v)
{
	struct peer peer;
	uint32_t *groups;
	bool open;

	if (w->streams_n >= STREAMS_MOST || !visit_may_stream(w, v, STREAMS_MOST))
		return false;
	groups = gate_peer(req, &peer);
	open = asker_open(w, &s->asker, &peer);
	free(groups);
	return open;
}

void stream_begin(struct web *w, struct evhttp_request *req)
{
	struct visit *v = visit_of(w, req);
	char line[REPLY_MAX];
	struct stream *s;

	if (!stream_watch_line(req, line, sizeof(line))) {
		answer_error(req, HTTP_BADREQUEST, "prefix is the beginning of a name, at most 512 bytes");
		return;
	}
	if (request_is_head(req)) {
		answer(req, HTTP_OK, "text/event-stream; charset=utf-8", "", 0, NULL);
		return;
	}
	s = mem_alloc(sizeof(*s));
	s->asker.line = on_line;
	s->asker.over = on_over;
	s->asker.most = STREAM_MOST;
	if (!stream_open(w, s, req, v)) {
		free(s);
		answer_error(req, HTTP_SERVUNAVAIL, "too many streams at a time");
		return;
	}
	stream_start(w, s, req, v);
	asker_send(&s->asker, "%s", line);
}
