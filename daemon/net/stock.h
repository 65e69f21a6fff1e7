/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets of the previous process that nobody has asked for yet. They are open, so clients wait in their backlogs; nothing is accepted. A caller
 * that wants to listen somewhere looks here first, because a second socket could not be bound to the same address.
 */
#ifndef NET_STOCK_H
#define NET_STOCK_H

#include "daemon/net/listener.h"

#include <stdbool.h>
#include <sys/socket.h>

struct stocked {
	struct listener listener;
	bool tls; /* as it was */
};

struct stock {
	struct stocked *socket;
	size_t n;
};

void stock_add(struct stock *s, const struct listener *l, bool tls); /* takes ownership */
/* True: the caller owns *ret_listener. */
bool stock_take(struct stock *s, struct listener *ret_listener, bool *ret_tls); /* any one */
bool stock_take_unix(struct stock *s, const char *path, struct listener *ret_listener); /* by the file that it is, however its path is written */
/* only_v6: an IPv6 socket need not take IPv4. */
bool stock_take_address(struct stock *s, const struct sockaddr *address, bool only_v6, struct listener *ret_listener);
/* The caller has this socket by another way, perhaps by the same descriptor: what stands here of it is dropped, and fd stays open. */
void stock_drop_same(struct stock *s, int fd);
/* Closes those of this TCP port, whatever their address. False: there are none. */
bool stock_drop_port(struct stock *s, uint16_t port);
void stock_release(struct stock *s); /* closes all; files of Unix sockets that are still ours are unlinked */

#endif
