/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One descriptor, and the bytes on their way: lines out, lines in. It never waits, and knows nothing of what the lines say.
 */
#ifndef CLIENT_CHANNEL_H
#define CLIENT_CHANNEL_H

#include "client/lib/line.h"
#include "tls/tls.h"

/*
 * What a channel inside TLS asks of OpenSSL. The functions come from tls.c, which is linked only into programs that call redlock_use_tls. So others need
 * no OpenSSL.
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

/* NULL until redlock_use_tls has succeeded. Of this library, though it must have a name that others see. */
extern const struct tls_calls *redlock_secure;

struct channel {
	int fd;      /* -1: none */
	struct ssl_st *tls; /* NULL: plain */
	bool closed; /* the other side has closed the connection */
	bool mute;   /* sending failed with grace: what has arrived is still read, up to the end */
	struct buffer in;
	size_t in_at, in_n; /* in[in_at .. in_n) was read and not yet taken */
	struct buffer out;      /* a request, and a CANCEL or a QUIT behind it */
	size_t out_at, out_n; /* out[out_at .. out_n) is unsent */
};

/* Closes the descriptor, and says nothing about it inside TLS. What was unsent and what was not taken is dropped, but the buffers stay. */
void channel_close(struct channel *ch);
/* Appends a line to what is unsent; n is less than LINE_MAX_DEFAULT. -ENOBUFS: that is too much; -ENOMEM. */
int channel_append(struct channel *ch, const char *line, size_t n) REDLOCK_MUST;
bool channel_unsent(const struct channel *ch);
/* Sends what can be sent without waiting; a negative errno. */
int channel_flush(struct channel *ch) REDLOCK_MUST;
/*
 * Reads once. 1: there may be more; 0: nothing came; negative: the end, -ECONNRESET if the other side closed it, -ENOMEM, else what
 * recv(2) says.
 */
int channel_read(struct channel *ch) REDLOCK_MUST;
/*
 * The next line that is complete, without its end; borrowed until the next call of channel_line or channel_read. False: there is
 * none.
 */
bool channel_line(struct channel *ch, struct span *ret_line);

#endif
