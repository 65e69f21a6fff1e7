/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listening socket: made, checked, closed. It knows no event loop. Options of accepted sockets (no delay, keepalive) are set on
 * the listening socket: on Linux accepted sockets inherit them.
 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Each listener accepts that many connections in a pass of the loop. This bounds the wait of clients that are already connected. */
#define ACCEPTS_PER_PASS 8

/* Who may connect to a Unix socket. */
struct listener_access {
	mode_t mode;  /* of the file; 0: 0666 */
	bool has_group;
	gid_t group;  /* has_group: of the file; else that of the process */
};

struct listener {
	int fd;
	char *path; /* path of a Unix socket made here, owned: unlinked at the end if it is still the same file; else NULL */
	dev_t device;
	ino_t inode;
};

/* 0 or -errno: -EADDRINUSE if a process listens there, -ENOTSOCK if the file is no socket, -ENAMETOOLONG, -EPERM if this user may not give it that group. */
int listener_unix(const char *path, const struct listener_access *access, struct listener *ret_listener) __attribute__((warn_unused_result));
/* Sets mode and group of a socket file that is there. 0 or -errno. */
int listener_allow(const char *path, const struct listener_access *access) __attribute__((warn_unused_result));
/* False: its socket file was removed or replaced, so nobody can connect any more. */
bool listener_is_there(const struct listener *l);
int listener_tune(int fd, int64_t keepalive_us); /* the options of a TCP socket. 0 or -errno */
/* Takes ownership of a listening stream socket, Unix or TCP. -EINVAL for anything else; on failure the caller keeps fd. */
int listener_fd(int fd, int64_t keepalive_us, struct listener *ret_listener) __attribute__((warn_unused_result));
void listener_release(struct listener *l);

#endif
