/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One client connection. It passes complete lines to the hub's sink, and writes its output once per flush. An idle connection takes 128 bytes,
 * besides 16 for its slot.
 *
 * The peer may half-close its side and still read, or it may be gone. On a Unix socket POLLHUP means that the peer is gone. If no lines wait, or lines are not
 * taken, gone(GONE_HANGUP) comes at once. Otherwise the sink gets `half_closed` at once, then the waiting lines, then gone; output is dropped meanwhile. On TCP
 * a FIN leads to eof after the last complete line, and an error to gone. When a peer half-closes while lines are not taken, the sink gets `half_closed` at
 * once.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "daemon/net/conn_parts.h"

struct ssl_st;

/* Takes ownership of fd, which is non-blocking, and of tls after its handshake; NULL: plain. Only from the loop: calls sink.open. */
void conn_open(struct hub *h, int fd, const struct peer *peer, struct ssl_st *tls);
void conn_read(struct conn *c, bool on);
void conn_ready(struct conn *c, short what); /* from the loop: the socket has EV_READ, EV_WRITE, EV_CLOSED; may free c */
void conn_take_turn(struct conn *c);         /* from the loop, at its turn: makes the pending callbacks */
void conn_resume(struct conn *c);            /* for a session: goes on after a pause, or in its next process */

#endif
