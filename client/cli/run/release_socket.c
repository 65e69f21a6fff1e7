/* SPDX-License-Identifier: BSD-2-Clause */
/* See release_socket.h. */
#include "client/cli/run/release_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* FNV-1a: names are longer than an address may be. Whoever chooses two names of one hash confuses only a script of his own. */
static uint64_t name_hash(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash;
}

static socklen_t address_make(pid_t pid, const char *name, struct sockaddr_un *out)
{
	int n;

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "redlock-hold/%u/%d/%016" PRIx64, (unsigned)geteuid(), (int)pid, name_hash(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool peer_is_ours(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && (peer.uid == geteuid() || peer.uid == 0);
}

int release_socket_listen(pid_t pid, const char *name)
{
	struct sockaddr_un address;
	socklen_t n = address_make(pid, name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&address, n) && !listen(fd, 4))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Whoever listens is not asked: that would be a request to let go. */
bool release_socket_is_taken(pid_t pid, const char *name)
{
	int fd = release_socket_listen(pid, name);

	if (fd >= 0)
		close(fd);
	return fd == -EADDRINUSE;
}

int release_socket_accept(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && peer_is_ours(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void release_socket_answer(int fd, int code)
{
	if (fd < 0)
		return;
	(void)!send(fd, &code, sizeof(code), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int release_socket_ask(pid_t pid, const char *name)
{
	struct sockaddr_un address;
	socklen_t n = address_make(pid, name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), code = 0, r = -ESRCH;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, n) && peer_is_ours(fd) && recv(fd, &code, sizeof(code), 0) == sizeof(code))
		r = code;
	close(fd);
	return r;
}
