/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for a line, which grows with the longest: few are long. */
#ifndef CLIENT_ROOM_H
#define CLIENT_ROOM_H

#include "client/lib/redlock.h"

struct room {
	char *p; /* NULL: none yet */
	size_t size;
};

/* Has n bytes at least, with what is there. 0, or -ENOMEM: then it is as before. */
int room_grow(struct room *room, size_t n) REDLOCK_MUST;
void room_release(struct room *room);

#endif
