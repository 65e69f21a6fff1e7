/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One page of a list: the smallest of the names that were added, sorted, as many as there is room for. The page has its own copies, so the table of the names
 * may change meanwhile.
 */
#ifndef CORE_PAGE_H
#define CORE_PAGE_H

#include "daemon/base/buf.h"
#include "proto/span.h"

#include <stdint.h>

struct page_row {
	uint32_t at, n; /* where the name is in `text` */
};

/* An empty page is zero-filled but for `most` and `bytes_most`. */
struct page {
	struct page_row *row;
	size_t n, cap, most;
	size_t bytes, bytes_most; /* of the names of all rows. One row always has room; bytes_most 0: no bound */
	struct buf text;          /* the names of the rows. It also has names of removed rows until it is written anew */
	uint64_t more;            /* how many names were added that are not in the page */
};

void page_release(struct page *page); /* empties it, and keeps the memory */
/* Returns the approximate cost, in units of 50 ns. */
unsigned page_add(struct page *page, struct span name);

static inline struct span page_name(const struct page *page, size_t i)
{
	return (struct span){buf_begin(&page->text) + page->row[i].at, page->row[i].n};
}

int span_compare(struct span a, struct span b); /* the order of names: <0, 0, >0 */

#endif
