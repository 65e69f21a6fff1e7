/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a channel inside TLS asks of OpenSSL. The functions come from use_tls.c, which is linked only into programs that call redlock_use_tls. So others need
 * no OpenSSL.
 */
#ifndef CLIENT_TLS_CALLS_H
#define CLIENT_TLS_CALLS_H

#include "client/lib/redlock.h"
#include "tls/tls.h"

struct tls_calls {
	struct ssl_st *(*dial)(int fd, const char *host); /* NULL: out of memory */
	enum tls_shake (*shake)(struct ssl_st *t, char *why, size_t size);
	ssize_t (*recv)(struct ssl_st *t, void *bytes, size_t size);
	ssize_t (*send)(struct ssl_st *t, const void *bytes, size_t size);
	const char *(*reason)(void);
	void (*end)(struct ssl_st *t);
	void (*free)(struct ssl_st *t);
};

/* NULL until redlock_use_tls has succeeded. */
const struct tls_calls *secure(void);
/* Of this library, though it must have a name that others see: from now on secure() is this one. */
void redlock_set_secure(const struct tls_calls *functions);

#endif
