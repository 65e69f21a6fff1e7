/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One page of a list of names, in their order: the smallest of those that were added. It owns copies of them, so it may be filled while their table
 * changes. Each call says how many names it moved, for whoever must not do too much at once; none moves more than a logarithm of the page.
 */
#ifndef CORE_PAGE_H
#define CORE_PAGE_H

#include "proto/span.h"

#include <stdint.h>

struct page_row {
	char *name;
	size_t n;
};

/* Zero-filled but for most: empty. */
struct page {
	struct page_row *row;
	size_t n, cap, most;
	size_t unsorted; /* rows that are in no order yet */
	uint64_t more;   /* names that were added beyond the page */
};

void page_release(struct page *page); /* empty again, most stays */
unsigned page_add(struct page *page, struct span name);
/* After the last was added: call until page->unsorted is 0; then the rows stand in their order. */
unsigned page_sort(struct page *page);

static inline struct span page_name(const struct page *page, size_t i)
{
	return (struct span){page->row[i].name, page->row[i].n};
}

int span_compare(struct span a, struct span b); /* as names are ordered: <0, 0, >0 */

#endif
