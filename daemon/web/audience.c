/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See audience.h. Of equal audiences one alone has its snapshot made, and one other waits: whoever comes meanwhile joins that. A client that has gone is
 * forgotten as soon as evhttp tells so, or, since evhttp does not read while it answers, when its snapshot is to begin. A TCP client that only closes cannot be
 * told from one that has sent all and reads on.
 */
#include "daemon/web/audience.h"

#include "daemon/base/mem.h"
#include "daemon/web/answer.h"
#include "daemon/web/gate.h"
#include "daemon/web/internal.h"
#include "daemon/web/snapshot.h"

#include <event2/bufferevent.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOTS_AT_ONCE 8
#define REQUESTS_MOST     64 /* of all audiences: connections are left for other paths */

_Static_assert(SNAPSHOTS_AT_ONCE + STREAMS_MOST <= WEB_SESSIONS, "each has a session");

static const char busy_text[] = "too many requests at a time";

struct guest {
	TAILQ_ENTRY(guest) next;
	struct audience *audience;
	struct evhttp_request *req;
};

struct audience {
	TAILQ_ENTRY(audience) next; /* in web.audiences, in the order in which they have come */
	struct web *web;
	struct peer peer; /* of the first one */
	uint32_t *groups;
	char *query; /* NULL: none */
	struct snapshot *snapshot; /* NULL: it waits */
	TAILQ_HEAD(guests, guest) guests;
};

/* --- equal ones --- */

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What the rules judge. */
static bool has_same_rights(const struct peer *a, const struct peer *b)
{
	return a->is_unix == b->is_unix && a->is_local == b->is_local && a->is_admin == b->is_admin && a->uid == b->uid && a->groups_n == b->groups_n &&
	       (a->groups_n == 0 || memcmp(a->groups, b->groups, a->groups_n * sizeof(*a->groups)) == 0);
}

static struct audience *audience_find(const struct web *w, const struct peer *peer, const char *query, bool waits)
{
	struct audience *a;

	TAILQ_FOREACH(a, &w->audiences, next)
		if (!a->snapshot == waits && is_same_text(a->query, query) && has_same_rights(&a->peer, peer))
			return a;
	return NULL;
}

/* --- come and go --- */

static struct audience *audience_new(struct web *w, const struct peer *peer, const char *query)
{
	struct audience *a = mem_alloc(sizeof(*a));
	size_t n = peer->groups_n * sizeof(*peer->groups);

	a->web = w;
	a->peer = *peer;
	a->peer.groups = a->groups = n > 0 ? memcpy(mem_alloc(n), peer->groups, n) : NULL;
	a->query = query ? mem_copy(query, strlen(query)) : NULL;
	TAILQ_INIT(&a->guests);
	TAILQ_INSERT_TAIL(&w->audiences, a, next);
	return a;
}

static void audience_free(struct audience *a)
{
	a->web->being_made -= a->snapshot != NULL;
	TAILQ_REMOVE(&a->web->audiences, a, next);
	mem_free(a->groups);
	mem_free(a->query);
	mem_free(a);
}

/* Its request is the caller's. */
static struct evhttp_request *guest_leave(struct guest *g)
{
	struct evhttp_request *req = g->req;
	struct evhttp_connection *c = evhttp_request_get_connection(req);

	if (c)
		evhttp_connection_set_closecb(c, NULL, NULL);
	TAILQ_REMOVE(&g->audience->guests, g, next);
	g->audience->web->guests--;
	mem_free(g);
	return req;
}

static void audiences_go_on(struct web *w);

static void on_close(struct evhttp_connection *c, void *context)
{
	struct guest *g = context;
	struct audience *a = g->audience;
	struct web *w = a->web;

	(void)c;
	request_abandoned(guest_leave(g));
	if (!TAILQ_EMPTY(&a->guests))
		return;
	snapshot_free(a->snapshot);
	audience_free(a);
	audiences_go_on(w);
}

static void guest_add(struct audience *a, struct evhttp_request *req)
{
	struct guest *g = mem_alloc(sizeof(*g));

	g->audience = a;
	g->req = req;
	TAILQ_INSERT_TAIL(&a->guests, g, next);
	a->web->guests++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, g);
}

/* --- answers --- */

static void audience_dismiss(struct audience *a, int status, const char *text)
{
	while (!TAILQ_EMPTY(&a->guests))
		answer_error(guest_leave(TAILQ_FIRST(&a->guests)), status, text);
	audience_free(a);
}

static void on_failed(void *context, int status, const char *text)
{
	struct audience *a = context;
	struct web *w = a->web;

	audience_dismiss(a, status, text);
	audiences_go_on(w);
}

static void on_made(void *context, struct buf *text)
{
	struct audience *a = context;
	struct shared *shared = shared_new(text);
	struct web *w = a->web;

	while (!TAILQ_EMPTY(&a->guests))
		answer_shared(guest_leave(TAILQ_FIRST(&a->guests)), TYPE_JSON, shared);
	shared_free(shared);
	audience_free(a);
	audiences_go_on(w);
}

void audiences_end(struct web *w)
{
	struct audience *a;

	while ((a = TAILQ_FIRST(&w->audiences))) {
		snapshot_free(a->snapshot);
		audience_dismiss(a, HTTP_SERVUNAVAIL, "the daemon is stopping");
	}
}

/* --- whose snapshot begins --- */

static bool guest_has_left(const struct guest *g)
{
	struct evhttp_connection *c = evhttp_request_get_connection(g->req);
	struct pollfd p = {.fd = bufferevent_getfd(evhttp_connection_get_bufferevent(c))};

	return poll(&p, 1, 0) > 0;
}

/* False: nobody is left. */
static bool audience_is_there(struct audience *a)
{
	struct guest *g, *next;

	for (g = TAILQ_FIRST(&a->guests); g; g = next) {
		next = TAILQ_NEXT(g, next);
		if (guest_has_left(g))
			evhttp_connection_free(evhttp_request_get_connection(guest_leave(g)));
	}
	return !TAILQ_EMPTY(&a->guests);
}

static void audience_begin(struct audience *a)
{
	const struct snapshot_taker taker = {a, on_made, on_failed};
	struct web *w = a->web;

	if (!audience_is_there(a)) {
		audience_free(a);
		return;
	}
	a->snapshot = snapshot_begin(w, &a->peer, a->query, &taker);
	if (a->snapshot)
		w->being_made++;
	else
		audience_dismiss(a, HTTP_SERVUNAVAIL, busy_text);
}

static void audiences_go_on(struct web *w)
{
	struct audience *a, *next;

	for (a = TAILQ_FIRST(&w->audiences); a && w->being_made < SNAPSHOTS_AT_ONCE && !w->paused && !w->stopping; a = next) {
		next = TAILQ_NEXT(a, next);
		if (!a->snapshot && !audience_find(w, &a->peer, a->query, false))
			audience_begin(a);
	}
}

void audience_join(struct web *w, struct evhttp_request *req)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	struct audience *a;
	struct peer peer;
	uint32_t *groups;

	if (w->paused || w->stopping || w->guests >= REQUESTS_MOST) {
		answer_error(req, HTTP_SERVUNAVAIL, busy_text);
		return;
	}
	groups = gate_peer(req, &peer);
	a = audience_find(w, &peer, query, true);
	guest_add(a ? a : audience_new(w, &peer, query), req);
	free(groups);
	audiences_go_on(w);
}
