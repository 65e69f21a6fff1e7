/* SPDX-License-Identifier: BSD-2-Clause */
/* A name for the loopback interface: localhost where this host knows it, else a spelling that only getaddrinfo(3) understands. */
#ifndef UNIT_LOOPBACK_H
#define UNIT_LOOPBACK_H

#include <netdb.h>
#include <stddef.h>

static inline const char *loopback_name(void)
{
	struct addrinfo *list;

	if (getaddrinfo("localhost", NULL, NULL, &list))
		return "127.1";
	freeaddrinfo(list);
	return "localhost";
}

#endif
