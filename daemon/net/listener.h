/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listening socket: made, found fit, closed. Knows no event loop. What accepted sockets shall have (no delay, keepalive) is set
 * here, once: on Linux they inherit it.
 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct listener {
	int fd;
	char *path; /* of a Unix socket that we made: unlinked at the end if it is still ours; else NULL */
	dev_t device;
	ino_t inode;
};

#define LISTENER_ADDRESSES_MAX 8

/* 0 or -errno: -EADDRINUSE when somebody listens there, -ENOTSOCK when a file stands there that is no socket, -ENAMETOOLONG. */
int listener_unix(const char *path, struct listener *ret_listener) __attribute__((warn_unused_result));
/*
 * One for each address that host stands for; NULL or "*" is every address. Resolving may block, so: names only at start. How many, or
 * -errno, then none.
 */
int listener_tcp(const char *host, uint16_t port, int64_t keepalive_us, struct listener ret_listeners[LISTENER_ADDRESSES_MAX])
	__attribute__((warn_unused_result));
/* Takes a listening stream socket, Unix or TCP; -EINVAL for anything else, and fd stays the caller's. */
int listener_fd(int fd, int64_t keepalive_us, struct listener *ret_listener) __attribute__((warn_unused_result));
void listener_release(struct listener *l);

#endif
