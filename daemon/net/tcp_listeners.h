/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets for a host name and a port. */
#ifndef NET_TCP_LISTENERS_H
#define NET_TCP_LISTENERS_H

#include "daemon/net/inherited.h"

#define LISTENER_ADDRESSES_MAX 8

/*
 * Makes one listener for each address of host; NULL or "*": every address. Resolving a name may block, so names are for the start only. Returns
 * the number of listeners, or -errno and none. An address that the previous process listened at is taken over; NULL: there was none.
 */
int tcp_listeners(const char *host, uint16_t port, int64_t keepalive_us, struct inherited *inherited, struct listener ret_listeners[LISTENER_ADDRESSES_MAX])
	__attribute__((warn_unused_result));

#endif
