/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TLS handshakes at one port. A step may compute a signature, or check the certificates of a stranger. So steps take 200 us of a loop pass together, and at
 * least one is made. After a step of more than 1 ms there is a rest of three times as long, 40 ms at most. Peers take turns, as in peer_origin(). So all other
 * work goes on, however many handshakes there are. Not thread-safe; one event base.
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
	struct paced_peers ready; /* peers with sockets that are ready: one step each in turn */
	struct event *turn;       /* runs through ready */
	bool paused;              /* no step is made */
};

/* One handshake. The owner sets tls and over, and bounds its time; the rest is zero before paced_begin. */
struct paced {
	struct ssl_st *tls;
	void (*over)(struct paced *o, const char *why); /* the handshake is done, and no longer paced; why NULL: it succeeded. May free o */
	int fd;
	struct instant begun;
	struct pacing *all;
	struct paced_peer *peer; /* NULL: it is not paced */
	struct event event;
	TAILQ_ENTRY(paced) own, queued;
	bool is_queued;
};

int pacing_init(struct pacing *all, struct event_base *base) __attribute__((warn_unused_result)); /* 0 or -errno */
void pacing_release(struct pacing *all); /* no handshake is left */
void pacing_pause(struct pacing *all, bool on);
struct paced *pacing_oldest(const struct pacing *all); /* of the peer that has most; NULL: there is none */

void paced_begin(struct paced *o, struct pacing *all, int fd, const char *peer, size_t n); /* peer: n bytes, as peer_origin() has written them */
void paced_end(struct paced *o); /* stops the pacing, if it is paced; does not call over */

#endif
