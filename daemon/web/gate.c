/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may ask. A page of a foreign site can make a browser ask here, under a name that the site resolves to this address. The browser then sends that name as
 * the Host, so only known names are answered (DNS rebinding).
 */
#include "daemon/web/internal.h"

#include "daemon/base/mem.h"
#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOST_ROOM 256

/* The host without its port and without the brackets of an IPv6 address. False: that is no valid host. */
static bool host_bare(const char *text, char out[HOST_ROOM])
{
	const char *begin = *text == '[' ? text + 1 : text, *rest;
	size_t n = strcspn(begin, *text == '[' ? "]" : ":");

	rest = begin + n + (*text == '[' && begin[n] == ']');
	if (n == 0 || n >= HOST_ROOM || (*text == '[' && begin[n] != ']'))
		return false;
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	memcpy(out, begin, n);
	out[n] = '\0';
	if (n > 1 && out[n - 1] == '.')
		out[n - 1] = '\0';
	return true;
}

static bool is_listed(const char *hosts, const char *host)
{
	size_t n = strlen(host), word;

	for (; hosts && *hosts; hosts += word + (hosts[word] == ' ')) {
		word = strcspn(hosts, " ");
		if (word == n && strncasecmp(hosts, host, n) == 0)
			return true;
	}
	return false;
}

/* A browser that sends an address as the Host has connected to that address, wherever its page is from. */
static bool is_literal(const char *host)
{
	struct in6_addr room;

	return inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1;
}

static bool host_is_ours(const struct web *w, const char *text)
{
	char host[HOST_ROOM];

	return host_bare(text, host) &&
	       (strcasecmp(host, "localhost") == 0 || is_literal(host) || is_listed(w->hosts, host) || (w->host && strcasecmp(host, w->host) == 0));
}

static bool has_token(const char *token, struct evhttp_request *req)
{
	const char *text = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");

	if (!text || strncasecmp(text, "Bearer ", 7) != 0)
		return false;
	text += 7;
	return secret_is(token, text + strspn(text, " "));
}

bool gate_has_metrics_token(const struct web *w, struct evhttp_request *req)
{
	return w->metrics_token && has_token(w->metrics_token, req);
}

/* RFC 9112, 5.1. */
static bool name_is_plain(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && name[n - 1] != ' ' && name[n - 1] != '\t';
}

/*
 * The headers that say whose a request is and where it ends must occur once, and mean the same to every proxy (RFC 9112, 3.2, 6.1 and 6.3). evhttp takes the
 * first of several, and ignores codings that it does not know.
 */
static bool headers_are_plain(struct evhttp_request *req)
{
	enum { HOST, LENGTH, CODING, AUTHORIZATION, ONCE_N };
	static const char *const once[ONCE_N] = {"Host", "Content-Length", "Transfer-Encoding", "Authorization"};
	const char *value[ONCE_N] = {NULL};
	const struct evkeyval *header;

	TAILQ_FOREACH(header, evhttp_request_get_input_headers(req), next) {
		if (!name_is_plain(header->key))
			return false;
		for (int i = 0; i < ONCE_N; i++) {
			if (strcasecmp(header->key, once[i]) != 0)
				continue;
			if (value[i])
				return false;
			value[i] = header->value;
		}
	}
	if (value[LENGTH] && (value[CODING] || value[LENGTH][strspn(value[LENGTH], "0123456789")]))
		return false;
	if (value[CODING] && (req->minor == 0 || strcasecmp(value[CODING], "chunked") != 0))
		return false;
	return value[HOST] || req->minor == 0;
}

int gate_refuses(struct web *w, struct evhttp_request *req, bool open)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *named = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");

	if (req->major != 1 || req->minor < 0) {
		req->major = req->minor = 1; /* the version of the answer */
		return 505;
	}
	if (!headers_are_plain(req))
		return HTTP_BADREQUEST;
	if ((host && !host_is_ours(w, host)) || (named && *named && !host_is_ours(w, named)))
		return 421;
	return open || !w->token || has_token(w->token, req) ? 0 : 401;
}

const char *gate_text(const struct web *w, int status)
{
	switch (status) {
	case 401:
		return w->room ? "a token is needed: Authorization: Bearer TOKEN, with the token of api.token_file"
			       : "a token is needed: Authorization: Bearer TOKEN, with the token of http.token_file";
	case 421:
		return "this Host is not served here: add its name to http.hosts";
	case 505:
		return "HTTP/1.0 and HTTP/1.1 are served here";
	default:
		return "Host, Content-Length, Transfer-Encoding: chunked and Authorization stand once, and no header has a space before its colon";
	}
}

uint32_t *gate_peer(struct evhttp_request *req, struct peer *ret_peer)
{
	evutil_socket_t fd = bufferevent_getfd(evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));
	struct sockaddr_storage address = {0};
	socklen_t n = sizeof(address);
	uint32_t *groups;
	bool known = getpeername(fd, (struct sockaddr *)&address, &n) == 0;

	address_peer(fd, (const struct sockaddr *)&address, ret_peer);
	if (!known)
		ret_peer->address[0] = '\0';
	groups = admin_groups_of(fd, ret_peer, &ret_peer->groups_n);
	ret_peer->groups = groups;
	return groups;
}
