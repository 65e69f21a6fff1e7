/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a connection, plain or inside TLS. A plain connection takes no memory for TLS. */
#ifndef NET_SECURE_H
#define NET_SECURE_H

#include "daemon/net/conn_parts.h"

#include <errno.h>
#include <sys/socket.h>

struct ssl_st;

struct secure_conn {
	struct conn conn; /* is_tls */
	struct ssl_st *tls;
};

/* A connection over fd. tls: after its handshake, owned from now on; NULL: plain. */
struct conn *secure_conn_new(struct hub *h, int fd, struct ssl_st *tls);
void secure_conn_free(struct conn *c); /* its memory, and TLS; the descriptor stays open */
void secure_goodbye(struct conn *c);   /* sends the close_notify of TLS */

ssize_t secure_recv(struct conn *c, void *bytes, size_t size);
ssize_t secure_send(struct conn *c, const void *bytes, size_t size);

/* As recv(2) and send(2) that do not wait. */
static inline ssize_t conn_get(struct conn *c, void *bytes, size_t size)
{
	return c->is_tls ? secure_recv(c, bytes, size) : recv(c->fd, bytes, size, MSG_DONTWAIT);
}

static inline ssize_t conn_put(struct conn *c, const void *bytes, size_t size)
{
	return c->is_tls ? secure_send(c, bytes, size) : send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int conn_write(struct conn *c); /* one send(2) of its output. 0: all is written; 1: the socket is full; -errno */

#endif
