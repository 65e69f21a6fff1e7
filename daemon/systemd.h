/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What systemd says and wants to hear, without libsystemd: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds_with_names(3).
 *
 * systemd_init reads the environment and then unsets all of it, so nothing is passed on to a child. Elsewhere than under systemd
 * everything is a no-op that succeeds. Call it once, before there are threads; then it is the loop thread's.
 */
#ifndef SYSTEMD_H
#define SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SYSTEMD_SOCKETS_MAX 8
#define SYSTEMD_NAME_SIZE   256

struct systemd_socket {
	int fd;                       /* close-on-exec; whoever takes it closes it */
	char name[SYSTEMD_NAME_SIZE]; /* FileDescriptorName=; "unknown" if not told */
};

struct systemd {
	int fd;                     /* a datagram socket; -1: nobody wants to be told */
	struct sockaddr_un address; /* $NOTIFY_SOCKET: a path, or "@name" in the abstract namespace */
	socklen_t address_size;
	int64_t watchdog_us; /* WATCHDOG=1 must come this often, twice as often is advised; 0: not wanted */
	struct systemd_socket sockets[SYSTEMD_SOCKETS_MAX];
	size_t sockets_n; /* $LISTEN_FDS, when $LISTEN_PID is this process */
};

/*
 * 0, or -errno with everything unset and nothing passed taken: -EINVAL for a variable without sense, -E2BIG for more sockets than
 * SYSTEMD_SOCKETS_MAX, -EBADF for a descriptor that is not open, -EAFNOSUPPORT for a notify address that is no Unix socket.
 */
int systemd_init(struct systemd *ret_systemd) __attribute__((warn_unused_result));
void systemd_release(struct systemd *s); /* the passed sockets are not closed */

/* 0 when told or when nobody wants to know, else -errno. Nothing here ever waits: -EAGAIN when the manager is behind. */
int systemd_ready(const struct systemd *s);     /* READY=1: after start, and after a reload */
int systemd_reloading(const struct systemd *s); /* RELOADING=1 with MONOTONIC_USEC; systemd_ready ends it */
int systemd_stopping(const struct systemd *s);  /* STOPPING=1 */
int systemd_watchdog(const struct systemd *s);  /* WATCHDOG=1; nothing when watchdog_us is 0 */
/* One line for `systemctl status`. */
int systemd_status(const struct systemd *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
