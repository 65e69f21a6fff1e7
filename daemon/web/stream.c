/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See stream.h. A client that does not read is never waited for: once STREAM_MOST bytes are unsent, events are left out, and `event: gap` tells how
 * many as soon as it reads again. One that reads nothing for STALLED_US is cut off.
 */
#include "daemon/web/stream.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/web/answer.h"
#include "daemon/web/gate.h"
#include "daemon/web/internal.h"
#include "daemon/web/notation.h"
#include "daemon/web/query.h"

#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_MOST  ((size_t)256 * 1024)
#define STREAM_AGAIN ((size_t)64 * 1024)
#define STALLED_US   (30 * SEC)
#define COMMENT_US   (10 * SEC)

struct stream {
	struct asker asker;
	TAILQ_ENTRY(stream) next;
	struct evhttp_request *req;
	struct visit *visit;
	uint64_t missed;
	size_t unsent;          /* at the last beat */
	struct instant moved;   /* when less was unsent than at the beat before */
	struct instant said;    /* when something was sent last */
};

static size_t stream_unsent(const struct stream *s)
{
	return evbuffer_get_length(bufferevent_get_output(s->visit->bev));
}

static void stream_say(struct stream *s, const void *bytes, size_t n)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk || evbuffer_add(chunk, bytes, n))
		mem_exhausted();
	s->said = clock_boottime();
	evhttp_send_reply_chunk(s->req, chunk);
	evbuffer_free(chunk);
}

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
	struct evhttp_request *req = s->req;

	(void)c;
	stream_free(s);
	request_abandoned(req);
}

static void stream_end(struct stream *s)
{
	struct evhttp_request *req = s->req;

	evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
	visit_ends_stream(s->visit);
	stream_free(s);
	evhttp_send_reply_end(req);
}

void streams_end(struct web *w)
{
	while (!TAILQ_EMPTY(&w->streams))
		stream_end(TAILQ_FIRST(&w->streams));
}

/* --- events --- */

static void stream_say_gap(struct stream *s)
{
	struct buf text;

	if (s->missed == 0 || stream_unsent(s) > STREAM_AGAIN)
		return;
	buf_init(&text);
	buf_printf(&text, "event: gap\ndata: {\"missed\":%llu}\n\n", (unsigned long long)s->missed);
	s->missed = 0;
	stream_say(s, buf_begin(&text), buf_length(&text));
	buf_release(&text);
}

/* Kinds are words of the protocol, so they stand as they are. */
static void stream_say_event(struct stream *s, const struct reply_line *line)
{
	struct span kind = reply_find(line, "kind");
	struct buf text;

	s->missed += s->asker.dropped;
	s->asker.dropped = 0;
	stream_say_gap(s);
	if (s->missed > 0 || stream_unsent(s) > STREAM_MOST) {
		s->missed++;
		return;
	}
	buf_init(&text);
	buf_printf(&text, "event: %.*s\ndata: ", (int)kind.n, kind.p ? kind.p : "");
	notation_line(&text, line);
	notation_raw(&text, "\n\n");
	stream_say(s, buf_begin(&text), buf_length(&text));
	buf_release(&text);
}

static void on_line(struct asker *a, const struct reply_line *line)
{
	static const char begun[] = "retry: 2000\n: from here on\n\n";
	struct stream *s = (struct stream *)a; /* its first member */

	if (line->kind == LINE_PUSH && span_equal(line->code, SPAN("EVENT")))
		stream_say_event(s, line);
	else if (line->kind == LINE_OK)
		stream_say(s, begun, sizeof(begun) - 1);
	else if (line->kind == LINE_ERR)
		stream_end(s);
}

static void on_over(struct asker *a)
{
	stream_end((struct stream *)a);
}

/* A comment now and then shows a client that the daemon lives, and the daemon a client that has gone without a word. */
static void stream_beat(struct stream *s, struct instant now)
{
	size_t unsent = stream_unsent(s);

	if (unsent == 0 || unsent < s->unsent)
		s->moved = now;
	s->unsent = unsent;
	if (s->visit->shut || instant_diff(now, s->moved) > STALLED_US) {
		visit_shut(s->visit);
		stream_say(s, ":\n\n", 3);
		return;
	}
	stream_say_gap(s);
	if (unsent == 0 && instant_diff(now, s->said) > COMMENT_US)
		stream_say(s, ":\n\n", 3);
}

void streams_beat(evutil_socket_t fd, short what, void *web)
{
	struct web *w = web;
	struct instant now = clock_boottime();
	struct stream *s, *next;

	(void)fd, (void)what;
	for (s = TAILQ_FIRST(&w->streams); s; s = next) {
		next = TAILQ_NEXT(s, next);
		stream_beat(s, now);
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

static void stream_start(struct web *w, struct stream *s)
{
	const struct timeval second = {.tv_sec = 1};

	s->visit->is_stream = true;
	s->said = s->moved = clock_boottime();
	TAILQ_INSERT_TAIL(&w->streams, s, next);
	w->streams_n++;
	bufferevent_set_timeouts(s->visit->bev, NULL, NULL);
	bufferevent_setwatermark(s->visit->bev, EV_READ, 0, UNASKED_MOST);
	evhttp_connection_set_timeout(evhttp_request_get_connection(s->req), 0);
	evhttp_connection_set_closecb(evhttp_request_get_connection(s->req), on_close, s);
	answer_headers(s->req, "text/event-stream; charset=utf-8", NULL);
	evhttp_send_reply_start(s->req, HTTP_OK, "OK");
	if (!event_pending(w->beat, EV_TIMEOUT, NULL))
		event_add(w->beat, &second);
}

static bool stream_open(struct web *w, struct stream *s)
{
	struct peer peer;
	uint32_t *groups;
	bool open;

	if (w->streams_n >= STREAMS_MOST || !visit_may_stream(w, s->visit, STREAMS_MOST))
		return false;
	groups = gate_peer(s->req, &peer);
	open = asker_open(w, &s->asker, &peer);
	free(groups);
	return open;
}

void stream_begin(struct web *w, struct evhttp_request *req)
{
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
	s->req = req;
	s->visit = visit_of(w, req);
	s->asker.line = on_line;
	s->asker.over = on_over;
	s->asker.most = STREAM_MOST;
	if (!stream_open(w, s)) {
		free(s);
		answer_error(req, HTTP_SERVUNAVAIL, "too many streams at a time");
		return;
	}
	stream_start(w, s);
	asker_say(&s->asker, "%s", line);
}
