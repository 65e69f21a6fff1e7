/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many sessions each peer has: a uid of this host, an IPv4 address, or the /64 of an IPv6 address; and how much they have in their buffers. Root and the
 * user of the daemon on the Unix socket, and addresses of loopback, may have any number of sessions: behind those may be anybody of this host.
 */
#ifndef NET_CROWDS_H
#define NET_CROWDS_H

#include "daemon/base/map.h"
#include "daemon/base/peer.h"

#include <sys/types.h>

#define CROWDS_UNBOUNDED 1000000u /* a bound of so many is none, nor is 0 */

struct crowd {
	struct map_node by_peer;
	unsigned sessions;
	size_t held; /* bytes in the buffers of its sessions: see held.c */
	size_t n;
	char name[PEER_ORIGIN_MAX];
};

struct crowds {
	struct map by_peer;
	uid_t own; /* of the daemon */
};

void crowds_init(struct crowds *c, uid_t own);
void crowds_release(struct crowds *c); /* all sessions have left */

bool crowds_has_room(const struct crowds *c, const struct peer *peer, unsigned most);
/* One session more. */
struct crowd *crowds_enter(struct crowds *c, const struct peer *peer);
/* Likewise, by the name of the crowd, in the next process. */
struct crowd *crowds_join(struct crowds *c, const char *name, size_t n);
void crowds_leave(struct crowds *c, struct crowd *crowd); /* NULL is allowed */

#endif
