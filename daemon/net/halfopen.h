/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose TLS handshake is under way. Each has HALFOPEN_US, and there are HALFOPEN_MAX of them at most: the oldest of the peer that has most
 * makes room for a new one. They take HALFOPEN_PASS_US of a loop pass together, and at least one step, since a step may take a signature. So sessions go on,
 * however many there are.
 */
#ifndef NET_HALFOPEN_H
#define NET_HALFOPEN_H

#include "daemon/base/peer.h"
#include "daemon/net/hub.h"

#define HALFOPEN_US      (5 * SEC)
#define HALFOPEN_MAX     1000u
#define HALFOPEN_PASS_US INT64_C(200)

struct halfopen;

/* Takes ownership of fd, an accepted socket. Once the handshake is done there is a session, or a refusal; a handshake that fails is closed. */
void halfopen_begin(struct hub *h, int fd, const struct peer *peer);
bool halfopen_evict(struct hub *h); /* closes the oldest of the peer that has most, to free its descriptor; false: there is none */

void halfopen_resume(struct hub *h); /* after a pause */
void halfopen_drop(struct hub *h);  /* closes all of them */

/* For hub.c. */
int halfopen_init(struct hub *h) __attribute__((warn_unused_result));
void halfopen_release(struct hub *h);

#endif
