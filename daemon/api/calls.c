/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of a session that the service has not answered yet; see api.h for the rules. */
#include "daemon/api/internal.h"

#include "daemon/base/mem.h"

#include <event2/bufferevent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#define WAITS_MOST (API_CONNECTIONS / 2)
#define TICK_US    (100 * MSEC)

static const char token_text[] = "the token of api.token_file is another one";

void call_free(struct call *c)
{
	if (c->req && evhttp_request_get_connection(c->req))
		evhttp_connection_set_closecb(evhttp_request_get_connection(c->req), NULL, NULL);
	TAILQ_REMOVE(&c->session->calls, c, next);
	mem_free(c->line);
	mem_free(c->what);
	mem_free(c);
}

struct evhttp_request *call_end(struct call *c)
{
	struct evhttp_request *req = c->req;

	if (req && c->waits)
		visit_ends_stream(c->visit);
	call_free(c);
	return req;
}

static void call_refuse(struct call *c, int status, const char *code, const char *why)
{
	struct evhttp_request *req = call_end(c);

	if (req)
		problem(req, status, code, why);
}

void call_send(struct call *c)
{
	c->sent = true;
	asker_send(&c->session->asker, "@%" PRIu64 " %s", c->tag, c->line);
}

void call_is_cut(struct call *c)
{
	c->req = NULL;
	if (c->sent && c->ask == ASK_LOCK)
		asker_send(&c->session->asker, "@%" PRIu64 " CANCEL @%" PRIu64, ++c->session->tags, c->tag);
	else if (!c->sent && c->ask != ASK_RESUME)
		call_free(c);
}

static void on_close(struct evhttp_connection *connection, void *context)
{
	struct call *c = context;
	struct evhttp_request *req = c->req;

	(void)connection;
	call_is_cut(c);
	request_abandoned(req);
}

void calls_beat(struct api *api)
{
	const struct timeval tick = {.tv_usec = TICK_US};

	if (!event_pending(api->beat, EV_TIMEOUT, NULL))
		event_add(api->beat, &tick);
}

struct call *call_add(struct api_session *s, enum ask ask, const char *what, const char *line)
{
	struct call *c = mem_alloc(sizeof(*c));

	*c = (struct call){.session = s, .ask = ask, .tag = ++s->tags, .line = mem_text(line), .what = mem_text(what)};
	TAILQ_INSERT_TAIL(&s->calls, c, next);
	return c;
}

static void call_hold(struct call *c, struct evhttp_request *req, struct visit *v)
{
	c->req = req;
	c->visit = v;
	v->is_stream = c->waits;
	visit_hold(v, req, on_close, c);
}

void call_begin(struct call *c)
{
	if (c->session->open || c->ask == ASK_HELLO || c->ask == ASK_RESUME)
		call_send(c);
}

void call_new(struct api_session *s, struct evhttp_request *req, enum ask ask, bool waits, const char *what, const char *line)
{
	struct visit *v = req ? visit_of(s->api->web, req) : NULL;
	char check[REPLY_MAX];
	struct call *c;

	if (waits && !visit_may_stream(s->api->web, v, WAITS_MOST)) {
		problem(req, 429, "LIMIT", "too many requests of this peer wait");
		return;
	}
	if (waits && what) {
		snprintf(check, sizeof(check), "CHECK %s", what);
		call_begin(call_add(s, ASK_HAD, what, check));
	}
	c = call_add(s, ask, what, line);
	c->waits = waits;
	if (req)
		call_hold(c, req, v);
	call_begin(c);
	if (waits)
		calls_beat(s->api);
}

bool call_is_left(const struct call *c)
{
	struct pollfd p = {.fd = bufferevent_getfd(c->visit->bev), .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0;
}

void call_drop_client(struct call *c)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(c->req);

	evhttp_connection_set_closecb(connection, NULL, NULL);
	c->req = NULL;
	evhttp_connection_free(connection); /* with its request */
}

void session_refuse_all(struct api_session *s, int status, const char *code, const char *why)
{
	while (!TAILQ_EMPTY(&s->calls))
		call_refuse(TAILQ_FIRST(&s->calls), status, code, why);
}

void session_expel(struct api_session *s)
{
	struct call *c, *next;

	for (c = TAILQ_FIRST(&s->calls); c; c = next) {
		struct evhttp_request *req = c->req;

		next = TAILQ_NEXT(c, next);
		if (!req || !c->waits)
			continue;
		evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
		visit_ends_stream(c->visit);
		call_is_cut(c);
		problem(req, 401, "AUTH", token_text);
	}
}

bool session_waits(struct api_session *s, unsigned *cuts)
{
	struct call *c, *next;
	bool waits = false;

	for (c = TAILQ_FIRST(&s->calls); c; c = next) {
		next = TAILQ_NEXT(c, next);
		if (!c->req || !c->waits)
			continue;
		waits = true;
		if (!c->visit->shut || *cuts == 0)
			continue;
		--*cuts;
		call_drop_client(c);
		call_is_cut(c);
	}
	return waits;
}
