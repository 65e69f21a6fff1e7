/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose TLS handshake is under way. Each has HANDSHAKE_US. There are HANDSHAKE_MAX at most: the oldest of the peer that has most makes room for a
 * new one. Their steps are paced.
 */
#ifndef NET_HANDSHAKES_H
#define NET_HANDSHAKES_H

#include "daemon/base/peer.h"
#include "daemon/net/hub.h"

#define HANDSHAKE_US  (5 * SEC)
#define HANDSHAKE_MAX 1000u

struct handshake;

/* Takes ownership of fd, an accepted socket. After the handshake it becomes a session, or is refused. A failed handshake is closed. */
void handshake_begin(struct hub *h, int fd, const struct peer *peer);
bool handshake_evict(struct hub *h); /* closes the oldest of the peer that has most, to free its descriptor; false: there is none */

void handshake_drop(struct hub *h); /* closes all of them */

/* For hub.c. */
int handshake_init(struct hub *h) __attribute__((warn_unused_result));
void handshake_release(struct hub *h);

#endif
