/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection ends. Nothing here calls the sink. */
#ifndef NET_ENDING_H
#define NET_ENDING_H

#include "daemon/net/conn_parts.h"

void conn_end_session(struct conn *c); /* its number becomes invalid */
void conn_free(struct conn *c);        /* closes the descriptor; calls nothing */
void conn_read_failed(struct conn *c, int error);
void conn_broken(struct conn *c, int error); /* a write failed; may free c if it is closing */
/* The peer is gone: drops output, but still passes on its earlier lines. False: lines are not taken, so the connection must end now. */
bool conn_mute(struct conn *c);
short conn_poll(const struct conn *c); /* POLL… */
enum gone conn_how_gone(const struct conn *c, short events, int error);

#endif
