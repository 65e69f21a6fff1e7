/* SPDX-License-Identifier: BSD-2-Clause */
/* See inherited.h. There are only a few sockets, so a linear search is enough. */
#include "daemon/net/inherited.h"

#include "daemon/base/mem.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void inherited_add(struct inherited *s, const struct listener *l, bool tls)
{
	s->socket = mem_grow(s->socket, s->n + 1, sizeof(*s->socket));
	s->socket[s->n++] = (struct inherited_socket){*l, tls};
}

static struct listener inherited_remove(struct inherited *s, size_t i)
{
	struct listener l = s->socket[i].listener;

	s->socket[i] = s->socket[--s->n];
	return l;
}

bool inherited_take(struct inherited *s, struct listener *ret_listener, bool *ret_tls)
{
	if (!s->n)
		return false;
	*ret_tls = s->socket[s->n - 1].tls;
	*ret_listener = inherited_remove(s, s->n - 1);
	return true;
}

bool inherited_take_unix(struct inherited *s, const char *path, struct listener *ret_listener)
{
	struct stat st;

	if (lstat(path, &st))
		return false;
	for (size_t i = 0; i < s->n; i++) {
		const struct listener *l = &s->socket[i].listener;

		if (l->path && l->device == st.st_dev && l->inode == st.st_ino) {
			*ret_listener = inherited_remove(s, i);
			return true;
		}
	}
	return false;
}

static bool is_same_address(const struct sockaddr_storage *have, const struct sockaddr *wanted)
{
	const struct sockaddr_in *a = (const void *)have, *b = (const void *)wanted;
	const struct sockaddr_in6 *a6 = (const void *)have, *b6 = (const void *)wanted;

	if (have->ss_family != wanted->sa_family)
		return false;
	if (have->ss_family == AF_INET)
		return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
	return have->ss_family == AF_INET6 && a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

static bool takes_v6_alone(int fd)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return !getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, &n) && value;
}

bool inherited_take_address(struct inherited *s, const struct sockaddr *address, bool only_v6, struct listener *ret_listener)
{
	for (size_t i = 0; i < s->n; i++) {
		struct sockaddr_storage have = {0};
		socklen_t size = sizeof(have);
		int fd = s->socket[i].listener.fd;

		if (getsockname(fd, (struct sockaddr *)&have, &size) || !is_same_address(&have, address))
			continue;
		if (have.ss_family == AF_INET6 && !only_v6 && takes_v6_alone(fd))
			continue;
		*ret_listener = inherited_remove(s, i);
		return true;
	}
	return false;
}

void inherited_drop_same(struct inherited *s, int fd)
{
	struct stat wanted, st;

	for (size_t i = 0; i < s->n && !fstat(fd, &wanted); i++) {
		struct listener l;

		if (fstat(s->socket[i].listener.fd, &st) || st.st_dev != wanted.st_dev || st.st_ino != wanted.st_ino)
			continue;
		l = inherited_remove(s, i--);
		if (l.fd != fd)
			close(l.fd);
		mem_free(l.path);
	}
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage have = {0};
	socklen_t size = sizeof(have);

	if (getsockname(fd, (struct sockaddr *)&have, &size))
		return 0;
	if (have.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&have)->sin_port);
	return have.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&have)->sin6_port) : 0;
}

bool inherited_drop_port(struct inherited *s, uint16_t port)
{
	bool some = false;

	for (size_t i = s->n; port && i-- > 0;) {
		struct listener l;

		if (port_of(s->socket[i].listener.fd) != port)
			continue;
		l = inherited_remove(s, i);
		listener_release(&l);
		some = true;
	}
	return some;
}

void inherited_release(struct inherited *s)
{
	while (s->n) {
		struct listener l = inherited_remove(s, s->n - 1);

		listener_release(&l);
	}
	mem_free(s->socket);
	*s = (struct inherited){0};
}
