/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the daemon is, and a connection to it.
 */
#ifndef CLIENT_ADDRESS_H
#define CLIENT_ADDRESS_H

#include "client/lib/redlock.h"
#include <sys/socket.h>

#define ADDRESS_HOST 512 /* bytes of an address, or of its host, with a NUL; a longer one is -ENAMETOOLONG */

struct address { /* where the first connection went: later ones go there without a lookup of the name */
	struct sockaddr_storage to;
	socklen_t n;
};

/* A connected, non-blocking, close-on-exec descriptor, or a negative errno. */
int address_connect(const char *addr, int64_t timeout_ms, struct address *ret_address) REDLOCK_MUST;
/* Connects again, without waiting. *ret_pending: the connection is not established yet; ask address_connected. */
int address_again(const struct address *address, bool *ret_pending) REDLOCK_MUST;
/* 1: a pending connection is established; 0: not yet; else the negative errno with which it failed. */
int address_connected(int fd) REDLOCK_MUST;
/* Whether the address is tls://…; ret_host is its host then: what the certificate of the daemon must be for. */
bool address_is_tls(const char *addr, char ret_host[ADDRESS_HOST]);
/* What is wrong with an address, for a person; NULL: nothing. */
const char *address_flaw(const char *addr);

#endif
