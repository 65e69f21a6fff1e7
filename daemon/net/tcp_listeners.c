/* SPDX-License-Identifier: BSD-2-Clause */
/* See tcp_listeners.h. */
#include "daemon/net/tcp_listeners.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* only_v6: there are several addresses, so an IPv6 socket must not accept IPv4 as well. A single one follows the default of the system. */
static int address_make(const struct addrinfo *a, int64_t keepalive_us, bool only_v6, struct listener *ret_listener)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1, r;

	if (fd < 0)
		return -errno;
	r = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ? -errno : 0;
	if (!r && only_v6 && a->ai_family == AF_INET6)
		r = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) ? -errno : 0;
	if (!r)
		r = listener_tune(fd, keepalive_us);
	if (!r)
		r = bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, SOMAXCONN) ? -errno : 0;
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_listener = (struct listener){.fd = fd};
	return 0;
}

static int address_listen(const struct addrinfo *a, int64_t keepalive_us, bool only_v6, struct inherited *inherited, struct listener *ret_listener)
{
	struct listener l;
	int r;

	if (!inherited || !inherited_take_address(inherited, a->ai_addr, only_v6, &l))
		return address_make(a, keepalive_us, only_v6, ret_listener);
	r = listener_tune(l.fd, keepalive_us);
	if (r < 0)
		listener_release(&l);
	else
		*ret_listener = l;
	return r;
}

static int host_error(int code)
{
	switch (code) {
	case EAI_SYSTEM:
		return -errno;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	default:
		return -EADDRNOTAVAIL;
	}
}

/* Skips an address family that this host lacks, if another address works. */
static int addresses_listen(const struct addrinfo *list, int64_t keepalive_us, struct inherited *inherited, struct listener *listeners)
{
	const struct addrinfo *a;
	int n = 0, r = -EADDRNOTAVAIL;

	for (a = list; a && n < LISTENER_ADDRESSES_MAX; a = a->ai_next) {
		r = address_listen(a, keepalive_us, list->ai_next != NULL, inherited, &listeners[n]);
		if (!r)
			n++;
		else if (r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
			break;
	}
	if (!r || ((r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL) && n))
		return n;
	while (n)
		listener_release(&listeners[--n]);
	return r;
}

int tcp_listeners(const char *host, uint16_t port, int64_t keepalive_us, struct inherited *inherited, struct listener ret_listeners[LISTENER_ADDRESSES_MAX])
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	char service[8];
	int r;

	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host && strcmp(host, "*") != 0 ? host : NULL, service, &hints, &list);
	if (r)
		return host_error(r);
	r = addresses_listen(list, keepalive_us, inherited, ret_listeners);
	freeaddrinfo(list);
	return r;
}
