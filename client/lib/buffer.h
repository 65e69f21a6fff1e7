/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for a line, which grows with the longest: few are long. */
#ifndef CLIENT_BUFFER_H
#define CLIENT_BUFFER_H

#include "client/lib/redlock.h"

struct buffer {
	char *p; /* NULL: none yet */
	size_t size;
};

/* Has n bytes at least, with what is there. 0, or -ENOMEM: then it is as before. */
int buffer_grow(struct buffer *room, size_t n) REDLOCK_MUST;
void buffer_release(struct buffer *room);

#endif
