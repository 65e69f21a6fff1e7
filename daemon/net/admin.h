/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may send admin requests: a peer of the Unix socket that is uid 0, the daemon's own user, or in the group of admins. */
#ifndef NET_ADMIN_H
#define NET_ADMIN_H

#include "daemon/base/peer.h"

#define ADMIN_GROUP "redlock-admin"

/* The number of that group; -1: there is none. Asks the system's tables of groups, which may block: for the start only. */
int64_t admin_group(void);
/* All groups of the Unix peer, the main one first. The caller frees them; NULL: they are not known. Never blocks. */
uint32_t *admin_groups_of(int fd, const struct peer *peer, unsigned *ret_n);
/* fd: the accepted socket of that peer. group: its number, or -1. Never blocks. */
bool admin_is_peer(int fd, const struct peer *peer, int64_t group);

#endif
