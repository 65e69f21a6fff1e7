/* SPDX-License-Identifier: BSD-2-Clause */
/* In doubt others can: that costs a wait after a reboot, and the other mistake costs a lock. */
#include "daemon/reach.h"

#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <string.h>

/* 127.0.0.0/8 in numbers: a name that begins so may lead anywhere. */
static bool host_is_ipv4_loopback(const char *host)
{
	struct in_addr a;

	return inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127;
}

bool reach_of_host(const char *tcp)
{
	return tcp && !host_is_ipv4_loopback(tcp) && strcmp(tcp, "::1") != 0 && strcmp(tcp, "localhost") != 0;
}

bool reach_of_socket(int fd)
{
	struct sockaddr_storage address;
	socklen_t n = sizeof(address);
	struct peer peer;

	if (getsockname(fd, (struct sockaddr *)&address, &n))
		return true;
	address_peer(fd, (const struct sockaddr *)&address, &peer);
	return !peer.is_local;
}
