/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a connection to a server. */
#include "daemon/redis/socket.h"

#include "daemon/base/instant.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
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

void socket_place(const char *path, struct socket_place *ret_place)
{
	struct stat st = {.st_ino = 0};

	(void)stat(path, &st);
	*ret_place = (struct socket_place){.dev = st.st_dev, .ino = st.st_ino};
}

/* Whether somebody listens there, or may: a client without permission, or without a descriptor, cannot know that nobody does. */
static bool socket_is_listening(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path))
		return false;
	memcpy(sun.sun_path, path, strlen(path));
	fd = socket_dial((const struct sockaddr *)&sun, sizeof(sun), 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || (fd != -ECONNREFUSED && fd != -ENOENT);
}

/* No other socket gets its inode while the server lives. */
enum socket_seen socket_look(const char *path, const struct socket_place *place)
{
	struct socket_place now;

	socket_place(path, &now);
	if (now.ino == place->ino && now.dev == place->dev)
		return SOCKET_SAME;
	if (!now.ino)
		return SOCKET_GONE;
	return socket_is_listening(path) ? SOCKET_TAKEN : SOCKET_DEAD;
}
