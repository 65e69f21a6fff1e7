/* SPDX-License-Identifier: BSD-2-Clause */
/* See ahead.h. */
#include "daemon/core/ahead.h"

#include "daemon/base/mem.h"

#include <stdint.h>
#include <string.h>

#define TOO_LONG UINT32_MAX

void ahead_release(struct ahead *a)
{
	if (a->lines)
		buf_release(a->lines);
	mem_free(a->lines);
	*a = (struct ahead){0};
}

bool ahead_add(struct ahead *a, const char *p, size_t n)
{
	uint32_t length = p ? (uint32_t)n : TOO_LONG;

	if (!a->lines)
		a->lines = mem_alloc(sizeof(*a->lines));
	buf_append(a->lines, &length, sizeof(length));
	if (p)
		buf_append(a->lines, p, n);
	return ++a->count >= READ_AHEAD_LINES || buf_length(a->lines) >= READ_AHEAD_BYTES;
}

bool ahead_next(struct ahead *a, char **ret_line, size_t *ret_n)
{
	uint32_t length;

	memcpy(&length, buf_begin(a->lines), sizeof(length));
	buf_consume(a->lines, sizeof(length));
	*ret_line = NULL;
	*ret_n = 0;
	if (length != TOO_LONG) {
		*ret_line = buf_begin(a->lines);
		*ret_n = length;
		buf_consume(a->lines, length);
	}
	return --a->count <= READ_AHEAD_LINES / 2 && buf_length(a->lines) <= READ_AHEAD_BYTES / 2;
}
