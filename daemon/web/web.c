/* SPDX-License-Identifier: BSD-2-Clause */
/* The web listener: begins, ends, and passes each request to the function that answers it. */
#include "daemon/web/web.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/web/internal.h"
#include "daemon/web/page.h"
#include "tls/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_S  5
#define KEEPALIVE_US (60 * SEC)

/* --- what is answered at once --- */

static void serve_live(struct web *w, struct evhttp_request *req)
{
	(void)w;
	answer(req, HTTP_OK, TYPE_TEXT, "ok\n", 3, NULL);
}

static void serve_ready(struct web *w, struct evhttp_request *req)
{
	struct buf out;
	bool ready;

	buf_init(&out);
	ready = w->sink.ready(w->sink.context, &out);
	answer(req, ready ? HTTP_OK : HTTP_SERVUNAVAIL, TYPE_TEXT, buf_begin(&out), buf_length(&out), NULL);
	buf_release(&out);
}

static void serve_metrics(struct web *w, struct evhttp_request *req)
{
	if (buf_length(&w->figures) == 0)
		w->sink.metrics(w->sink.context, &w->figures);
	answer(req, HTTP_OK, TYPE_METRICS, buf_begin(&w->figures), buf_length(&w->figures), NULL);
}

void web_end_pass(struct web *w)
{
	buf_release(&w->figures);
	w->requests_end = INSTANT_NEVER;
}

static void serve_page(struct web *w, struct evhttp_request *req)
{
	(void)w;
	answer(req, HTTP_OK, TYPE_HTML, page_text, page_length, page_csp);
}

/* --- requests --- */

struct path {
	const char *path;
	void (*serve)(struct web *w, struct evhttp_request *req);
	bool open;  /* needs no token */
	enum { LOOKS_NOT, LOOKS_AT_SOME, LOOKS_AT_ALL } looks; /* what the rules must let its peer see; for locks they judge the sessions that ask */
};

static const struct path paths[] = {
	{"/", serve_page, false, LOOKS_AT_SOME},
	{"/livez", serve_live, true, LOOKS_NOT},
	{"/readyz", serve_ready, true, LOOKS_NOT},
	{"/metrics", serve_metrics, false, LOOKS_AT_ALL},
	{"/api/v1/snapshot", snapshot_begin, false, LOOKS_NOT},
	{"/api/v1/events", stream_begin, false, LOOKS_AT_SOME},
};

static const struct path *path_find(struct evhttp_request *req)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

	for (size_t i = 0; path && i < sizeof(paths) / sizeof(*paths); i++)
		if (strcmp(path, paths[i].path) == 0)
			return &paths[i];
	return NULL;
}

static bool may_look(struct web *w, struct evhttp_request *req, const struct path *path)
{
	struct peer peer;
	uint32_t *groups;
	bool may;

	if (path->looks == LOOKS_NOT)
		return true;
	groups = gate_peer(req, &peer);
	may = w->sink.looks(w->sink.context, &peer, path->looks == LOOKS_AT_SOME);
	free(groups);
	return may;
}

static void on_request(struct evhttp_request *req, void *context)
{
	struct web *w = context;
	const struct path *path = path_find(req);
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	bool by_token = path && path->serve == serve_metrics && gate_has_metrics_token(w, req);
	int refused = w->room ? 0 : gate_refuses(w, req, path && (path->open || by_token));

	visit_of(w, req);
	if (w->room)
		w->room->serve(w, req);
	else if (refused)
		answer_error(req, refused, gate_text(w, refused));
	else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD)
		answer_error(req, HTTP_BADMETHOD, "this is read only: GET or HEAD");
	else if (!path)
		answer_error(req, HTTP_NOTFOUND, "not found");
	else if (!by_token && !may_look(w, req, path))
		answer_error(req, 403, "the rules do not let you look");
	else
		path->serve(w, req);
}

/* --- begin and end --- */

static bool web_start(struct web *w)
{
	w->http = evhttp_new(w->base);
	w->beat = event_new(w->base, -1, EV_PERSIST, streams_beat, w);
	if (!w->http || !w->beat || askers_init(w) || visits_init(w))
		return false;
	evhttp_set_allowed_methods(w->http, UINT16_MAX); /* on_request refuses: evhttp would answer 501 */
	evhttp_set_max_headers_size(w->http, HEAD_MOST);
	evhttp_set_max_body_size(w->http, BODY_MOST);
	evhttp_set_timeout(w->http, TIMEOUT_S);
	evhttp_set_gencb(w->http, on_request, w);
	return !w->room || w->room->start(w) == 0;
}

struct web *web_new(struct event_base *base, const struct web_conf *conf, const struct web_sink *sink)
{
	struct web *w = mem_alloc(sizeof(*w));

	w->base = base;
	w->sink = *sink;
	w->requests_end = INSTANT_NEVER;
	w->room = conf->room;
	w->tls = conf->tls;
	w->path = mem_text(conf->path);
	w->host = mem_text(conf->host);
	w->hosts = mem_text(conf->hosts);
	w->token = mem_text(conf->token);
	w->metrics_token = mem_text(conf->metrics_token);
	w->port = conf->port;
	w->access = conf->access;
	TAILQ_INIT(&w->streams);
	buf_init(&w->figures);
	TAILQ_INIT(&w->visits.all);
	TAILQ_INIT(&w->askers.due);
	if (web_start(w))
		return w;
	web_free(w);
	return NULL;
}

/* evhttp owns the descriptor from here on. */
int web_listen_at(struct web *w, const struct listener *l)
{
	struct listener *mine = &w->listener[w->listeners];

	if (w->listeners == LISTENER_ADDRESSES_MAX || !evhttp_accept_socket_with_handle(w->http, l->fd))
		return -ENOMEM;
	*mine = *l;
	mine->fd = -1;
	w->listeners++;
	visits_watch_listeners(w);
	return 0;
}

static int listen_unix(struct web *w, struct inherited *before, struct listener *ret_listener)
{
	int r;

	if (!before || !inherited_take_unix(before, w->path, ret_listener))
		return listener_unix(w->path, &w->access, ret_listener);
	r = listener_allow(w->path, &w->access);
	if (r < 0)
		listener_release(ret_listener);
	return r;
}

int web_listen(struct web *w, struct inherited *before)
{
	struct listener l[LISTENER_ADDRESSES_MAX];
	int n = w->path ? listen_unix(w, before, l) : tcp_listeners(w->host, w->port, KEEPALIVE_US, before, l), r = 0;

	/* The previous process listened at another address with this port, perhaps at all addresses. */
	if (n == -EADDRINUSE && !w->path && before && inherited_drop_port(before, w->port))
		n = tcp_listeners(w->host, w->port, KEEPALIVE_US, before, l);
	if (n < 0)
		return n;
	for (int i = 0; i < (w->path ? 1 : n); i++) {
		if (!r)
			r = web_listen_at(w, &l[i]);
		if (r < 0)
			listener_release(&l[i]);
	}
	return r;
}

static void listener_note(struct evhttp_bound_socket *bound, void *context)
{
	struct evhttp_bound_socket **one = context;

	*one = bound;
}

/* Unlinks the socket before it is closed. */
static void listeners_close(struct web *w)
{
	struct evhttp_bound_socket *one;

	while (w->listeners > 0)
		listener_release(&w->listener[--w->listeners]);
	do {
		one = NULL;
		evhttp_foreach_bound_socket(w->http, listener_note, &one);
		if (one)
			evhttp_del_accept_socket(w->http, one);
	} while (one);
}

void web_look(struct web *w)
{
	int r;

	if (!w->path || w->stopping || w->paused || (w->listeners > 0 && listener_is_there(&w->listener[0])))
		return;
	listeners_close(w);
	r = web_listen(w, NULL);
	if (r == 0)
		log_event(LOG_WARN, "listen", "socket=%s note=\"somebody had removed the file: it is made again\"", w->path);
	else if (r != w->trouble)
		log_event(LOG_ERROR, "listen", "socket=%s error=\"%s\" note=\"nobody can connect there; it is tried again\"", w->path, strerror(-r));
	w->trouble = r;
}

bool web_is_lost(const struct web *w)
{
	return w->trouble != 0;
}

void web_stop(struct web *w)
{
	w->stopping = true;
	listeners_close(w);
	if (w->room)
		w->room->end(w, "the daemon is stopping");
	else
		askers_end(w, GONE_HANGUP);
}

/* --- a restart: requests end, and the listening sockets go to the next process; who connects meanwhile waits there --- */

void web_pause(struct web *w)
{
	w->paused = true;
	visits_accept(w, false);
	if (w->room)
		w->room->end(w, "the daemon restarts: ask again");
	askers_end(w, GONE_RESTART);
}

void web_resume(struct web *w)
{
	w->paused = false;
	visits_accept(w, true);
}

bool web_is_idle(const struct web *w)
{
	return visits_are_over(w);
}

struct packing {
	struct fdlist *fds;
	size_t n;
};

/* evhttp closes its own copy. */
static void listener_pack(struct evhttp_bound_socket *bound, void *context)
{
	struct packing *p = context;
	int fd = fcntl(evhttp_bound_socket_get_fd(bound), F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return;
	fdlist_add(p->fds, fd);
	p->n++;
}

size_t web_pack(struct web *w, struct fdlist *fds)
{
	struct packing packing = {fds, 0};

	evhttp_foreach_bound_socket(w->http, listener_pack, &packing);
	for (unsigned i = 0; i < w->listeners; i++) {
		mem_free(w->listener[i].path); /* or its file would be unlinked */
		w->listener[i].path = NULL;
	}
	return packing.n;
}

/* --- what a reload changes --- */

/* False: it has not changed. */
static bool token_change(char **kept, const char *token)
{
	if (*kept && token ? strcmp(*kept, token) == 0 : *kept == token)
		return false;
	mem_wipe(*kept);
	*kept = mem_text(token);
	return true;
}

void web_set_token(struct web *w, const char *token)
{
	if (!token_change(&w->token, token))
		return;
	if (w->room)
		w->room->expel(w);
	else
		askers_end(w, GONE_HANGUP);
}

void web_set_metrics_token(struct web *w, const char *token)
{
	token_change(&w->metrics_token, token);
}

void web_set_tls(struct web *w, struct ssl_ctx_st *tls)
{
	tls_context_free(w->tls);
	w->tls = tls;
}

void web_free(struct web *w)
{
	if (!w)
		return;
	w->stopping = true; /* no snapshot begins */
	while (w->listeners > 0)
		listener_release(&w->listener[--w->listeners]);
	web_end_pass(w);
	askers_silence(w);
	if (w->room)
		w->room->stop(w);
	if (w->http)
		evhttp_free(w->http);
	visits_release(w);
	askers_release(w);
	if (w->beat)
		event_free(w->beat);
	mem_wipe(w->token);
	mem_wipe(w->metrics_token);
	tls_context_free(w->tls);
	free(w->hosts);
	free(w->host);
	free(w->path);
	free(w);
}
