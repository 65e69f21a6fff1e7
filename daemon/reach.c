/* SPDX-License-Identifier: BSD-2-Clause */
/* In doubt the answer is yes. A wrong yes costs a wait after a reboot; a wrong no costs exclusion. */
#include "daemon/reach.h"

#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <string.h>

/* Only numeric 127.0.0.0/8: a host name that begins with "127." may resolve to any address. */
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
