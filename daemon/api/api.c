/* SPDX-License-Identifier: BSD-2-Clause */
/* See api.h. Turns a request of HTTP into a line. */
#include "daemon/api/api.h"

#include "daemon/api/fields.h"
#include "daemon/api/internal.h"
#include "daemon/base/mem.h"
#include "daemon/web/translate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define HEARTBEAT_LEAST (2 * SEC)
#define HEARTBEAT_MOST  (3600 * SEC)
#define GRACE           " grace=10s"
#define QUOTED_NAME     (NAME_MAX_BYTES * 4 + 3)

_Static_assert(QUOTED_NAME + FIELDS_MOST + 128 <= REPLY_MAX, "a line has its tag, a word, a name, and fields");

enum kind { OF_SESSIONS, OF_SESSION, OF_LOCK, OF_EVENTS, OF_NO_NAME, OF_NOTHING };

/* The parts of a path. */
struct target {
	enum kind kind;
	uint64_t number;
	char secret[SECRET_MOST + 1];
	char name[QUOTED_NAME + 1]; /* as in the protocol */
};

/* --- paths ---------------------------------------------------------------------------------------------------------- */

static bool take(const char **at, const char *text)
{
	size_t n = strlen(text);
	bool there = strncmp(*at, text, n) == 0;

	*at += there ? n : 0;
	return there;
}

/* NUMBER-SECRET. */
static bool take_session(const char **at, struct target *t)
{
	size_t digits = strspn(*at, "0123456789"), n;

	if (digits == 0 || digits > 16 || (*at)[digits] != '-')
		return false;
	t->number = strtoull(*at, NULL, 10);
	*at += digits + 1;
	n = strspn(*at, "0123456789abcdef");
	if (n == 0 || n > SECRET_MOST)
		return false;
	memcpy(t->secret, *at, n);
	t->secret[n] = '\0';
	*at += n;
	return true;
}

/* A name may have slashes, as they are or as %2F. */
static bool take_name(const char *at, struct target *t)
{
	char name[NAME_MAX_BYTES];
	size_t n;

	if (!url_decode(span_of(at), false, name, sizeof(name), &n) || n == 0)
		return false;
	t->name[quote((struct span){name, n}, t->name, QUOTED_NAME)] = '\0';
	return true;
}

static enum kind target_read(struct evhttp_request *req, struct target *t)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *at = uri ? evhttp_uri_get_path(uri) : NULL;

	*t = (struct target){.kind = OF_NOTHING};
	if (!at || !take(&at, SESSIONS_PATH))
		return OF_NOTHING;
	if (!*at)
		return OF_SESSIONS;
	if (!take(&at, "/") || !take_session(&at, t))
		return OF_NOTHING;
	if (!*at)
		return OF_SESSION;
	if (strcmp(at, "/events") == 0)
		return OF_EVENTS;
	if (!take(&at, "/locks/"))
		return OF_NOTHING;
	return take_name(at, t) ? OF_LOCK : OF_NO_NAME;
}

/* --- what is asked -------------------------------------------------------------------------------------------------- */

struct route {
	enum kind kind;
	enum evhttp_cmd_type method;
	enum ask ask;
	const char *word;   /* of the line */
	const char *always; /* fields that the line has in any case */
	uint32_t reserved;  /* fields that a request may not have: bits of enum field */
};

#define BIT(field) (UINT32_C(1) << FIELD_##field)

static const struct route routes[] = {
	{OF_SESSIONS, EVHTTP_REQ_POST, ASK_HELLO, "HELLO 1", "", 0},
	{OF_SESSION, EVHTTP_REQ_PUT, ASK_OTHER, "PING", "", 0},
	{OF_SESSION, EVHTTP_REQ_DELETE, ASK_QUIT, "QUIT", "", 0},
	{OF_LOCK, EVHTTP_REQ_POST, ASK_LOCK, "LOCK", " count=1", BIT(COUNT)},
	{OF_LOCK, EVHTTP_REQ_GET, ASK_OTHER, "CHECK", "", 0},
	{OF_LOCK, EVHTTP_REQ_PUT, ASK_OTHER, "EXTEND", "", 0},
	{OF_LOCK, EVHTTP_REQ_DELETE, ASK_OTHER, "UNLOCK", " count=0", BIT(COUNT)},
	{OF_EVENTS, EVHTTP_REQ_GET, ASK_SUBSCRIBE, "SUBSCRIBE", "", 0},
};

static const struct {
	enum evhttp_cmd_type method;
	const char *word;
} methods[] = {{EVHTTP_REQ_GET, "GET"}, {EVHTTP_REQ_POST, "POST"}, {EVHTTP_REQ_PUT, "PUT"}, {EVHTTP_REQ_DELETE, "DELETE"}};

static const struct route *route_find(enum kind kind, enum evhttp_cmd_type method)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++)
		if (routes[i].kind == kind && routes[i].method == method)
			return &routes[i];
	return NULL;
}

static void refuse_method(struct evhttp_request *req, enum kind kind)
{
	char allowed[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (route_find(kind, methods[i].method))
			n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n > 0 ? ", " : "", methods[i].word);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allowed);
	problem(req, 405, "UNKNOWN", "this path has no such method: see Allow");
}

static bool body_is_json(struct evhttp_request *req, bool there)
{
	const char *type = evhttp_find_header(evhttp_request_get_input_headers(req), "Content-Type");
	size_t n = sizeof("application/json") - 1;

	if (!type)
		return !there && evhttp_request_get_command(req) != EVHTTP_REQ_POST;
	return strncasecmp(type, "application/json", n) == 0 && strchr("; \t", type[n]);
}

/* False: it was answered. */
static bool fields_read(struct evhttp_request *req, const struct route *route, struct fields *f)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	size_t n = evbuffer_get_length(in);
	const char *body = n > 0 ? (const char *)evbuffer_pullup(in, -1) : "";

	if (!body_is_json(req, n > 0)) {
		problem(req, 415, "ARG", "POST, and each body, needs Content-Type: application/json");
		return false;
	}
	if (!fields_of_query(f, evhttp_uri_get_query(uri)) || !fields_of_body(f, (struct span){body, n})) {
		problem(req, 400, "ARG", f->why);
		return false;
	}
	if (f->given & route->reserved) {
		problem(req, 400, "ARG", "there is no count over HTTP: an owner holds a lock once");
		return false;
	}
	return true;
}

/* A session without a heartbeat, and without a connection, would have no end. */
static bool heartbeat_is_allowed(struct evhttp_request *req, const struct fields *f)
{
	if (!fields_has(f, FIELD_HEARTBEAT) || (f->heartbeat_us >= HEARTBEAT_LEAST && f->heartbeat_us <= HEARTBEAT_MOST))
		return true;
	problem(req, 400, "ARG", "heartbeat is a duration from 2s to 1h, as in \"30s\"");
	return false;
}

static struct api_session *session_of(struct api *api, struct evhttp_request *req, const struct target *t)
{
	struct api_session *s = session_find(api, t->number, t->secret);
	char line[64 + SECRET_MOST];

	if (s && !session_is_for(s, req)) {
		session_is_gone(req);
		return NULL;
	}
	if (s)
		return s;
	s = session_new(api, req);
	if (!s)
		return NULL;
	s->number = t->number;
	memcpy(s->secret, t->secret, sizeof(s->secret));
	snprintf(line, sizeof(line), "RESUME %llu %s", (unsigned long long)t->number, t->secret);
	call_new(s, NULL, ASK_RESUME, false, NULL, line);
	return s;
}

static void ask(struct api *api, struct evhttp_request *req, const struct route *route, const struct target *t, struct fields *f)
{
	char line[REPLY_MAX], what[REPLY_MAX];
	struct api_session *s;
	bool waits = route->ask == ASK_SUBSCRIBE || (route->ask == ASK_LOCK && f->waits);

	if (route->ask == ASK_HELLO) {
		fields_put(f, fields_has(f, FIELD_HEARTBEAT) ? "" : HEARTBEAT);
		fields_put(f, fields_has(f, FIELD_GRACE) ? "" : GRACE);
	}
	s = route->ask == ASK_HELLO ? session_new(api, req) : session_of(api, req, t);
	if (!s)
		return;
	snprintf(line, sizeof(line), "%s%s%s%s%.*s", route->word, t->name[0] ? " " : "", t->name, route->always, (int)buf_length(&f->text),
	         buf_length(&f->text) > 0 ? buf_begin(&f->text) : "");
	snprintf(what, sizeof(what), "%s%.*s", t->name, (int)f->owner_n, f->owner_n ? buf_begin(&f->text) + f->owner : "");
	call_new(s, req, route->ask, waits, route->ask == ASK_LOCK ? what : NULL, line);
}

/* --- who may ask ---------------------------------------------------------------------------------------------------- */

static bool is_refused(struct web *w, struct evhttp_request *req)
{
	int status = gate_refuses(w, req, false);

	if (status)
		problem(req, status, status == 401 ? "AUTH" : status == 421 ? "DENIED" : "SYNTAX", gate_text(w, status));
	else if (evhttp_find_header(evhttp_request_get_input_headers(req), "Origin"))
		problem(req, 403, "DENIED", "this is not for pages of the web: a request with an Origin is refused");
	else
		return false;
	return true;
}

static void serve(struct web *w, struct evhttp_request *req)
{
	struct target t;
	enum kind kind = target_read(req, &t);
	const struct route *route = route_find(kind, evhttp_request_get_command(req));
	struct fields f;

	if (is_refused(w, req))
		return;
	if (w->paused || w->stopping) {
		problem(req, 503, "DRAINING", "the daemon restarts or stops: ask again");
		return;
	}
	if (kind == OF_NOTHING) {
		problem(req, 404, "NOTFOUND", "there is " SESSIONS_PATH ", and below it SESSION, SESSION/locks/NAME and SESSION/events");
		return;
	}
	if (kind == OF_NO_NAME) {
		problem(req, 400, "ARG", "a name has 1 to 512 bytes, and in a URL a percent sign stands before two hexadecimal digits");
		return;
	}
	if (!route) {
		refuse_method(req, kind);
		return;
	}
	fields_init(&f);
	if (fields_read(req, route, &f) && (route->ask != ASK_HELLO || heartbeat_is_allowed(req, &f)))
		ask(w->context, req, route, &t, &f);
	fields_release(&f);
}

/* --- begin and end -------------------------------------------------------------------------------------------------- */

static int start(struct web *w)
{
	struct api *api = mem_alloc(sizeof(*api));

	api->web = w;
	w->context = api;
	return sessions_init(api);
}

static void end(struct web *w, const char *why)
{
	struct api *api = w->context;
	struct api_session *s;

	TAILQ_FOREACH(s, &api->sessions, next) {
		session_refuse_all(s, 503, "DRAINING", why);
		follower_end(s->follower);
	}
}

static void expel(struct web *w)
{
	struct api *api = w->context;
	struct api_session *s;

	TAILQ_FOREACH(s, &api->sessions, next) {
		session_expel(s);
		follower_end(s->follower);
	}
}

static void stop(struct web *w)
{
	struct api *api = w->context;

	if (!api)
		return;
	sessions_release(api);
	mem_free(api);
	w->context = NULL;
}

const struct web_room api_room = {.start = start, .serve = serve, .end = end, .expel = expel, .stop = stop};
