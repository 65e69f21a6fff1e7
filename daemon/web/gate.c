/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is let in. A page of a foreign site can make a browser ask here, by a name that it lets resolve to this address. The browser then names that site as the
 * Host, so only known names are answered (DNS rebinding).
 */
#include "daemon/web/internal.h"

#include "daemon/net/address.h"
#include "daemon/net/admin.h"

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOST_ROOM 256

/* The host without its port and without the brackets of an IPv6 address. False: no host could be written so. */
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

/* The address that the client has connected to. */
static void address_here(struct evhttp_request *req, char out[INET6_ADDRSTRLEN])
{
	evutil_socket_t fd = bufferevent_getfd(evhttp_connection_get_bufferevent(evhttp_request_get_connection(req)));
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_storage room;
	} a;
	socklen_t n = sizeof(a);

	out[0] = '\0';
	if (getsockname(fd, &a.any, &n))
		return;
	if (a.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &a.v4.sin_addr, out, INET6_ADDRSTRLEN);
	else if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr))
		inet_ntop(AF_INET, &a.v6.sin6_addr.s6_addr[12], out, INET6_ADDRSTRLEN);
	else if (a.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &a.v6.sin6_addr, out, INET6_ADDRSTRLEN);
}

static bool is_literal(const char *host)
{
	struct in6_addr room;

	return inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1;
}

static bool is_wildcard(const char *host)
{
	return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "*") == 0;
}

/* The same address may be written in several ways. */
static bool address_equal(const char *a, const char *b)
{
	struct in6_addr x, y;

	if (inet_pton(AF_INET6, a, &x) == 1 && inet_pton(AF_INET6, b, &y) == 1)
		return memcmp(&x, &y, sizeof(x)) == 0;
	return strcasecmp(a, b) == 0;
}

static bool host_is_ours(const struct web *w, struct evhttp_request *req, const char *text)
{
	char host[HOST_ROOM], here[INET6_ADDRSTRLEN];

	if (!host_bare(text, host))
		return false;
	if (strcasecmp(host, "localhost") == 0 || is_listed(w->hosts, host))
		return true;
	address_here(req, here);
	return address_equal(host, here) || (w->host && (address_equal(host, w->host) || (is_wildcard(w->host) && is_literal(host))));
}

bool secret_is(const char *secret, const char *text)
{
	size_t n = strlen(secret), given = strlen(text);
	volatile unsigned char differs = n != given;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(secret[i] ^ text[i < given ? i : given]);
	return !differs;
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
 * What says whose a request is and where it ends stands once, and as every proxy reads it (RFC 9112, 3.2, 6.1 and 6.3). evhttp takes the first of several,
 * and passes over codings that it does not know.
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
		req->major = req->minor = 1; /* those of the answer */
		return 505;
	}
	if (!headers_are_plain(req))
		return HTTP_BADREQUEST;
	if ((host && !host_is_ours(w, req, host)) || (named && *named && !host_is_ours(w, req, named)))
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
