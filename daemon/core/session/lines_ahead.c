/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines_ahead.h. */
#include "daemon/core/session/lines_ahead.h"

#include "daemon/base/mem.h"

#include <stdint.h>
#include <string.h>

#define KEPT   ((size_t)4096)
#define IS_CUT (UINT32_C(1) << 31) /* in the length of a line */

void lines_ahead_release(struct lines_ahead *a)
{
	if (a->lines)
		buf_release(a->lines);
	mem_free(a->lines);
	*a = (struct lines_ahead){0};
}

size_t lines_ahead_bytes(const struct lines_ahead *a)
{
	return a->lines ? buf_length(a->lines) : 0;
}

bool lines_ahead_add(struct lines_ahead *a, struct input line)
{
	uint32_t head = (uint32_t)line.n | (line.is_cut ? IS_CUT : 0);

	if (!a->lines)
		a->lines = mem_alloc(sizeof(*a->lines));
	buf_append(a->lines, &head, sizeof(head));
	buf_append(a->lines, line.p, line.n);
	return ++a->count >= READ_AHEAD_LINES || buf_length(a->lines) >= READ_AHEAD_BYTES;
}

bool lines_ahead_next(struct lines_ahead *a, struct input *ret_line)
{
	uint32_t head;

	memcpy(&head, buf_begin(a->lines), sizeof(head));
	buf_consume(a->lines, sizeof(head));
	*ret_line = (struct input){.p = buf_begin(a->lines), .n = head & ~IS_CUT, .is_cut = head & IS_CUT};
	buf_consume(a->lines, ret_line->n);
	return --a->count <= READ_AHEAD_LINES / 2 && buf_length(a->lines) <= READ_AHEAD_BYTES / 2;
}

void lines_ahead_trim(struct lines_ahead *a, struct arena *arena, struct input *line)
{
	if (a->count > 0 || a->lines->cap <= KEPT)
		return;
	line->p = arena_copy(arena, line->p, line->n);
	lines_ahead_release(a);
}
