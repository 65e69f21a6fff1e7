/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splits addresses and checks their form. Resolves nothing.
 */
#include "conf/internal.h"

#include "proto/proto.h"
#include "proto/text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 255

/* An address in two parts; port is NULL if none was given. */
struct halves {
	char host[HOST_MAX + 1];
	const char *port;
	bool bracketed;
};

int value_refuse(char why[WHY_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, WHY_MAX, format, args);
	va_end(args);
	return VALUE_BAD;
}

/* A link-local address may name its interface: fe80::1%eth0. */
static bool host_is_v6(const char *host)
{
	struct in6_addr a;
	size_t n = strcspn(host, "%");
	const char *zone = host[n] ? host + n + 1 : "none";
	char bare[HOST_MAX + 1];

	memcpy(bare, host, n);
	bare[n] = '\0';
	return inet_pton(AF_INET6, bare, &a) == 1 && *zone && !zone[strspn(zone, WORD_LETTERS)];
}

bool host_is_name(const char *host)
{
	struct in_addr a;

	if (!*host || *host == '-' || *host == '.' || host[strspn(host, WORD_LETTERS)])
		return false;
	/* A host of digits and dots must be an IPv4 address. Some resolvers also accept 127.1 or 300 as one. */
	return host[strspn(host, "0123456789.")] || inet_pton(AF_INET, host, &a) == 1;
}

static int halves_copy(struct halves *h, const char *host, size_t n, const char *port, char why[WHY_MAX])
{
	if (n > HOST_MAX)
		return value_refuse(why, "the host is longer than %d bytes", HOST_MAX);
	memcpy(h->host, host, n);
	h->host[n] = '\0';
	h->port = port;
	return 0;
}

static int halves_split(const char *text, struct halves *h, char why[WHY_MAX])
{
	char show[SHOW_MAX];
	const char *end = *text == '[' ? strchr(text, ']') : strchr(text, ':');

	h->bracketed = *text == '[';
	if (h->bracketed) {
		if (!end || (end[1] && end[1] != ':'))
			return value_refuse(why, "'%s' is no address; an IPv6 address is written \"[::1]:port\"",
					    text_show(text, show));
		return halves_copy(h, text + 1, (size_t)(end - text - 1), end[1] ? end + 2 : NULL, why);
	}
	if (end && strchr(end + 1, ':'))
		return value_refuse(why, "'%s' is no address; an IPv6 address is written \"[::1]:port\"", text_show(text, show));
	return halves_copy(h, text, end ? (size_t)(end - text) : strlen(text), end ? end + 1 : NULL, why);
}

static int host_check(const struct halves *h, char why[WHY_MAX])
{
	char show[SHOW_MAX];

	if (h->bracketed ? host_is_v6(h->host) : host_is_name(h->host))
		return 0;
	return value_refuse(why, "'%s' is no %s", text_show(h->host, show),
			    h->bracketed ? "IPv6 address" : "host name and no IPv4 address");
}

static int port_check(const char *text, int64_t least, uint16_t *ret_port, char why[WHY_MAX])
{
	char show[SHOW_MAX];
	int64_t port = count_parse(span_of(text), UINT16_MAX);

	if (port < least)
		return value_refuse(why, "'%s' is no port; ports are %u to 65535", text_show(text, show), (unsigned)least);
	*ret_port = (uint16_t)port;
	return 0;
}

static int unix_parse(const char *text, struct conf_address *ret_address, char why[WHY_MAX])
{
	const char *path = text + strlen("unix:");

	if (*path != '/')
		return value_refuse(why, "the path of a Unix socket begins with '/', as in unix:/run/redis/redis.sock");
	if (strlen(path) > SOCKET_PATH_MAX)
		return value_refuse(why, "the path of a Unix socket is at most %d bytes", SOCKET_PATH_MAX);
	*ret_address = (struct conf_address){.label = conf_strdup(text), .path = conf_strdup(path)};
	return 0;
}

/* Refuses the URLs of other clients, which often contain a password. */
static int url_refuse(const char *text, char why[WHY_MAX])
{
	if (!strncasecmp(text, "rediss:", 7) || !strncasecmp(text, "tls:", 4))
		value_refuse(why, "an address is host:port; TLS has a key of its own: redis.tls");
	else
		value_refuse(why, "an address is host:port, [v6]:port or unix:/path; the user, the password and the database have keys of their own: "
		                  "redis.user, redis.password_file, redis.database");
	return strchr(text, '@') ? VALUE_SECRET : VALUE_BAD;
}

static int bare_parse(const char *text, uint16_t port, struct conf_address *ret_address, char why[WHY_MAX])
{
	struct halves h = {0};

	if (strstr(text, "://") || strchr(text, '@'))
		return url_refuse(text, why);
	if (!strncmp(text, "unix:", 5))
		return unix_parse(text, ret_address, why);
	if (*text == '/')
		return value_refuse(why, "the path of a Unix socket is written unix:/path");
	if (halves_split(text, &h, why) || host_check(&h, why) || (h.port && port_check(h.port, 1, &port, why)))
		return VALUE_BAD;
	*ret_address = (struct conf_address){.label = conf_strdup(text), .host = conf_strdup(h.host), .port = port};
	return 0;
}

int address_parse(const char *text, uint16_t port, struct conf_address *ret_address, char why[WHY_MAX])
{
	size_t n = strspn(text, WORD_LETTERS);
	char show[SHOW_MAX];
	int r;

	if (text[n] != '=')
		return bare_parse(text, port, ret_address, why);
	if (n < 1 || n > NODE_NAME_MAX)
		return value_refuse(why, "'%s' has no name before '='; a name has 1 to %d characters of A-Z a-z 0-9 . _ -, as in red1=10.0.0.1:6379",
		                    text_show(text, show), NODE_NAME_MAX);
	r = bare_parse(text + n + 1, port, ret_address, why);
	if (r)
		return r;
	ret_address->name = conf_strdup(text);
	ret_address->name[n] = '\0';
	return 0;
}

/* NOLINTBEGIN(misc-no-recursion): the addresses of sentinels have no sentinels. */
void address_release(struct conf_address *a)
{
	for (size_t i = 0; a->sentinel && i < a->sentinel->count; i++)
		address_release(&a->sentinel->address[i]);
	if (a->sentinel)
		free(a->sentinel->master);
	free(a->sentinel);
	free(a->name);
	free(a->label);
	free(a->path);
	free(a->host);
	*a = (struct conf_address){0};
}

static bool sentinel_equal(const struct conf_sentinel *a, const struct conf_sentinel *b)
{
	if (!a || !b || a->count != b->count || strcmp(a->master, b->master) != 0)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!address_equal(&a->address[i], &b->address[i]))
			return false;
	return true;
}

bool address_equal(const struct conf_address *a, const struct conf_address *b)
{
	if (a->sentinel || b->sentinel)
		return sentinel_equal(a->sentinel, b->sentinel);
	if (a->path || b->path)
		return a->path && b->path && !strcmp(a->path, b->path);
	return a->port == b->port && !strcasecmp(a->host, b->host);
}
/* NOLINTEND(misc-no-recursion) */

int listener_parse(const char *text, const char *usual, char **ret_host, uint16_t *ret_port, char why[WHY_MAX])
{
	char show[SHOW_MAX];
	struct halves h = {0};
	uint16_t port = 0;

	text_show(text, show);
	if (*text == '/')
		return value_refuse(why, "'%s' is a path; Unix sockets belong under listen.unix", show);
	if (count_parse(span_of(text), INT64_MAX) >= 0)
		return value_refuse(why, "a host is missing (did you mean 127.0.0.1:%s?)", show);
	if (*text == ':')
		return value_refuse(why, "a host is missing (did you mean 0.0.0.0%s?)", show);
	if (halves_split(text, &h, why) || host_check(&h, why))
		return VALUE_BAD;
	if (!h.port)
		return value_refuse(why, "'%s' has no port; an address is host:port, as in %s", show, usual);
	if (port_check(h.port, 0, &port, why))
		return VALUE_BAD;
	*ret_host = conf_strdup(h.host);
	*ret_port = port;
	return 0;
}

int web_address_parse(const char *text, struct conf_address *ret_address, char why[WHY_MAX])
{
	struct conf_address a = {0};

	if (!strncmp(text, "unix:", 5))
		return unix_parse(text, ret_address, why);
	if (*text == '/')
		return value_refuse(why, "the path of a Unix socket is written unix:/path");
	if (listener_parse(text, "127.0.0.1:7421", &a.host, &a.port, why))
		return VALUE_BAD;
	a.label = conf_strdup(text);
	*ret_address = a;
	return 0;
}

/* When in doubt, an address is beyond loopback. A wrong yes costs a line in the configuration; a wrong no opens the daemon to the network. */
bool conf_host_is_local(const char *host)
{
	struct in_addr a;

	if (inet_pton(AF_INET, host, &a) == 1)
		return ntohl(a.s_addr) >> 24 == 127;
	return !strcmp(host, "::1") || !strcasecmp(host, "localhost");
}
