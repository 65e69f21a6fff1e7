/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocols of systemd without libsystemd: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds_with_names(3).
 *
 * systemd_init reads the variables of systemd and then unsets them, so no child inherits them; systemd_environment sets them again, for a program that
 * takes the place of this one. Without systemd all functions succeed and do nothing. Call systemd_init once, before there are threads; the loop thread alone
 * uses the result.
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
#define SYSTEMD_KEPT        "redlockd-" /* names of descriptors that this daemon gave to the manager begin with it */
#define SYSTEMD_KEPT_MAX    8

struct systemd_socket {
	int fd;                       /* close-on-exec; the caller takes it over and closes it */
	char name[SYSTEMD_NAME_SIZE]; /* FileDescriptorName=; "unknown" if it is not given */
};

struct systemd {
	int fd;                     /* a datagram socket; -1: there is no manager to notify */
	struct sockaddr_un address; /* $NOTIFY_SOCKET: a path, or "@name" in the abstract namespace */
	socklen_t address_size;
	int64_t watchdog_us; /* the manager expects WATCHDOG=1 at least this often, and recommends it twice as often; 0: no watchdog */
	struct systemd_socket sockets[SYSTEMD_SOCKETS_MAX];
	size_t sockets_n; /* $LISTEN_FDS, when $LISTEN_PID is this process */
	struct systemd_socket kept[SYSTEMD_KEPT_MAX]; /* also passed: what an earlier process gave to the manager; the names begin with SYSTEMD_KEPT */
	size_t kept_n;
	bool keeps; /* the manager keeps descriptors of the unit: $FDSTORE says so, or $REDLOCKD_FDSTORE, which the unit sets */
};

/*
 * 0 or -errno: -EINVAL for an invalid variable, -E2BIG for more sockets than SYSTEMD_SOCKETS_MAX, -EBADF for a descriptor that is not
 * open, -EAFNOSUPPORT for a notify address that is no Unix socket. On failure the variables are unset all the same, and no socket is taken.
 */
int systemd_init(struct systemd *ret_systemd) __attribute__((warn_unused_result));
/*
 * Closes each connection that waits at the passed sockets, for a daemon that cannot start. Otherwise the manager would start it for them again and again,
 * without a pause. The variables are unset.
 */
void systemd_turn_away(void);
void systemd_release(struct systemd *s); /* the passed sockets are not closed */

/* Sets the variables again as they were, for this pid. The passed sockets must still have their descriptors. -EBADF: they did not begin at 3. */
int systemd_environment(const struct systemd *s) __attribute__((warn_unused_result));

/* 0 if sent or if there is no manager, else -errno. These functions never block: -EAGAIN if the socket of the manager is full. */
int systemd_notify(const struct systemd *s, const char *message); /* "READY=1": after start, and after a reload; "STOPPING=1" */
int systemd_reloading(const struct systemd *s); /* RELOADING=1 with MONOTONIC_USEC; "READY=1" ends it */
int systemd_watchdog(const struct systemd *s);  /* WATCHDOG=1; nothing when watchdog_us is 0 */
/* Sets the line that `systemctl status` shows; a line feed becomes a blank, the text is cut at 504 bytes. */
int systemd_status(const struct systemd *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The descriptor store (FDSTORE in sd_notify(3)): the manager keeps descriptors of the unit while the unit restarts, and passes them to the next process, by
 * name. It drops them when the unit is stopped. Only if s->keeps.
 */
/* Waits up to a second for the manager to read: -EAGAIN if it does not. name: begins with SYSTEMD_KEPT. The caller keeps its descriptor. */
int fdstore_put(const struct systemd *s, const char *name, int fd) __attribute__((warn_unused_result));
/* All of that name. Never waits: -EAGAIN if the socket of the manager is full. */
int fdstore_remove(const struct systemd *s, const char *name) __attribute__((warn_unused_result));
/* Waits until the manager has handled all earlier messages. -ETIMEDOUT if it has not by then. */
int fdstore_barrier(const struct systemd *s, int64_t us) __attribute__((warn_unused_result));

#endif
