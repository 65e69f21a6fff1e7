/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the address of the daemon, and connects to it.
 */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include "client/lib/redlock.h"
#include <sys/socket.h>

#define ADDRESS_HOST 512 /* bytes of an address or of its host, with a NUL; longer ones return -ENAMETOOLONG */

struct address { /* the address of the first connection; later connections use it without resolving the name again */
	struct sockaddr_storage to;
	socklen_t n;
};

/* Returns a connected, non-blocking, close-on-exec descriptor, or a negative errno. */
int address_connect(const char *addr, int64_t timeout_ms, struct address *ret_address) REDLOCK_MUST;
/* Connects again, without waiting. If *ret_pending is true, the connection is not established yet: ask address_connected. */
int address_again(const struct address *address, bool *ret_pending) REDLOCK_MUST;
/* 1: a pending connection is established; 0: not yet. A negative errno: it failed. */
int address_connected(int fd) REDLOCK_MUST;
/* Whether the address is tls://…. If so, ret_host is its host, which the certificate of the daemon must name. */
bool address_is_tls(const char *addr, char ret_host[ADDRESS_HOST]);
/* What is wrong with an address, for people; NULL: nothing. */
const char *address_flaw(const char *addr);

#endif
