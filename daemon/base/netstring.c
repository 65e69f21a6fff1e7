/* SPDX-License-Identifier: BSD-2-Clause */
/* See netstring.h. */
#include "daemon/base/netstring.h"

#include <inttypes.h>
#include <stdio.h>

#define DIGITS_MAX 7 /* of a length: a list is no longer than a few hundred KiB */

void netstring_put(struct buf *list, struct span word)
{
	buf_printf(list, "%zu:", word.n);
	if (word.n > 0)
		buf_append(list, word.p, word.n);
}

void netstring_put_int(struct buf *list, int64_t n)
{
	char text[24];
	int length = snprintf(text, sizeof(text), "%" PRId64, n);

	netstring_put(list, (struct span){text, (size_t)length});
}

bool netstring_next(struct span *list, struct span *ret_word)
{
	size_t n = 0, i = 0;

	for (; i < list->n && i < DIGITS_MAX && list->p[i] >= '0' && list->p[i] <= '9'; i++)
		n = 10 * n + (size_t)(list->p[i] - '0');
	if (i == 0 || i == list->n || list->p[i] != ':' || list->n - i - 1 < n)
		return false;
	*ret_word = (struct span){list->p + i + 1, n};
	*list = (struct span){list->p + i + 1 + n, list->n - i - 1 - n};
	return true;
}

bool netstring_next_int(struct span *list, int64_t *ret_n)
{
	struct span word;
	int64_t n = 0;
	size_t i;

	if (!netstring_next(list, &word))
		return false;
	i = word.n > 0 && word.p[0] == '-';
	if (i == word.n || word.n - i > 18)
		return false;
	for (size_t k = i; k < word.n; k++) {
		if (word.p[k] < '0' || word.p[k] > '9')
			return false;
		n = 10 * n + (word.p[k] - '0');
	}
	*ret_n = i ? -n : n;
	return true;
}
