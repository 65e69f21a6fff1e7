/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A descriptor, and the lines to send and to read over it. It never waits, and does not interpret the lines.
 */
#ifndef CLIENT_CHANNEL_H
#define CLIENT_CHANNEL_H

#include "client/lib/line.h"
#include "tls/tls.h"

/*
 * What a channel inside TLS needs of OpenSSL. tls.c has these functions, and is linked only into programs that call redlock_use_tls. So other
 * programs need no OpenSSL.
 */
struct tls_calls {
	struct ssl_st *(*dial)(int fd, const char *host); /* NULL: out of memory */
	enum tls_shake (*shake)(struct ssl_st *t, char *why, size_t size);
	ssize_t (*recv)(struct ssl_st *t, void *bytes, size_t size);
	ssize_t (*send)(struct ssl_st *t, const void *bytes, size_t size);
	const char *(*reason)(void);
	void (*end)(struct ssl_st *t);
	void (*free)(struct ssl_st *t);
};

/* NULL until redlock_use_tls has succeeded. It is internal to this library, although its name is visible outside. */
extern const struct tls_calls *redlock_secure;

struct channel {
	int fd;      /* -1: none */
	struct ssl_st *tls; /* NULL: without TLS */
	bool closed; /* the other side has closed the connection */
	bool mute;   /* with grace, after sending has failed: the rest of what arrived is still read */
	struct buffer in;
	size_t in_at, in_n; /* in[in_at .. in_n) was read, and no line of it was returned yet */
	struct buffer out;      /* a request, and after it maybe a CANCEL or a QUIT */
	size_t out_at, out_n; /* out[out_at .. out_n) is unsent */
};

/* Closes the descriptor, without a close message of TLS. Drops unsent bytes and lines that were not returned yet; the buffers stay. */
void channel_close(struct channel *ch);
/* Appends a line to the unsent bytes; n is less than LINE_MAX_DEFAULT. -ENOBUFS: there are too many of them; -ENOMEM. */
int channel_append(struct channel *ch, const char *line, size_t n) REDLOCK_MUST;
bool channel_unsent(const struct channel *ch);
/* Sends as much as it can without waiting. 0 or a negative errno. */
int channel_flush(struct channel *ch) REDLOCK_MUST;
/*
 * Reads once. 1: there may be more; 0: nothing has come. Negative: the connection has ended. -ECONNRESET: the other side closed it; -ENOMEM; else an
 * errno of recv(2).
 */
int channel_read(struct channel *ch) REDLOCK_MUST;
/* Returns the next complete line, without its line end. It is valid until the next call of channel_line or channel_read. False: there is none. */
bool channel_line(struct channel *ch, struct span *ret_line);

#endif
