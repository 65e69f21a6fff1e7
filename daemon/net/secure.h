/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a connection, plain or inside TLS. A plain connection takes no memory for TLS. */
#ifndef NET_SECURE_H
#define NET_SECURE_H

#include "daemon/net/conn.h"

#include <errno.h>
#include <sys/socket.h>

struct ssl_st;

struct secure_conn {
	struct conn conn; /* is_tls */
	struct ssl_st *tls;
};

/* A connection over fd; tls: after its handshake, owned from now on; NULL: plain. */
struct conn *secure_conn_new(struct hub *h, int fd, struct ssl_st *tls);
void secure_conn_free(struct conn *c); /* its memory, and TLS; the descriptor stays open */
void secure_goodbye(struct conn *c);   /* the peer of TLS is told that nothing follows */

ssize_t secure_recv(struct conn *c, void *bytes, size_t size);
ssize_t secure_send(struct conn *c, const void *bytes, size_t size);

/*
 * Whether no input is taken until the socket is writable: TLS must answer first, or a record is on its way. A demand for new keys that is read in between
 * would make OpenSSL mix its answer with that record, and fail.
 */
static inline bool secure_must_write(const struct conn *c)
{
	return c->is_tls && (c->stuck || c->blocked);
}

/* As recv(2) and send(2) that do not wait. */
static inline ssize_t conn_get(struct conn *c, void *bytes, size_t size)
{
	return c->is_tls ? secure_recv(c, bytes, size) : recv(c->fd, bytes, size, MSG_DONTWAIT);
}

static inline ssize_t conn_put(struct conn *c, const void *bytes, size_t size)
{
	return c->is_tls ? secure_send(c, bytes, size) : send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

#endif
