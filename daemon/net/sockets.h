/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of the connections have their own epoll, which the loop watches. The epoll of libevent reports all ready sockets in each pass, and a pass is
 * short: with thousands ready, the loop would do nothing but ask for them. Here a pass asks for SOCKETS_AT_ONCE, and reads them for SOCKETS_US. The others wait
 * for their turns, peer by peer. So do sockets of their peers that become ready meanwhile: see turns.h. So a peer whose requests take long delays another peer
 * by one turn.
 */
#ifndef NET_SOCKETS_H
#define NET_SOCKETS_H

#include "daemon/net/conn_parts.h"

#define SOCKETS_US INT64_C(100)

/* handle: see hub.h. 0 or -errno */
int sockets_init(struct hub *h, void (*handle)(struct conn *c, short what)) __attribute__((warn_unused_result));
void sockets_release(struct hub *h); /* no connection is watched any more */

/* events: EV_READ, EV_WRITE, EV_CLOSED, EV_ET. The present state of the socket is reported again. False: it cannot be watched. */
bool sockets_watch(struct conn *c, short events);
void sockets_forget(struct conn *c); /* before the socket is closed: a copy of the socket may live on in the next process */

#endif
