/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closes a connection so that its peer gets the last line: writes the unsent output, shuts our side, and drops input until the
 * peer closes too, for CLOSING_US at most. Beyond sessions_max closing connections the oldest is closed at once.
 */
#ifndef NET_CLOSING_H
#define NET_CLOSING_H

#include "daemon/net/conn_parts.h"

struct ssl_st;

#define CLOSING_US      SEC
#define CLOSING_AT_ONCE 16u /* per pass of the loop: more connections whose time is over wait for the next pass */

/* Begins to close the connection of a session. The session's number becomes invalid, and no callback follows. */
void closing_begin(struct conn *c);
void closing_enter(struct conn *c, const char *why); /* starts its time */
void closing_resume(struct conn *c, enum conn_state state); /* as in the previous process: CONN_CLOSING, if there is output, or CONN_LINGERING */
bool closing_drop_input(struct conn *c); /* true: c still exists */
void closing_flushed(struct conn *c);    /* all output is written; may free c */
void closing_finish(struct conn *c);     /* closes at once: tries one last write, then frees c */
void closing_expire(struct hub *h);      /* closes some of the connections whose time is over */
bool closing_evict(struct hub *h);       /* closes the oldest, to free its descriptor; false: there is none */

/* Sends one line if the socket takes it at once, then closes fd. */
void closing_send(int fd, struct ssl_st *tls, const char *line, size_t n);

#endif
