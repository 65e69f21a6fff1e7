/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turns that connections take in a pass of the loop: those to be read, or with lines or callbacks that wait, those with output, those whose time to close
 * is over. Peers take turns to be read, and so do the connections of a peer: one that has thousands delays another's request by one turn.
 */
#ifndef NET_TURNS_H
#define NET_TURNS_H

#include "daemon/net/hub.h"

#define HUB_FLUSH_LOOK 8 /* connections are written to, and then the clock is read */

/* 0 or -errno. */
int hub_init(struct hub *h, struct event_base *base, const struct net_conf *conf, const struct net_sink *sink) __attribute__((warn_unused_result));
void hub_release(struct hub *h); /* closes every connection, without callbacks */

void hub_flush(struct hub *h, struct instant end); /* what is not written by then is left for the next pass; INSTANT_NEVER: all is written */

#endif
