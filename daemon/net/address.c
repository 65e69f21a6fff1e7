/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers from socket addresses. Only 127/8 and ::1 are local: for any other address another host may be involved. */
#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static void peer_unix(int fd, struct peer *p)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	p->is_unix = p->is_local = true;
	snprintf(p->address, sizeof(p->address), "unix");
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && n == sizeof(who)) {
		p->pid = who.pid;
		p->uid = who.uid;
	}
}

static void peer_ipv4(const struct in_addr *address, in_port_t port, struct peer *p)
{
	char text[INET_ADDRSTRLEN];

	p->is_local = ntohl(address->s_addr) >> 24 == 127;
	inet_ntop(AF_INET, address, text, sizeof(text));
	snprintf(p->address, sizeof(p->address), "%s:%u", text, ntohs(port));
}

static void peer_ipv6(const struct in6_addr *address, in_port_t port, struct peer *p)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr mapped;

	if (IN6_IS_ADDR_V4MAPPED(address)) {
		memcpy(&mapped, &address->s6_addr[12], sizeof(mapped));
		peer_ipv4(&mapped, port, p);
		return;
	}
	p->is_local = IN6_IS_ADDR_LOOPBACK(address);
	inet_ntop(AF_INET6, address, text, sizeof(text));
	snprintf(p->address, sizeof(p->address), "[%s]:%u", text, ntohs(port));
}

void address_peer(int fd, const struct sockaddr *address, struct peer *ret_peer)
{
	struct peer p = {.pid = -1, .uid = -1};
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (address->sa_family) {
	case AF_UNIX:
		peer_unix(fd, &p);
		break;
	case AF_INET:
		memcpy(&in, address, sizeof(in));
		peer_ipv4(&in.sin_addr, in.sin_port, &p);
		break;
	case AF_INET6:
		memcpy(&in6, address, sizeof(in6));
		peer_ipv6(&in6.sin6_addr, in6.sin6_port, &p);
		break;
	default:
		snprintf(p.address, sizeof(p.address), "family-%d", address->sa_family);
	}
	*ret_peer = p;
}
