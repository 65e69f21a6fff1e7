/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a connection is closed so that its peer gets the last line: write what was sent, shut our side, drop what still comes in
 * until the other end closes too; all of it within a second. Bounded: beyond sessions_max of them the oldest is closed at once,
 * and of refused ones no more than CLOSING_REFUSED_MAX wait at a time.
 */
#ifndef NET_CLOSING_H
#define NET_CLOSING_H

#include "daemon/net/conn.h"

#define CLOSING_US          SEC
#define CLOSING_REFUSED_MAX 64u

/* A session's connection; its number is spent. Tells nothing more about it. */
void closing_begin(struct conn *c);
/* A connection that never becomes a session: one line and out. Takes fd. */
void closing_refuse(struct hub *h, int fd, const char *line, size_t n);

/* For conn.c and hub.c; the first two may free c. */
void closing_ready(struct conn *c, short what); /* the socket has something to say */
void closing_flushed(struct conn *c);           /* all output has gone */
void closing_leave(struct conn *c);             /* it is being freed */
void closing_expire(struct hub *h);             /* finishes those that are due */
bool closing_evict(struct hub *h);              /* finishes the oldest, for its descriptor; false when there is none */

/* The least courtesy: one line if the socket takes it, then closes fd at once. */
void closing_say(int fd, const char *line, size_t n);

#endif
