/* SPDX-License-Identifier: BSD-2-Clause */
/* In doubt others can: that costs a wait after a reboot, and the other mistake costs a lock. */
#include "daemon/reach.h"

#include "daemon/net/address.h"

#include <string.h>

bool reach_of_host(const char *tcp)
{
	return tcp && strncmp(tcp, "127.", 4) != 0 && strcmp(tcp, "::1") != 0 && strcmp(tcp, "localhost") != 0;
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
