/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a connection to a server. */
#include "daemon/redis/socket.h"

#include "daemon/base/instant.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static void socket_set(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value)); /* failure is harmless */
}

static void socket_set_tcp(int fd, int64_t stall_us)
{
	socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
	socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
	socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(stall_us / MSEC));
}

int socket_dial(const struct sockaddr *address, socklen_t n, int64_t stall_us)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	if (address->sa_family != AF_UNIX)
		socket_set_tcp(fd, stall_us);
	if (connect(fd, address, n) < 0 && errno != EINPROGRESS) {
		error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

void socket_keep(int fd, int64_t stall_us)
{
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	if (stall_us)
		socket_set_tcp(fd, stall_us); /* in vain for a Unix socket */
}
