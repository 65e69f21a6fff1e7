/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One page of a list: the smallest of the names that were added, always in order, as many as there is room for. The page owns copies of them, so the table that
 * they come from may change meanwhile.
 */
#ifndef CORE_PAGE_H
#define CORE_PAGE_H

#include "daemon/base/buf.h"
#include "proto/span.h"

#include <stdint.h>

struct page_row {
	uint32_t at, n; /* in text */
};

/* An empty page is zero-filled but for `most` and `bytes_most`. */
struct page {
	struct page_row *row;
	size_t n, cap, most;
	size_t bytes, bytes_most; /* of the names of all rows, but one row has always room; bytes_most 0: no bound */
	struct buf text;          /* these names, and those of rows that had to go since it was written anew */
	uint64_t more;            /* names that were added and are not in the page */
};

void page_release(struct page *page); /* empty again, with the same room */
/* Returns about how long that took, in units of 50 ns. */
unsigned page_add(struct page *page, struct span name);

static inline struct span page_name(const struct page *page, size_t i)
{
	return (struct span){buf_begin(&page->text) + page->row[i].at, page->row[i].n};
}

int span_compare(struct span a, struct span b); /* the order of names: <0, 0, >0 */

#endif
