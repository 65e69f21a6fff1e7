/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that wait in the backlog, which stands in the segment: for a later pass, or for the next process. It must never change their order. */
#include "daemon/main/internal.h"

#include "daemon/base/mem.h"

#include <limits.h>

void kept_begin(struct daemon *d)
{
	struct segment *before = mem_use(d->segment);

	d->backlog = mem_alloc(sizeof(*d->backlog));
	backlog_init(d->backlog);
	mem_use(before);
}

void kept_drop(struct daemon *d)
{
	if (d->backlog)
		backlog_release(d->backlog);
	mem_free(d->backlog);
	d->backlog = NULL;
}

void kept_add(struct daemon *d, const struct call *call)
{
	struct segment *before = mem_use(d->segment);

	backlog_add(d->backlog, call);
	mem_use(before);
}

void kept_send(struct daemon *d)
{
	struct call call;

	if (!d->upstream)
		return;
	backlog_begin_pass(d->backlog, UINT_MAX);
	while (backlog_first(d->backlog, &call)) {
		upstream_call(d->upstream, &call);
		backlog_drop_first(d->backlog);
	}
}
