/* SPDX-License-Identifier: BSD-2-Clause */
/* See queue_rows.h. On a page a row is the name, and behind it its figures, 8 bytes each, next_ms + 1. */
#include "daemon/core/job/queue_rows.h"

#include "daemon/base/netstring.h"
#include "proto/proto.h"

#include <string.h>

bool queue_row_read(struct span *text, struct queue_row *ret_row)
{
	if (!netstring_next(text, &ret_row->name) || ret_row->name.n > NAME_MAX_BYTES)
		return false;
	for (unsigned i = 0; i < QUEUE_FIGURES; i++)
		if (!netstring_next_int(text, &ret_row->figure[i]))
			return false;
	return true;
}

static char *figure_put(char *at, int64_t n)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (char)((uint64_t)n >> (56 - 8 * i));
	return at + 8;
}

static int64_t figure_get(const char *at)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 8; i++)
		n = n << 8 | (unsigned char)at[i];
	return (int64_t)n;
}

unsigned queue_rows_add(struct page *p, const struct queue_row *row)
{
	char key[NAME_MAX_BYTES + QUEUE_FIGURES * 8], *at = key;

	memcpy(at, row->name.p, row->name.n);
	at += row->name.n;
	for (unsigned i = 0; i < QUEUE_FIGURES; i++)
		at = figure_put(at, row->figure[i] + (i == QUEUE_FIGURES - 1));
	return page_add(p, (struct span){key, (size_t)(at - key)});
}

struct queue_row queue_rows_get(const struct page *p, size_t i)
{
	struct span key = page_name(p, i);
	struct queue_row row = {.name = {key.p, key.n - QUEUE_FIGURES * 8}};

	for (unsigned k = 0; k < QUEUE_FIGURES; k++)
		row.figure[k] = figure_get(row.name.p + row.name.n + 8 * k) - (k == QUEUE_FIGURES - 1);
	return row;
}
