/* SPDX-License-Identifier: BSD-2-Clause */
/* See greeting.h. libevent makes the handshake as soon as it may read, so it may not before its turn. An event of our own waits for the first bytes. */
#include "daemon/web/greeting.h"

#include "daemon/base/mem.h"
#include "daemon/web/internal.h"
#include "tls/tls.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>

struct bufferevent *greeting_new(struct web *w)
{
	struct ssl_st *tls = tls_serve(w->tls, -1);
	struct bufferevent *bev = tls ? bufferevent_openssl_socket_new(w->base, -1, tls, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE) : NULL;

	if (bev)
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1); /* a request has its length, and says itself where it ends */
	else
		tls_free(tls);
	return bev;
}

static void greetings_go_on(struct web *w)
{
	const struct timeval at_once = {0};

	if (!TAILQ_EMPTY(&w->visits.greeting))
		event_add(w->visits.greet, &at_once);
}

static void visit_leaves_greetings(struct web *w, struct visit *v)
{
	if (v->greets)
		TAILQ_REMOVE(&w->visits.greeting, v, in_greeting);
	v->greets = false;
}

static void on_greet(evutil_socket_t fd, short what, void *context)
{
	struct web *w = context;
	struct visit *v = TAILQ_FIRST(&w->visits.greeting);

	(void)fd, (void)what;
	if (!v)
		return;
	visit_leaves_greetings(w, v);
	bufferevent_enable(v->bev, EV_READ);
	greetings_go_on(w);
}

static void on_first_bytes(evutil_socket_t fd, short what, void *context)
{
	struct visit *v = context;
	struct web *w = v->web;

	(void)fd, (void)what;
	v->greets = true;
	TAILQ_INSERT_TAIL(&w->visits.greeting, v, in_greeting);
	greetings_go_on(w);
}

void greeting_await(struct visit *v)
{
	if (!bufferevent_openssl_get_ssl(v->bev) || v->greeting)
		return;
	bufferevent_disable(v->bev, EV_READ | EV_WRITE);
	v->greeting = event_new(v->web->base, bufferevent_getfd(v->bev), EV_READ, on_first_bytes, v);
	if (!v->greeting || event_add(v->greeting, NULL))
		mem_exhausted();
}

void greeting_release(struct visit *v)
{
	if (!v->greeting)
		return;
	visit_leaves_greetings(v->web, v);
	event_free(v->greeting);
}

bool greeting_subject(struct evhttp_request *req, char *out, size_t size)
{
	struct ssl_st *tls = bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));

	return tls && tls_subject(tls, out, size);
}

int greetings_init(struct web *w)
{
	TAILQ_INIT(&w->visits.greeting);
	w->visits.greet = evtimer_new(w->base, on_greet, w);
	return w->visits.greet ? 0 : -ENOMEM;
}

void greetings_release(struct web *w)
{
	if (w->visits.greet)
		event_free(w->visits.greet);
}
