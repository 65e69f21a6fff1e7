/* SPDX-License-Identifier: BSD-2-Clause */
/* See hub.h. */
#include "daemon/net/hub.h"

#include "daemon/base/mem.h"

#include <stdlib.h>

#define SPARE_SIZE ((size_t)16 * 1024) /* bytes; a larger spare buffer frees its memory */

struct buf *hub_buf_get(struct hub *h)
{
	if (h->spares)
		return h->spare[--h->spares];
	return mem_alloc(sizeof(struct buf));
}

void hub_buf_put(struct hub *h, struct buf *b)
{
	if (!b)
		return;
	buf_clear(b);
	buf_trim(b, SPARE_SIZE);
	if (h->spares < HUB_SPARES) {
		h->spare[h->spares++] = b;
		return;
	}
	buf_release(b);
	free(b);
}

void hub_buf_release(struct hub *h)
{
	while (h->spares) {
		struct buf *b = h->spare[--h->spares];

		buf_release(b);
		free(b);
	}
}
