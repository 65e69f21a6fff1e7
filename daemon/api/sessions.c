/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of the API that have a session of the service now; see api.h for the rules. */
#include "daemon/api/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PUSHES_MOST  ((size_t)256 * 1024) /* bytes of pushes of a session that are not read yet */
#define CUTS_AT_ONCE 16
#define TURN         5 /* ticks: the shortest heartbeat is four times as long */

static const char gone_text[] = "the session has ended: make a new one by POST /v1/sessions";

/* --- what the service answers ---------------------------------------------------------------------------------------- */

/* A grant that the session knows is not given back when a request is cut. */
static void grant_is_known(struct api_session *s, const char *what, int64_t fence)
{
	struct call *c;

	TAILQ_FOREACH(c, &s->calls, next)
		if (c->ask == ASK_LOCK && strcmp(c->what, what) == 0)
			c->known = fence;
}

static bool asks_again(const struct call *cut)
{
	const struct call *c;

	TAILQ_FOREACH(c, &cut->session->calls, next)
		if (c != cut && c->ask == ASK_LOCK && strcmp(c->what, cut->what) == 0)
			return true;
	return false;
}

/* No client hears of this grant. */
static void grant_give_back(struct call *c, int64_t fence)
{
	char line[REPLY_MAX];

	if (c->waits && fence > 0 && fence != c->known && !asks_again(c) &&
	    snprintf(line, sizeof(line), "UNLOCK %s count=0 fence=%" PRId64, c->what, fence) < (int)sizeof(line))
		call_begin(call_add(c->session, ASK_OTHER, NULL, line));
}

static void call_answer(struct call *c, int status, const struct reply_line *line)
{
	struct evhttp_request *req = call_end(c);

	if (req)
		problem_answer(req, status, line);
}

static void lock_answered(struct call *c, const struct reply_line *line)
{
	int64_t fence = line->kind == LINE_OK ? reply_number(line, "fence", 0) : 0;

	if (c->req && c->waits && call_is_left(c))
		call_drop_client(c);
	if (!c->req && fence > 0)
		grant_give_back(c, fence);
	else if (fence > 0)
		grant_is_known(c->session, c->what, fence);
	call_answer(c, problem_status(line), line);
}

static void calls_go_on(struct api_session *s)
{
	struct call *c;

	s->open = true;
	TAILQ_FOREACH(c, &s->calls, next)
		if (!c->sent)
			call_send(c);
}

static void hello_answered(struct call *c, const struct reply_line *line)
{
	struct api_session *s = c->session;
	struct span secret = reply_find(line, "secret");
	char where[64 + SECRET_MOST];

	if (line->kind != LINE_OK || secret.n == 0 || secret.n > SECRET_MOST) {
		call_answer(c, problem_status(line), line);
		session_drop(s);
		return;
	}
	s->open = true;
	s->number = (uint64_t)reply_number(line, "session", 0);
	memcpy(s->secret, secret.p, secret.n);
	if (!c->req) {
		call_begin(call_add(s, ASK_QUIT, NULL, "QUIT"));
		call_free(c);
		return;
	}
	snprintf(where, sizeof(where), SESSIONS_PATH "/%" PRIu64 "-%s", s->number, s->secret);
	evhttp_add_header(evhttp_request_get_output_headers(c->req), "Location", where);
	call_answer(c, 201, line);
}

static void resume_answered(struct call *c, const struct reply_line *line)
{
	struct api_session *s = c->session;

	call_free(c);
	if (line->kind == LINE_OK) {
		calls_go_on(s);
	} else if (line->kind == LINE_ERR && span_equal(line->code, SPAN("NOTFOUND"))) {
		session_refuse_all(s, 410, "NOTFOUND", gone_text);
		session_drop(s);
	} else {
		while ((c = TAILQ_FIRST(&s->calls)))
			call_answer(c, problem_status(line), line);
		session_drop(s);
	}
}

static void subscribe_answered(struct call *c, const struct reply_line *line)
{
	struct api_session *s = c->session;
	struct evhttp_request *req = c->req;
	struct visit *v = c->visit;

	if (line->kind != LINE_OK || !req) {
		call_answer(c, problem_status(line), line);
		return;
	}
	call_free(c);
	follower_begin(s, req, v);
	calls_beat(s->api);
}

static void call_answered(struct call *c, const struct reply_line *line)
{
	switch (c->ask) {
	case ASK_HELLO:
		hello_answered(c, line);
		break;
	case ASK_RESUME:
		resume_answered(c, line);
		break;
	case ASK_LOCK:
		lock_answered(c, line);
		break;
	case ASK_HAD:
		if (line->kind == LINE_OK)
			grant_is_known(c->session, c->what, reply_number(line, "fence", 0));
		call_free(c);
		break;
	case ASK_SUBSCRIBE:
		subscribe_answered(c, line);
		break;
	case ASK_QUIT:
	case ASK_OTHER:
		call_answer(c, problem_status(line), line);
		break;
	}
}

static uint64_t tag_number(struct span tag)
{
	uint64_t n = 0;

	for (size_t i = 0; i < tag.n && tag.p[i] >= '0' && tag.p[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(tag.p[i] - '0');
	return n;
}

static void on_line(struct asker *a, const struct reply_line *line)
{
	struct api_session *s = (struct api_session *)a; /* its first member */
	uint64_t tag = tag_number(line->tag);
	struct call *c;

	if (line->kind == LINE_PUSH)
		follower_keep(s, line);
	if (line->kind == LINE_PUSH || line->kind == LINE_ROW)
		return;
	TAILQ_FOREACH(c, &s->calls, next) {
		if (c->tag == tag) {
			call_answered(c, line);
			return;
		}
	}
}

/* --- sessions ------------------------------------------------------------------------------------------------------- */

void session_drop(struct api_session *s)
{
	while (!TAILQ_EMPTY(&s->calls))
		call_free(TAILQ_FIRST(&s->calls));
	follower_end(s->follower);
	asker_close(&s->asker);
	for (unsigned i = 0; i < EVENTS_KEPT; i++)
		mem_free(s->event[i].text);
	TAILQ_REMOVE(&s->api->sessions, s, next);
	s->api->sessions_n--;
	explicit_bzero(s->secret, sizeof(s->secret));
	mem_free(s);
}

/* The service has hung up: the session has ended, its grace has begun, or somebody has resumed it. The next request shows which. */
static void on_over(struct asker *a)
{
	struct api_session *s = (struct api_session *)a;

	session_refuse_all(s, 503, "UNAVAILABLE", "the session was cut off meanwhile: ask again");
	session_drop(s);
}

/* Returns the groups of the peer, which refers to them. The caller frees them. */
static uint32_t *peer_of(struct evhttp_request *req, struct peer *ret_peer, char subject[SUBJECT_MAX])
{
	uint32_t *groups = gate_peer(req, ret_peer);

	if (visit_subject(req, subject, SUBJECT_MAX))
		ret_peer->subject = subject;
	else
		subject[0] = '\0';
	return groups;
}

void session_is_gone(struct evhttp_request *req)
{
	problem(req, 410, "NOTFOUND", gone_text);
}

bool session_is_for(const struct api_session *s, struct evhttp_request *req)
{
	char subject[SUBJECT_MAX];
	struct peer peer;

	free(peer_of(req, &peer, subject));
	return peer.uid == s->uid && peer.is_local == s->is_local && strcmp(subject, s->subject) == 0;
}

struct api_session *session_find(struct api *api, uint64_t number, const char *secret)
{
	struct api_session *s;

	TAILQ_FOREACH(s, &api->sessions, next)
		if (s->number == number && secret_is(s->secret, secret))
			return s;
	return NULL;
}

static bool origin_has_share(const struct api *api, const char *origin, size_t n)
{
	const struct api_session *s;
	unsigned own = 0;

	TAILQ_FOREACH(s, &api->sessions, next)
		own += s->origin_n == n && memcmp(s->origin, origin, n) == 0;
	return api->sessions_n < API_SESSIONS && own <= VISITS_RATIO * (API_SESSIONS - api->sessions_n);
}

struct api_session *session_new(struct api *api, struct evhttp_request *req)
{
	struct api_session *s = mem_alloc(sizeof(*s));
	struct peer peer;
	uint32_t *groups = peer_of(req, &peer, s->subject);
	bool open;

	peer.heartbeat_us = HEARTBEAT_US;
	s->uid = peer.uid;
	s->is_local = peer.is_local;
	s->origin_n = peer_origin(peer.is_unix, peer.uid, peer.address, strlen(peer.address), s->origin);
	s->asker.line = on_line;
	s->asker.over = on_over;
	s->asker.most = PUSHES_MOST;
	/* Without an address the client has gone: a session that it resumes now would belong to nobody. */
	open = peer.address[0] && origin_has_share(api, s->origin, s->origin_n) && asker_open(api->web, &s->asker, &peer);
	free(groups);
	if (!open) {
		mem_free(s);
		problem(req, 429, "LIMIT", "too many sessions of this peer, or of all: end those that are not used");
		return NULL;
	}
	s->api = api;
	s->before = s->events = (uint64_t)clock_wall_us(); /* a resumed session gets higher ids than before */
	TAILQ_INIT(&s->calls);
	TAILQ_INSERT_TAIL(&api->sessions, s, next);
	api->sessions_n++;
	return s;
}

/* --- the beat ------------------------------------------------------------------------------------------------------- */

/* Each session has its turn twice a second: a fifth of them at a time. */
static void on_beat(evutil_socket_t fd, short what, void *context)
{
	struct api *api = context;
	struct instant now = clock_boottime();
	struct api_session *s, *next;
	unsigned cuts = CUTS_AT_ONCE;
	bool more = false;

	(void)fd, (void)what;
	api->ticks++;
	for (s = TAILQ_FIRST(&api->sessions); s; s = next) {
		bool turn = s->asker.session % TURN == api->ticks % TURN, waits = session_waits(s, &cuts);

		next = TAILQ_NEXT(s, next);
		more |= waits || s->follower;
		if (turn && waits && s->open)
			asker_send(&s->asker, "PING");
		if (turn && s->follower)
			sse_beat(&s->follower->out, now);
	}
	if (!more)
		event_del(api->beat);
}

int sessions_init(struct api *api)
{
	TAILQ_INIT(&api->sessions);
	api->beat = event_new(api->web->base, -1, EV_PERSIST, on_beat, api);
	return api->beat ? 0 : -ENOMEM;
}

void sessions_release(struct api *api)
{
	while (!TAILQ_EMPTY(&api->sessions))
		session_drop(TAILQ_FIRST(&api->sessions));
	if (api->beat)
		event_free(api->beat);
}
