/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as text, and whether they are local. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "daemon/base/peer.h"

#include <sys/socket.h>

/* Fills in the peer of an accepted socket; address is from accept(2). An IPv4-mapped address is treated as IPv4. */
void address_peer(int fd, const struct sockaddr *address, struct peer *ret_peer);

/* Who may send admin requests: a peer of the Unix socket that is uid 0, the daemon's own user, or in the group of admins. */
#define ADMIN_GROUP "redlock-admin"

/* The number of that group; -1: there is none. Asks the system's tables of groups, which may block: for the start only. */
int64_t admin_group(void);
/* All groups of the Unix peer, the main one first. The caller frees them; NULL: they are not known. Never blocks. */
uint32_t *admin_groups_of(int fd, const struct peer *peer, unsigned *ret_n);
/* fd: the accepted socket of that peer. group: its number, or -1. Never blocks. */
bool admin_is_peer(int fd, const struct peer *peer, int64_t group);

#endif
