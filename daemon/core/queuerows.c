/* SPDX-License-Identifier: BSD-2-Clause */
/* See queuerows.h. On a page a row is the name, and behind it its figures, 8 bytes each, next_ms + 1, so that rows of one name stand together. */
#include "daemon/core/queuerows.h"

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

void queue_rows_add(struct page *p, const struct queue_row *row)
{
	char key[NAME_MAX_BYTES + QUEUE_FIGURES * 8], *at = key;

	memcpy(at, row->name.p, row->name.n);
	at += row->name.n;
	for (unsigned i = 0; i < QUEUE_FIGURES; i++)
		at = figure_put(at, row->figure[i] + (i == QUEUE_FIGURES - 1));
	(void)page_add(p, (struct span){key, (size_t)(at - key)});
}

struct span queue_rows_name(const struct page *p, size_t i)
{
	struct span key = page_name(p, i);

	return (struct span){key.p, key.n - QUEUE_FIGURES * 8};
}

static void queue_figures(const struct page *p, size_t i, int64_t figure[QUEUE_FIGURES])
{
	const char *at = queue_rows_name(p, i).p + queue_rows_name(p, i).n;

	for (unsigned k = 0; k < QUEUE_FIGURES; k++)
		figure[k] = figure_get(at + 8 * k) - (k == QUEUE_FIGURES - 1);
}

size_t queue_rows_sum(const struct page *p, size_t i, int64_t figure[QUEUE_FIGURES])
{
	size_t n = 1;

	queue_figures(p, i, figure);
	for (; i + n < p->n && span_equal(queue_rows_name(p, i + n), queue_rows_name(p, i)); n++) {
		int64_t more[QUEUE_FIGURES], *next = &figure[QUEUE_FIGURES - 1];

		queue_figures(p, i + n, more);
		for (unsigned k = 0; k < QUEUE_FIGURES - 1; k++)
			figure[k] += more[k];
		if (more[QUEUE_FIGURES - 1] >= 0 && (*next < 0 || more[QUEUE_FIGURES - 1] < *next))
			*next = more[QUEUE_FIGURES - 1];
	}
	return n;
}
