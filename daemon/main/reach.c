/* SPDX-License-Identifier: BSD-2-Clause */
/* If in doubt, the answer is yes. A wrong yes costs a wait after a reboot; a wrong no costs exclusion. */
#include "daemon/main/reach.h"

#include "conf/conf.h"
#include "daemon/net/address.h"

#include <errno.h>

bool reach_of_host(const char *tcp)
{
	return tcp && !conf_host_is_local(tcp);
}

bool reach_of_socket(int fd)
{
	struct sockaddr_storage address;
	socklen_t n = sizeof(address);
	struct peer peer;

	if (getsockname(fd, (struct sockaddr *)&address, &n))
		return errno != ENOTSOCK;
	address_peer(fd, (const struct sockaddr *)&address, &peer);
	return !peer.is_local;
}
