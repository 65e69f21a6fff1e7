/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a connection to a server. */
#ifndef REDIS_SOCKET_H
#define REDIS_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Identifies the socket at a path while its server lives. */
struct socket_place {
	dev_t dev;
	ino_t ino;
};

enum socket_seen {
	SOCKET_SAME,
	SOCKET_GONE,  /* the path does not exist */
	SOCKET_DEAD,  /* another file, and nobody listens there */
	SOCKET_TAKEN, /* another socket, and somebody listens there */
};

void socket_place(const char *path, struct socket_place *ret_place);
enum socket_seen socket_look(const char *path, const struct socket_place *place);

/* A non-blocking socket that connects to the address, or a negative errno. Bytes that are not acknowledged within stall_us end the connection. */
int socket_dial(const struct sockaddr *address, socklen_t n, int64_t stall_us) __attribute__((warn_unused_result));

#endif
