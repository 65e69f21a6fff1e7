/* SPDX-License-Identifier: BSD-2-Clause */
/* One page of a list of locks, in the order of their names: built in one pass over a table without order, so a large table costs no sort. */
#ifndef CORE_PAGE_H
#define CORE_PAGE_H

#include "daemon/core/lock.h"

/* The smallest names of those that were added, in no order. */
struct page {
	const struct lock **row;
	size_t n, most; /* row has room for most */
	uint64_t more; /* that did not fit */
};

void page_add(struct page *page, const struct lock *l);
int span_compare(struct span a, struct span b); /* as names are ordered: <0, 0, >0 */

#endif
