/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets of the previous process that nobody has taken yet. They are open, so clients wait in their backlogs; nothing is accepted. A caller that
 * wants to listen somewhere looks here first, because a second socket could not be bound to the same address.
 */
#ifndef NET_INHERITED_H
#define NET_INHERITED_H

#include "daemon/net/listener.h"

#include <stdbool.h>
#include <sys/socket.h>

struct inherited_socket {
	struct listener listener;
	bool tls; /* whether its connections begin with a handshake */
};

struct inherited {
	struct inherited_socket *socket;
	size_t n;
};

void inherited_add(struct inherited *s, const struct listener *l, bool tls); /* takes ownership */
/* True: the caller owns *ret_listener. */
bool inherited_take(struct inherited *s, struct listener *ret_listener, bool *ret_tls); /* any one */
bool inherited_take_unix(struct inherited *s, const char *path, struct listener *ret_listener); /* by the identity of the file, however its path is written */
/* only_v6: an IPv6 socket need not take IPv4. */
bool inherited_take_address(struct inherited *s, const struct sockaddr *address, bool only_v6, struct listener *ret_listener);
/* The caller already has this socket, perhaps by the same descriptor. Removes it from the list; fd stays open. */
void inherited_drop_same(struct inherited *s, int fd);
/* Closes those of this TCP port, whatever their address. False: there are none. */
bool inherited_drop_port(struct inherited *s, uint16_t port);
void inherited_release(struct inherited *s); /* closes all; unlinks files of Unix sockets that are still ours */

#endif
