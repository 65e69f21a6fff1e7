/* SPDX-License-Identifier: BSD-2-Clause */
/* While a page is filled it is a max-heap: what is larger than its largest is only counted. */
#include "daemon/core/page.h"

int span_compare(struct span a, struct span b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static void page_sift(struct page *page, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		const struct lock *swap;

		if (child >= page->n)
			return;
		if (child + 1 < page->n && span_compare(lock_name(page->row[child + 1]), lock_name(page->row[child])) > 0)
			child++;
		if (span_compare(lock_name(page->row[child]), lock_name(page->row[at])) <= 0)
			return;
		swap = page->row[at];
		page->row[at] = page->row[child];
		page->row[child] = swap;
		at = child;
	}
}

void page_add(struct page *page, const struct lock *l)
{
	if (page->n < page->most) {
		page->row[page->n++] = l;
		if (page->n == page->most)
			for (size_t i = page->n; i-- > 0;)
				page_sift(page, i);
		return;
	}
	page->more++;
	if (page->n == 0 || span_compare(lock_name(l), lock_name(page->row[0])) >= 0)
		return;
	page->row[0] = l;
	page_sift(page, 0);
}
