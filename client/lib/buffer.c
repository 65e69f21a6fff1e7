/* SPDX-License-Identifier: BSD-2-Clause */
/* See buffer.h. */
#include "client/lib/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>

#define FIRST ((size_t)512)

int buffer_grow(struct buffer *room, size_t n)
{
	size_t size = MAX(MAX(n, FIRST), 2 * room->size);
	char *p;

	if (n <= room->size)
		return 0;
	p = realloc(room->p, size);
	if (!p)
		return -ENOMEM;
	room->p = p;
	room->size = size;
	return 0;
}

void buffer_release(struct buffer *room)
{
	free(room->p);
	*room = (struct buffer){NULL, 0};
}
