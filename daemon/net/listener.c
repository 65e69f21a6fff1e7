/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets. A socket file on which nobody listens is replaced. It must never remove a file that is no socket, or a socket that is in use. At the end
 * it must not remove a socket file that a successor has made in our place.
 */
#include "daemon/net/listener.h"
#include "daemon/base/instant.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define STREAM          (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
#define KEEPALIVE_TRIES 3

/* --- Unix ---------------------------------------------------------------------------------------------------------- */

static int path_address(const char *path, struct sockaddr_un *ret_address)
{
	size_t n = strlen(path);

	if (!n)
		return -EINVAL;
	if (n >= sizeof(ret_address->sun_path))
		return -ENAMETOOLONG;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path, path, n + 1);
	return 0;
}

/* The path exists. 0: nobody listens on its socket, or the path is gone by now. */
static int path_is_stale(const struct sockaddr_un *address)
{
	struct stat st;
	int fd, r;

	if (lstat(address->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	fd = socket(AF_UNIX, STREAM, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
	close(fd);
	if (r == -ECONNREFUSED || r == -ENOENT)
		return 0;
	/* EAGAIN is a full backlog, EPROTOTYPE a socket of another type: both are in use. */
	return r == 0 || r == -EAGAIN || r == -EPROTOTYPE ? -EADDRINUSE : r;
}

static int path_bind(int fd, const struct sockaddr_un *address)
{
	int r;

	if (!bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	r = path_is_stale(address);
	if (r < 0)
		return r;
	if (unlink(address->sun_path) && errno != ENOENT)
		return -errno;
	return bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
}

/* The umask has no effect. While the group changes, nobody gets access who had none before and will have none after. */
int listener_allow(const char *path, const struct listener_access *access)
{
	mode_t mode = access->mode ? access->mode : 0666;
	struct stat st;

	if (lstat(path, &st) || chmod(path, st.st_mode & mode & 0777) || lchown(path, (uid_t)-1, access->has_group ? access->group : getegid()))
		return -errno;
	return chmod(path, mode) ? -errno : 0;
}

/* Nobody can connect before listen. */
static int path_listen(int fd, const char *path, const struct listener_access *access, struct stat *ret_stat)
{
	int r = listener_allow(path, access);

	if (!r && (lstat(path, ret_stat) || listen(fd, SOMAXCONN)))
		r = -errno;
	if (r < 0)
		unlink(path);
	return r;
}

bool listener_is_there(const struct listener *l)
{
	struct stat st;

	return !l->path || (!lstat(l->path, &st) && st.st_dev == l->device && st.st_ino == l->inode);
}

int listener_unix(const char *path, const struct listener_access *access, struct listener *ret_listener)
{
	struct sockaddr_un address;
	struct stat st;
	int fd, r = path_address(path, &address);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, STREAM, 0);
	if (fd < 0)
		return -errno;
	r = fchmod(fd, 0600) ? -errno : path_bind(fd, &address); /* the file gets at most the mode of the socket */
	if (!r)
		r = path_listen(fd, path, access, &st);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_listener =
		(struct listener){.fd = fd, .path = mem_text(path), .device = st.st_dev, .inode = st.st_ino};
	return 0;
}

/* --- options ------------------------------------------------------------------------------------------------------- */

static int socket_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* tcp(7): with TCP_USER_TIMEOUT the first keepalive probe after that time ends a silent connection, even if no other probe was lost. */
int listener_tune(int fd, int64_t keepalive_us)
{
	int64_t idle_s = (keepalive_us + SEC - 1) / SEC;
	int idle = idle_s < 1       ? 1
		   : idle_s > 32767 ? 32767
				    : (int)idle_s,
	    every = idle / KEEPALIVE_TRIES > 1 ? idle / KEEPALIVE_TRIES : 1;
	int r = socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);

	if (!r)
		r = socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (!r)
		r = socket_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
	if (!r)
		r = socket_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, every);
	if (!r)
		r = socket_set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TRIES);
	if (!r)
		r = socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, idle * 1000);
	return r;
}

/* --- passed sockets ------------------------------------------------------------------------------------------------ */

static int socket_get(int fd, int option)
{
	int value;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &n) ? -1 : value;
}

int listener_fd(int fd, int64_t keepalive_us, struct listener *ret_listener)
{
	int domain = socket_get(fd, SO_DOMAIN), flags = fcntl(fd, F_GETFL), r = 0;

	if (socket_get(fd, SO_TYPE) != SOCK_STREAM || socket_get(fd, SO_ACCEPTCONN) != 1)
		return -EINVAL;
	if (domain == AF_INET || domain == AF_INET6)
		r = listener_tune(fd, keepalive_us);
	else if (domain != AF_UNIX)
		return -EINVAL;
	if (r < 0)
		return r;
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC))
		return -errno;
	*ret_listener = (struct listener){.fd = fd};
	return 0;
}

/* --- end ----------------------------------------------------------------------------------------------------------- */

void listener_release(struct listener *l)
{
	/* Unlinks before the close, so that the file never exists while nobody listens. */
	if (l->path && listener_is_there(l))
		unlink(l->path);
	mem_free(l->path);
	close(l->fd);
	*l = (struct listener){.fd = -1};
}
