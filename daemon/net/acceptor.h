/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepts connections from the listening sockets of a hub, a bounded number of them per socket and loop pass. Above sessions_max or connections_max a
 * connection gets one line and is closed. So is one whose peer has used up its share of the sessions (shares.h). At connections_max a closing connection makes
 * room for a new one. When the kernel has no descriptor or no memory for another connection, the acceptor pauses for 100 ms, then twice as long each time, 1 s
 * at most. Connections wait in the backlog meanwhile. Once a pause has reached 1 s, each try refuses one connection with an error line: it gives up a reserved
 * descriptor for that.
 */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include "daemon/base/instant.h"
#include "daemon/net/hub.h"
#include "daemon/net/listener.h"
#include "daemon/net/inherited.h"

struct accept_source;

struct acceptor {
	struct hub *hub;
	SLIST_HEAD(, accept_source) sources;
	struct inherited inherited; /* no connection is accepted from these */
	struct event *retry;
	int64_t pause_us;           /* length of the next pause */
	struct instant quiet_until; /* no log line about a pause before this */
	bool paused;
	int reserve; /* given up for a refusal; -1: it could not be opened */
};

/* What net.h and carry.h have a pointer to. */
struct net {
	struct hub hub;
	struct acceptor acceptor;
};

int acceptor_init(struct acceptor *a, struct hub *h) __attribute__((warn_unused_result));
void acceptor_release(struct acceptor *a);
/* Takes ownership of the listener, also on failure. tls: its connections begin with a handshake. 0 or -errno. */
int acceptor_add(struct acceptor *a, const struct listener *l, bool tls) __attribute__((warn_unused_result));
void acceptor_pause(struct acceptor *a, bool on); /* hub.paused has just changed to that */
/* Gives up one of the listening sockets, which stays open; the caller owns *ret_listener. False: there are none. */
bool acceptor_give(struct acceptor *a, struct listener *ret_listener, bool *ret_tls);
void acceptor_look(struct acceptor *a); /* see net_look; nothing is paused */
unsigned acceptor_sockets_lost(const struct acceptor *a); /* see net_sockets_lost */
void acceptor_stop(struct acceptor *a); /* closes all listening sockets */

#endif
