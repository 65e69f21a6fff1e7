/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers from socket addresses. Only 127/8 and ::1 are local: for any other address another host may be involved. */
#include "daemon/net/address.h"
#include "daemon/base/mem.h"
#include "daemon/base/peer.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- whether it is an administrator, and its groups ----------------------------------------------------------------------- */

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

int64_t admin_group(void)
{
	const struct group *g = getgrnam(ADMIN_GROUP);

	return g ? (int64_t)g->gr_gid : -1;
}

static bool is_main_group(int fd, gid_t group)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && n == sizeof(who) && who.gid == group;
}

/* few has room for 64. Returns few, or memory that the caller frees. *ret_n: the number of groups. */
static gid_t *further_groups(int fd, gid_t few[64], size_t *ret_n)
{
	socklen_t n = 64 * sizeof(gid_t);
	gid_t *all = few;
	int r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &n);

	if (r < 0 && n > 64 * sizeof(gid_t)) {
		all = mem_alloc(n);
		r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &n);
	}
	*ret_n = r == 0 ? n / sizeof(gid_t) : 0;
	return all;
}

static bool is_further_group(int fd, gid_t group)
{
	gid_t few[64], *all;
	bool found = false;
	size_t n;

	all = further_groups(fd, few, &n);
	for (size_t i = 0; i < n && !found; i++)
		found = all[i] == group;
	if (all != few)
		free(all);
	return found;
}

uint32_t *admin_groups_of(int fd, const struct peer *peer, unsigned *ret_n)
{
	gid_t few[64], *further;
	struct ucred who;
	socklen_t size = sizeof(who);
	uint32_t *all;
	size_t n;

	*ret_n = 0;
	if (!peer->is_unix || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || size != sizeof(who))
		return NULL;
	further = further_groups(fd, few, &n);
	all = mem_alloc((n + 1) * sizeof(*all));
	all[0] = who.gid;
	for (size_t i = 0; i < n; i++)
		all[i + 1] = further[i];
	if (further != few)
		free(further);
	*ret_n = (unsigned)n + 1;
	return all;
}

bool admin_is_peer(int fd, const struct peer *peer, int64_t group)
{
	if (!peer->is_unix || peer->uid < 0)
		return false;
	if (peer->uid == 0 || (uid_t)peer->uid == geteuid())
		return true;
	return group >= 0 && (is_main_group(fd, (gid_t)group) || is_further_group(fd, (gid_t)group));
}

/* --- peers ---------------------------------------------------------------------------------------------------------------- */

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
