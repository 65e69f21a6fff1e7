/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See visits.h. The reference to the bufferevent keeps it when evhttp frees its connection. evhttp has then removed its callbacks. So a sweep finds the
 * connections that are over. There are at most visits.most connections. Beyond that, and while descriptors are short, nothing is accepted. evhttp asks for the
 * bufferevent of a connection before it sets its socket. So only on_arrivals, a later callback, sees the peer of the connection, and ends it if the peer has
 * used up its share. If no more are accepted in this pass of the loop, that lasts until then.
 */
#include "daemon/web/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/net/address.h"
#include "tls/tls.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SWEEP_US    (100 * MSEC)
#define AGAIN_US    (1 * MSEC) /* after refusals, since others may be waiting; and while there are more to free */
#define REQUEST_US  (5 * SEC) /* from accept to the end of the request */
#define ANSWER_US   (60 * SEC) /* from accept to the end of the answer; a stream has none */
#define PAUSE_US    (500 * MSEC)
#define FREES_MOST  64         /* in a pass of the loop, which takes about 300 us */
#define PASS_US     (1 * MSEC) /* the time of reads and writes in a pass of the loop, with the requests in it. The first and the last of them come on top */
#define BYTES_MOST  (2 * ((size_t)HEAD_MOST + BODY_MOST)) /* of a request, including the framing of chunks */
#define LINES_MOST  128        /* of a request */
#define READS_MOST  16         /* before a refusal: a client that sends even more gets a reset */

_Static_assert(LISTENER_ADDRESSES_MAX + 8 <= WEB_DESCRIPTORS - WEB_CONNECTIONS, "what descriptors.c keeps for a listener");
_Static_assert(BYTES_MOST == 32 * 1024 && LINES_MOST == 128, "what on_input says, and docs/http.md");

/* --- TLS: the handshake is made here, at its pace; evhttp reads once it is over --- */

static struct bufferevent *secure_new(struct web *w)
{
	struct ssl_st *tls = tls_serve(w->tls, -1);
	struct bufferevent *bev = tls ? bufferevent_openssl_socket_new(w->base, -1, tls, BUFFEREVENT_SSL_OPEN, BEV_OPT_CLOSE_ON_FREE) : NULL;

	if (bev)
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1); /* a request has its length, and shows itself where it ends */
	else
		tls_free(tls);
	return bev;
}

static void on_shaken(struct paced *o, const char *why)
{
	struct visit *v = container_of(o, struct visit, handshake);

	if (why) {
		visit_shut(v);
		return;
	}
	v->shakes = false;
	bufferevent_enable(v->bev, EV_READ);
}

static void handshake_await(struct visit *v)
{
	v->handshake.tls = bufferevent_openssl_get_ssl(v->bev);
	v->handshake.over = on_shaken;
	v->shakes = v->handshake.tls;
	if (!v->shakes)
		return;
	bufferevent_disable(v->bev, EV_READ | EV_WRITE);
	paced_begin(&v->handshake, &v->web->visits.pacing, bufferevent_getfd(v->bev), v->origin, v->origin_n);
}

bool visit_subject(struct evhttp_request *req, char *out, size_t size)
{
	struct ssl_st *tls = bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));

	return tls && tls_subject(tls, out, size);
}

/* --- connections ---------------------------------------------------------------------------------------------------- */

static void listener_enable(struct evhttp_bound_socket *bound, void *on)
{
	struct evconnlistener *l = evhttp_bound_socket_get_listener(bound);

	if (on)
		evconnlistener_enable(l);
	else
		evconnlistener_disable(l);
}

static void listeners_enable(struct web *w, bool on)
{
	evhttp_foreach_bound_socket(w->http, listener_enable, on ? w : NULL);
}

void visits_accept(struct web *w, bool on)
{
	w->visits.paused = !on;
	listeners_enable(w, on);
}

static void visits_sweep_soon(struct web *w)
{
	const struct timeval soon = {.tv_usec = SWEEP_US};

	if (!event_pending(w->visits.sweep, EV_TIMEOUT, NULL))
		event_add(w->visits.sweep, &soon);
}

static bool visit_is_over(const struct visit *v)
{
	bufferevent_event_cb callback;

	bufferevent_getcb(v->bev, NULL, NULL, &callback, NULL);
	return !callback;
}

static void visit_free(struct web *w, struct visit *v)
{
	TAILQ_REMOVE(&w->visits.all, v, next);
	w->visits.count--;
	paced_end(&v->handshake);
	bufferevent_decref(v->bev);
	free(v);
}

/* False: there may be more, which the next pass frees. */
static bool visits_free_those_over(struct web *w)
{
	struct visit *v, *next;
	unsigned left = FREES_MOST;

	for (v = TAILQ_FIRST(&w->visits.all); v && left > 0; v = next) {
		next = TAILQ_NEXT(v, next);
		if (!visit_is_over(v))
			continue;
		visit_free(w, v);
		left--;
	}
	return left > 0;
}

/* During a handshake: reading the end from the socket would make a step of it, which may take long. */
void visit_shut(struct visit *v)
{
	if (v->shut)
		return;
	v->shut = true;
	paced_end(&v->handshake);
	if (v->shakes)
		bufferevent_trigger_event(v->bev, BEV_EVENT_READING | BEV_EVENT_EOF, 0);
	else
		shutdown(bufferevent_getfd(v->bev), SHUT_RDWR);
}

void visit_hold(struct visit *v, struct evhttp_request *req, void (*on_close)(struct evhttp_connection *c, void *context), void *context)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(req);

	bufferevent_set_timeouts(v->bev, NULL, NULL);
	bufferevent_setwatermark(v->bev, EV_READ, 0, UNASKED_MOST);
	evhttp_connection_set_timeout(connection, 0);
	evhttp_connection_set_closecb(connection, on_close, context);
}

void visit_ends_stream(struct visit *v)
{
	v->is_stream = false;
	v->since = clock_boottime();
}

/* evhttp reads little while it answers. So it may not notice that the client of a stream has gone. */
static bool visit_has_left(const struct visit *v)
{
	struct pollfd p = {.fd = bufferevent_getfd(v->bev), .events = POLLRDHUP};

	return v->is_stream && poll(&p, 1, 0) > 0;
}

static bool visit_is_late(const struct visit *v, struct instant now)
{
	return !v->is_stream && !instant_before(now, instant_add(v->since, v->asked ? ANSWER_US : REQUEST_US));
}

static void on_sweep(evutil_socket_t fd, short what, void *context)
{
	const struct timeval at_once = {.tv_usec = AGAIN_US};
	struct web *w = context;
	struct instant now = clock_boottime();
	struct visit *v;

	(void)fd, (void)what;
	TAILQ_FOREACH(v, &w->visits.all, next)
		if (!visit_is_over(v) && (visit_has_left(v) || visit_is_late(v, now)))
			visit_shut(v);
	if (!visits_free_those_over(w))
		event_add(w->visits.sweep, &at_once);
	if (w->visits.paused && !w->stopping && !w->paused && w->visits.count < w->visits.most && !instant_before(now, w->visits.pause_end))
		visits_accept(w, true);
	if (w->visits.count > 0 || (w->visits.paused && !w->stopping))
		visits_sweep_soon(w);
}

/* --- whose they are --- */

static bool visits_are_of_one_peer(const struct visit *a, const struct visit *b)
{
	return a->origin_n == b->origin_n && memcmp(a->origin, b->origin, a->origin_n) == 0;
}

/* How many others there are: of all peers, and of its own. streams: only streams. */
static unsigned visits_beside(const struct web *w, const struct visit *v, bool streams, unsigned *ret_own)
{
	const struct visit *other;
	unsigned n = 0, own = 0;

	TAILQ_FOREACH(other, &w->visits.all, next) {
		if (other == v || other->origin_n == 0 || other->shut || visit_is_over(other) || (streams && !other->is_stream))
			continue;
		n++;
		own += visits_are_of_one_peer(other, v);
	}
	*ret_own = own;
	return n;
}

static bool visit_has_share(const struct web *w, const struct visit *v, bool streams, unsigned most)
{
	unsigned own, others = visits_beside(w, v, streams, &own);

	return others < most && own <= VISITS_RATIO * (most - others);
}

bool visit_may_stream(const struct web *w, const struct visit *v, unsigned most)
{
	return visit_has_share(w, v, true, most);
}

static void visit_see_origin(struct visit *v)
{
	struct sockaddr_storage address = {0};
	socklen_t n = sizeof(address);
	struct peer peer;
	int fd = bufferevent_getfd(v->bev);

	if (getpeername(fd, (struct sockaddr *)&address, &n))
		address.ss_family = AF_UNSPEC;
	address_peer(fd, (const struct sockaddr *)&address, &peer);
	v->origin_n = peer_origin(peer.is_unix, peer.uid, peer.address, strlen(peer.address), v->origin);
}

/* Reads what the client has sent, or its kernel would discard the answer. A TLS connection gets no answer. */
static void visit_refuse(struct visit *v, const char *status, const char *why)
{
	char line[256], sent[4096];
	int fd = bufferevent_getfd(v->bev);
	int n = snprintf(line, sizeof(line), "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\n", status, why);

	for (unsigned i = 0; !v->handshake.tls && i < READS_MOST && recv(fd, sent, sizeof(sent), MSG_DONTWAIT) == (ssize_t)sizeof(sent); i++)
		;
	if (!v->handshake.tls)
		(void)!send(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	visit_shut(v);
}

static void visit_refuse_place(struct visit *v)
{
	visit_refuse(v, "503 Service Unavailable", "too many connections of this peer");
}

/* The client causes the delay: its request is incomplete, or its answer is not read. */
static bool visit_is_slow(const struct visit *v)
{
	return !v->is_stream && (!v->asked || evbuffer_get_length(bufferevent_get_output(v->bev)) > 0);
}

/* Ends the oldest slow connection of its peer. False: there is none. */
static bool visit_makes_room(struct web *w, const struct visit *v)
{
	struct visit *other;

	TAILQ_FOREACH(other, &w->visits.all, next)
		if (other != v && !other->shut && !visit_is_over(other) && visits_are_of_one_peer(other, v) && visit_is_slow(other))
			break;
	if (!other)
		return false;
	if (other->asked)
		visit_shut(other);
	else
		visit_refuse_place(other);
	return true;
}

/* Its peer has used up its share: it replaces other connections of that peer. */
static bool visit_gets_place(struct web *w, const struct visit *v)
{
	do {
		if (!visit_makes_room(w, v))
			return false;
	} while (!visit_has_share(w, v, false, w->visits.most));
	return true;
}

static void on_arrivals(evutil_socket_t fd, short what, void *context)
{
	const struct timeval at_once = {.tv_usec = AGAIN_US};
	struct web *w = context;
	struct visit *v;

	(void)fd, (void)what;
	w->visits.arrived = 0;
	if (!w->visits.paused)
		listeners_enable(w, true);
	TAILQ_FOREACH(v, &w->visits.all, next) {
		if (v->origin_n > 0 || v->shut || visit_is_over(v))
			continue;
		visit_see_origin(v);
		handshake_await(v);
		if (visit_has_share(w, v, false, w->visits.most))
			continue;
		if (!visit_gets_place(w, v))
			visit_refuse_place(v);
		event_add(w->visits.sweep, &at_once);
	}
}

/* --- what they send ------------------------------------------------------------------------------------------------- */

/* Most requests make the service step, which ends a long pass. But other work here may also come from hundreds of connections at once. */
static void pass_count_time(struct web *w)
{
	struct instant now = clock_boottime();

	w->requests_end = instant_min(w->requests_end, instant_add(now, PASS_US));
	if (!instant_before(now, w->requests_end))
		event_base_loopbreak(w->base);
}

/* Lines in the last bytes; counts up to LINES_MOST. */
static unsigned lines_in(struct evbuffer *in, size_t bytes)
{
	struct evbuffer_ptr at;
	unsigned lines = 0;

	evbuffer_ptr_set(in, &at, evbuffer_get_length(in) - bytes, EVBUFFER_PTR_SET);
	while (lines <= LINES_MOST && (at = evbuffer_search(in, "\n", 1, &at)).pos >= 0) {
		lines++;
		evbuffer_ptr_set(in, &at, 1, EVBUFFER_PTR_ADD);
	}
	return lines;
}

static bool visit_sends_too_much(struct visit *v, struct evbuffer *in, size_t bytes)
{
	v->bytes += bytes;
	v->lines += lines_in(in, bytes);
	return v->bytes > BYTES_MOST || v->lines > LINES_MOST;
}

/* Bytes have come. evhttp sees them next. */
static void on_input(struct evbuffer *in, const struct evbuffer_cb_info *info, void *context)
{
	struct visit *v = context;

	if (info->n_added == 0)
		return;
	pass_count_time(v->web);
	if (!v->asked && !v->shut && visit_sends_too_much(v, in, info->n_added))
		visit_refuse(v, "431 Request Header Fields Too Large", "a request has at most 128 lines and 32 KiB");
	if (v->shut)
		evbuffer_drain(in, evbuffer_get_length(in));
}

/* Part of an answer is sent. With the last part the connection ends, which may take as long as a request. */
static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *context)
{
	struct visit *v = context;

	(void)out;
	if (info->n_deleted > 0)
		pass_count_time(v->web);
}

/* evhttp has accepted a connection, and asks for its bufferevent. */
static struct bufferevent *on_accept(struct event_base *base, void *context)
{
	struct web *w = context;
	struct visit *v;
	struct bufferevent *bev = w->tls ? secure_new(w) : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	if (!bev)
		mem_exhausted();
	v = mem_alloc(sizeof(*v));
	if (w->visits.count + 1 >= w->visits.most)
		(void)visits_free_those_over(w);
	bufferevent_incref(bev);
	v->web = w;
	v->bev = bev;
	v->since = clock_boottime();
	if (!evbuffer_add_cb(bufferevent_get_input(bev), on_input, v) || !evbuffer_add_cb(bufferevent_get_output(bev), on_output, v))
		mem_exhausted();
	TAILQ_INSERT_TAIL(&w->visits.all, v, next);
	if (++w->visits.count >= w->visits.most)
		visits_accept(w, false);
	else if (++w->visits.arrived >= ACCEPTS_PER_PASS)
		listeners_enable(w, false);
	event_active(w->visits.arrivals, EV_TIMEOUT, 0);
	visits_sweep_soon(w);
	return bev;
}

/* libevent calls this with the context of evhttp's own callback. So the web listeners of this process are kept here: that of the page, and that of a room. */
static struct web *listening[2];

/* accept(2) would fail again at once. A shortage affects both listeners. */
static void on_accept_error(struct evconnlistener *listener, void *of_evhttp)
{
	(void)listener, (void)of_evhttp;
	for (unsigned i = 0; i < 2; i++) {
		if (!listening[i] || listening[i]->paused || listening[i]->stopping)
			continue;
		visits_accept(listening[i], false);
		listening[i]->visits.pause_end = instant_add(clock_boottime(), PAUSE_US);
		visits_sweep_soon(listening[i]);
	}
}

static void listener_watch(struct evhttp_bound_socket *bound, void *context)
{
	struct web *w = context;

	listening[w->room != NULL] = w;
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), on_accept_error);
}

void visits_watch_listeners(struct web *w)
{
	evhttp_foreach_bound_socket(w->http, listener_watch, w);
}

bool visits_are_over(const struct web *w)
{
	const struct visit *v;

	TAILQ_FOREACH(v, &w->visits.all, next)
		if (!visit_is_over(v))
			return false;
	return true;
}

size_t visits_unsent(const struct web *w)
{
	const struct visit *v;
	size_t n = 0;

	TAILQ_FOREACH(v, &w->visits.all, next)
		n += evbuffer_get_length(bufferevent_get_output(v->bev));
	return n;
}

struct visit *visit_of(struct web *w, struct evhttp_request *req)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct visit *v;

	TAILQ_FOREACH(v, &w->visits.all, next)
		if (v->bev == bev)
			break;
	v->asked = true;
	return v;
}

int visits_init(struct web *w)
{
	TAILQ_INIT(&w->visits.all);
	w->visits.most = w->room ? API_CONNECTIONS : WEB_CONNECTIONS;
	w->visits.pause_end = INSTANT_PAST;
	w->visits.sweep = evtimer_new(w->base, on_sweep, w);
	w->visits.arrivals = evtimer_new(w->base, on_arrivals, w);
	evhttp_set_bevcb(w->http, on_accept, w);
	return w->visits.sweep && w->visits.arrivals ? pacing_init(&w->visits.pacing, w->base) : -ENOMEM;
}

void visits_release(struct web *w)
{
	struct visit *v, *next;

	for (v = TAILQ_FIRST(&w->visits.all); v; v = next) {
		next = TAILQ_NEXT(v, next);
		visit_free(w, v);
	}
	for (unsigned i = 0; i < 2; i++)
		listening[i] = listening[i] == w ? NULL : listening[i];
	pacing_release(&w->visits.pacing);
	if (w->visits.sweep)
		event_free(w->visits.sweep);
	if (w->visits.arrivals)
		event_free(w->visits.arrivals);
}
