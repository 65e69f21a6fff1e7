/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to HTTP requests. Each one ends its connection. */
#include "daemon/web/internal.h"

#include "daemon/base/mem.h"

#include <event2/bufferevent.h>
#include <stdio.h>
#include <string.h>

const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},         {201, "Created"},   {400, "Bad Request"},         {401, "Unauthorized"},          {403, "Forbidden"},
		{404, "Not Found"},  {405, "Method Not Allowed"}, {408, "Request Timeout"}, {409, "Conflict"},         {410, "Gone"},
		{415, "Unsupported Media Type"}, {421, "Misdirected Request"}, {422, "Unprocessable Content"}, {423, "Locked"}, {429, "Too Many Requests"},
		{500, "Internal Server Error"}, {505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Service Unavailable";
}

bool request_is_head(struct evhttp_request *req)
{
	return evhttp_request_get_command(req) == EVHTTP_REQ_HEAD;
}

void request_abandoned(struct evhttp_request *req)
{
	if (!evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

void answer_headers(struct evhttp_request *req, const char *type, const char *csp)
{
	struct evkeyvalq *out = evhttp_request_get_output_headers(req);

	evhttp_add_header(out, "Content-Type", type);
	evhttp_add_header(out, "Cache-Control", "no-store");
	evhttp_add_header(out, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(out, "Referrer-Policy", "no-referrer");
	evhttp_add_header(out, "Cross-Origin-Resource-Policy", "same-origin");
	evhttp_add_header(out, "Content-Security-Policy", csp ? csp : "default-src 'none'; frame-ancestors 'none'");
	evhttp_add_header(out, "Connection", "close");
}

/*
 * evhttp reads while it writes. It would keep what a client sends after its request. It would also end the answer to a client that has closed its side but
 * still reads, or that pauses for 5 s; visits.c knows how long an answer may take. But after CONNECT evhttp does not end the connection: there its own timeout
 * is needed.
 */
static void answer_alone(struct evhttp_request *req)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));

	if (evhttp_request_get_command(req) == EVHTTP_REQ_CONNECT) {
		bufferevent_setwatermark(bev, EV_READ, 0, UNASKED_MOST);
		return;
	}
	bufferevent_disable(bev, EV_READ);
	bufferevent_set_timeouts(bev, NULL, NULL);
}

static void answer_body(struct evhttp_request *req, int status, const char *type, struct evbuffer *body, size_t n, const char *csp)
{
	char length[24];

	answer_headers(req, type, csp);
	snprintf(length, sizeof(length), "%zu", n);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Length", length);
	evhttp_send_reply(req, status, reason_of(status), body);
	answer_alone(req);
	evbuffer_free(body);
}

void answer(struct evhttp_request *req, int status, const char *type, const void *body, size_t n, const char *csp)
{
	struct evbuffer *out = evbuffer_new();

	if (!out || (!request_is_head(req) && evbuffer_add(out, body, n)))
		mem_exhausted();
	answer_body(req, status, type, out, n, csp);
}

static void on_sent(const void *bytes, size_t n, void *text)
{
	(void)bytes, (void)n;
	buf_release(text);
	mem_free(text);
}

void answer_long(struct evhttp_request *req, const char *type, struct buf *text)
{
	struct evbuffer *out = evbuffer_new();
	struct buf *kept = mem_alloc(sizeof(*kept));
	size_t n = buf_length(text);

	*kept = *text;
	buf_init(text);
	if (!out || evbuffer_add_reference(out, buf_begin(kept), n, on_sent, kept))
		mem_exhausted();
	if (request_is_head(req))
		evbuffer_drain(out, n);
	answer_body(req, HTTP_OK, type, out, n, NULL);
}

void answer_error(struct evhttp_request *req, int status, const char *text)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	if (status == 401)
		evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate", "Bearer realm=\"redlockd\"");
	else if (status == 405)
		evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
	else if (status == 503)
		evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", "1");
	answer(req, status, TYPE_TEXT, line, n > 0 && (size_t)n < sizeof(line) ? (size_t)n : strlen(line), NULL);
}
