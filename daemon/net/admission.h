/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to an accepted connection: it becomes a session, or is refused. */
#ifndef NET_ADMISSION_H
#define NET_ADMISSION_H

#include "daemon/net/hub.h"

struct ssl_st;

/* Makes a session from an accepted socket, or refuses it. Takes ownership of fd, and of tls after its handshake; NULL: plain. Only from the loop. */
void admission_take(struct hub *h, int fd, const struct peer *peer, struct ssl_st *tls);
/*
 * Sends one line to a connection that never becomes a session, and closes it. Takes ownership of fd, and of tls; NULL: plain. If too many refused connections
 * are closing, or connections_max is reached, the line is sent only if the socket takes it at once.
 */
void admission_refuse(struct hub *h, int fd, struct ssl_st *tls, const char *line, size_t n);

#endif
