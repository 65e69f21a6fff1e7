/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the daemon is, and a connection to it.
 */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include "client/redlock.h"
#include <sys/socket.h>

struct address { /* where a connection went: found once, so that nothing is resolved when it breaks */
	struct sockaddr_storage to;
	socklen_t n;
};

/* A connected, non-blocking, close-on-exec descriptor, or a negative errno. */
int address_connect(const char *addr, int64_t timeout_ms, struct address *ret_address) REDLOCK_MUST;
/* The same again without waiting: *ret_pending: ask address_connected. */
int address_again(const struct address *address, bool *ret_pending) REDLOCK_MUST;
/* Whether a connection that was pending is there: 1; 0: not yet; else the negative errno that it failed with. */
int address_connected(int fd) REDLOCK_MUST;
/* Why an address has no sense, for a person; NULL: it has. */
const char *address_flaw(const char *addr);

#endif
