/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stream of events of a session. With EVENTS_UNSENT unread it is ended. Its client comes back with Last-Event-ID, and gets the events that it has missed,
 * if they are kept.
 */
#include "daemon/api/internal.h"

#include "daemon/base/mem.h"
#include "daemon/web/translate.h"

#include <stdlib.h>

static void on_close(struct evhttp_connection *c, void *context)
{
	struct follower *f = context;
	struct evhttp_request *req = f->out.req;

	(void)c;
	f->session->follower = NULL;
	mem_free(f);
	request_abandoned(req);
}

void follower_end(struct follower *f)
{
	struct sse out;

	if (!f)
		return;
	out = f->out;
	f->session->follower = NULL;
	mem_free(f);
	sse_end(out.req, out.visit);
}

/* --- what is sent --------------------------------------------------------------------------------------------------- */

static void happening_set(struct api_session *s, uint64_t id, char *text, size_t n)
{
	struct happening *h = &s->event[id % EVENTS_KEPT];

	s->event_bytes += n;
	s->event_bytes -= h->n;
	mem_free(h->text);
	*h = (struct happening){text, n};
}

void follower_keep(struct api_session *s, const struct reply_line *push)
{
	struct buf text;

	s->events++;
	buf_init(&text);
	buf_printf(&text, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)s->events, (int)push->code.n, push->code.p);
	notation_line(&text, push);
	notation_raw(&text, "\n\n");
	happening_set(s, s->events, mem_copy(buf_begin(&text), buf_length(&text)), buf_length(&text));
	if (s->events - s->before > EVENTS_KEPT)
		s->before = s->events - EVENTS_KEPT;
	while (s->event_bytes > EVENTS_BYTES && s->before + 1 < s->events)
		happening_set(s, ++s->before, NULL, 0);
	if (s->follower && sse_unsent(&s->follower->out) > EVENTS_UNSENT)
		follower_end(s->follower);
	else if (s->follower)
		sse_send(&s->follower->out, buf_begin(&text), buf_length(&text));
	buf_release(&text);
}

/* A resumed session has new, higher ids. A client that names an older id gets all kept events. */
static void follower_catch_up(struct follower *f)
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(f->out.req), "Last-Event-ID");
	const struct api_session *s = f->session;
	uint64_t last = header ? strtoull(header, NULL, 10) : 0, id = s->before;

	if (last > s->events)
		last = 0;
	while (++id <= s->events)
		if (id > last)
			sse_send(&f->out, s->event[id % EVENTS_KEPT].text, s->event[id % EVENTS_KEPT].n);
}

void follower_begin(struct api_session *s, struct evhttp_request *req, struct visit *v)
{
	struct follower *f = mem_alloc(sizeof(*f));

	follower_end(s->follower);
	f->session = s;
	s->follower = f;
	sse_begin(&f->out, req, v, on_close, f);
	sse_greet(&f->out);
	follower_catch_up(f);
}
