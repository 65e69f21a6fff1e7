/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turns of connections in a pass of the loop: those to be read, those with lines or callbacks that wait, those with output, and those whose time to close
 * is over. Peers take turns, and so do the connections of a peer: a peer with thousands of connections delays another peer's request by one turn.
 */
#ifndef NET_TURNS_H
#define NET_TURNS_H

#include "daemon/net/hub.h"

#define HUB_FLUSH_LOOK 8 /* the clock is read after writing to that many connections */

/* 0 or -errno. */
int hub_init(struct hub *h, struct event_base *base, const struct net_conf *conf, const struct net_sink *sink) __attribute__((warn_unused_result));
void hub_release(struct hub *h); /* closes every connection, without callbacks */

void hub_flush(struct hub *h, struct instant end); /* output that is not written by then waits for the next pass; INSTANT_NEVER: all is written */

#endif
