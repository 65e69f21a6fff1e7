/* SPDX-License-Identifier: BSD-2-Clause */
/* See remark.h. */
#include "daemon/core/lock/remark.h"

#include "daemon/base/mem.h"

#include <string.h>

struct remark remark_read(struct span note, struct span trace)
{
	return (struct remark){note, trace_is_sound(trace) ? trace : SPAN("")};
}

void remark_write(char *to, struct remark remark)
{
	if (remark.note.n > 0)
		memcpy(to, remark.note.p, remark.note.n);
	if (remark.trace.n > 0)
		memcpy(to + remark.note.n, remark.trace.p, remark.trace.n);
}

void reply_remark(struct reply *r, struct remark remark)
{
	if (remark.note.n > 0)
		reply_text(r, "note", remark.note);
	if (remark.trace.n > 0)
		reply_text(r, "trace", remark.trace);
}

void kept_remark_set(struct kept_remark *k, struct remark remark)
{
	size_t n = remark.note.n + remark.trace.n;
	char *bytes = n > 0 ? mem_alloc(n) : NULL;

	remark_write(bytes, remark);
	mem_free(k->bytes);
	*k = (struct kept_remark){bytes, (uint16_t)remark.note.n, remark.trace.n > 0};
}

void kept_remark_release(struct kept_remark *k)
{
	mem_free(k->bytes);
}
