/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One TLS connection over a socket that is non-blocking, and stays its owner's. After the handshake its calls are those of the socket. A read takes the
 * bytes of one record at most, 16 KiB, and none that it does not pass on, as long as it has room for so many: what is left is in the socket, where poll(2)
 * sees it.
 */
#ifndef TLS_TLS_H
#define TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TLS_RECORD ((size_t)16384) /* bytes that one record carries at most */

struct ssl_st;
struct ssl_ctx_st;

/* Both keep the context as long as they exist. fd -1: the caller sets it. NULL: out of memory. */
struct ssl_st *tls_serve(struct ssl_ctx_st *context, int fd);
/* name: what the certificate of the server must be for, a host name or an address. */
struct ssl_st *tls_dial(struct ssl_ctx_st *context, int fd, const char *name);
void tls_free(struct ssl_st *t); /* NULL is allowed; says nothing to the peer, and does not close the socket */

enum tls_shake {
	TLS_DONE,
	TLS_READ,   /* call again when the socket is readable */
	TLS_WRITE,  /* call again when it is writable */
	TLS_FAILED, /* why tells it in words; the connection can only be freed */
	TLS_NOT_SPOKEN, /* likewise: what the peer sends is no TLS */
};
enum tls_shake tls_shake(struct ssl_st *t, char *why, size_t size);

/*
 * As recv(2): 0 is the peer's close_notify. -1 with errno: EAGAIN; EBUSY, read again when the socket is writable; ECONNRESET, the connection ended without
 * close_notify, so somebody else may have cut it; EPROTO, the peer does not keep to TLS; or an error of the socket.
 */
ssize_t tls_recv(struct ssl_st *t, void *bytes, size_t size);
/* As send(2), but after EAGAIN the next call must begin with the same bytes. A part that was not taken cannot be read by the peer. */
ssize_t tls_send(struct ssl_st *t, const void *bytes, size_t size);
/* After a call that failed with EPROTO: what was wrong. */
const char *tls_reason(void);
/* A connection of libevent ended; error: what libevent kept of that. Why, also if the alert lies unread; NULL: the peer has just closed it. */
const char *tls_end_reason(struct ssl_st *t, unsigned long error);
void tls_end(struct ssl_st *t); /* sends close_notify, if the socket takes it at once; only tls_recv and tls_free may follow */

/* The subject of the peer's certificate, as in "CN=db3,O=Example" (RFC 2253, in UTF-8). False: it showed none, or the subject is too long. */
bool tls_subject(const struct ssl_st *t, char *out, size_t size);

#endif
