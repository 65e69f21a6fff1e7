/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One page of a list: the smallest of the names that were added, in order. The page owns copies of them, so the table that they come from may change meanwhile.
 * page_add() and page_sort() return how many names they moved, so that a caller can bound its work. Neither moves more than a logarithm of the page.
 */
#ifndef CORE_PAGE_H
#define CORE_PAGE_H

#include "proto/span.h"

#include <stdint.h>

struct page_row {
	char *name;
	size_t n;
};

/* An empty page is zero-filled but for `most`, the number of rows that it has room for. */
struct page {
	struct page_row *row;
	size_t n, cap, most;
	size_t unsorted; /* how many rows, from the first on, are not sorted yet */
	uint64_t more;   /* names that were added beyond the page */
};

void page_release(struct page *page); /* empty again, most stays */
unsigned page_add(struct page *page, struct span name);
/* After the last name was added: call this until page->unsorted is 0. Then the rows are in order. */
unsigned page_sort(struct page *page);

static inline struct span page_name(const struct page *page, size_t i)
{
	return (struct span){page->row[i].name, page->row[i].n};
}

int span_compare(struct span a, struct span b); /* the order of names: <0, 0, >0 */

#endif
