/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as people and policies see them. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "daemon/base/peer.h"

#include <sys/socket.h>

/* Who is at the other end of an accepted socket; address is what accept(2) said. An IPv4-mapped address is shown and judged as IPv4. */
void address_peer(int fd, const struct sockaddr *address, struct peer *ret_peer);

#endif
