/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of descriptors. It must never give one away twice. */
#include "daemon/base/fdlist.h"

#include "daemon/base/mem.h"

#include <unistd.h>

size_t fdlist_add(struct fdlist *l, int fd)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 16;
		l->fd = mem_grow(l->fd, l->cap, sizeof(*l->fd));
	}
	l->fd[l->n] = fd;
	return l->n++;
}

int fdlist_take(struct fdlist *l, size_t place)
{
	int fd = place < l->n ? l->fd[place] : -1;

	if (fd >= 0)
		l->fd[place] = -1;
	return fd;
}

void fdlist_release(struct fdlist *l)
{
	mem_free(l->fd);
	*l = (struct fdlist){0};
}

void fdlist_close(struct fdlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->fd[i] >= 0)
			close(l->fd[i]);
	fdlist_release(l);
}
