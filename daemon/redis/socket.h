/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a connection to a server. */
#ifndef REDIS_SOCKET_H
#define REDIS_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A non-blocking socket that connects to the address, or a negative errno. stall_us: bytes that are not acknowledged for so long end the connection. */
/* Which socket a path leads to, as long as its server lives. */
struct socket_place {
	dev_t dev;
	ino_t ino;
};

enum socket_seen {
	SOCKET_SAME,
	SOCKET_GONE,  /* there is nothing at the path */
	SOCKET_DEAD,  /* something else, where nobody listens */
	SOCKET_TAKEN, /* another socket, at which somebody listens */
};

void socket_place(const char *path, struct socket_place *ret_place);
enum socket_seen socket_look(const char *path, const struct socket_place *place);

int socket_dial(const struct sockaddr *address, socklen_t n, int64_t stall_us) __attribute__((warn_unused_result));
/* A socket that another process dialled: the same in this one. stall_us 0: what was set for TCP stays. */
void socket_keep(int fd, int64_t stall_us);

#endif
