/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as text, and whether they are local. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "daemon/base/peer.h"

#include <sys/socket.h>

/* Fills in the peer of an accepted socket; address is from accept(2). An IPv4-mapped address is treated as IPv4. */
void address_peer(int fd, const struct sockaddr *address, struct peer *ret_peer);

#endif
