/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TLS handshakes at one port. A step may take a signature, or the certificates of a stranger. So steps take 200 us of a loop pass together, and at least
 * one is made; after a step of more than 1 ms there is none for three times as long, 40 ms at most. Peers take turns, as peer_origin() tells them apart. So
 * all else goes on, however many handshakes there are. Not thread-safe; one event base.
 */
#ifndef NET_PACING_H
#define NET_PACING_H

#include "daemon/base/instant.h"
#include "daemon/base/peer.h"
#include "tls/tls.h"

#include <event2/event_struct.h>
#include <sys/queue.h>

TAILQ_HEAD(paced_peers, paced_peer);

struct pacing {
	struct event_base *base;
	struct paced_peers peers; /* that have handshakes; the one that began first comes first */
	struct paced_peers ready; /* those that have some whose sockets are ready: one of each in turn */
	struct event *turn;       /* runs through ready */
	bool paused;              /* no step is made */
};

/* One handshake. The owner sets tls and over, and bounds its time; the rest is zero before paced_begin. */
struct paced {
	struct ssl_st *tls;
	void (*over)(struct paced *o, const char *why); /* it is done, and out of the pacing; why NULL: without a failure. May free o */
	int fd;
	struct instant begun;
	struct pacing *all;
	struct paced_peer *peer; /* NULL: it is not in the pacing */
	struct event event;
	TAILQ_ENTRY(paced) own, queued;
	bool is_queued;
};

int pacing_init(struct pacing *all, struct event_base *base) __attribute__((warn_unused_result)); /* 0 or -errno */
void pacing_release(struct pacing *all); /* no handshake is left */
void pacing_pause(struct pacing *all, bool on);
struct paced *pacing_oldest(const struct pacing *all); /* of the peer that has most; NULL: there is none */

void paced_begin(struct paced *o, struct pacing *all, int fd, const char *peer, size_t n); /* peer: n bytes, as peer_origin() has written them */
void paced_end(struct paced *o); /* takes it out, if it is in: over is not called */

#endif
