/* SPDX-License-Identifier: BSD-2-Clause */
/* A page that is being filled is a max-heap; once it is full, a smaller name replaces the largest. Sorting moves the largest to the end, again and again. */
#include "daemon/core/reply/page.h"

#include "daemon/base/mem.h"


#define PAGE_FIRST ((size_t)64)

int span_compare(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

void page_release(struct page *page)
{
	for (size_t i = 0; i < page->n; i++)
		mem_free(page->row[i].name);
	mem_free(page->row);
	*page = (struct page){.most = page->most};
}

static void page_swap(struct page *page, size_t i, size_t k)
{
	struct page_row row = page->row[i];

	page->row[i] = page->row[k];
	page->row[k] = row;
}

static unsigned page_rise(struct page *page, size_t at)
{
	unsigned moved = 0;

	for (; at > 0 && span_compare(page_name(page, at), page_name(page, (at - 1) / 2)) > 0; at = (at - 1) / 2, moved++)
		page_swap(page, at, (at - 1) / 2);
	return moved;
}

static unsigned page_sink(struct page *page, size_t n)
{
	unsigned moved = 0;
	size_t at = 0, child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && span_compare(page_name(page, child + 1), page_name(page, child)) > 0)
			child++;
		if (span_compare(page_name(page, child), page_name(page, at)) <= 0)
			break;
		page_swap(page, child, at);
		at = child;
		moved++;
	}
	return moved;
}

static void row_set(struct page_row *row, struct span name)
{
	row->name = mem_copy(name.p, name.n);
	row->n = name.n;
}

unsigned page_add(struct page *page, struct span name)
{
	if (page->n < page->most) {
		if (page->n == page->cap) {
			page->cap = page->cap ? 2 * page->cap : PAGE_FIRST;
			page->row = mem_grow(page->row, page->cap, sizeof(*page->row));
		}
		row_set(&page->row[page->n], name);
		page->unsorted = ++page->n;
		return 1 + page_rise(page, page->n - 1);
	}
	page->more++;
	if (page->n == 0 || span_compare(name, page_name(page, 0)) >= 0)
		return 0;
	mem_free(page->row[0].name);
	row_set(&page->row[0], name);
	return 1 + page_sink(page, page->n);
}

unsigned page_sort(struct page *page)
{
	if (page->unsorted == 0)
		return 0;
	page_swap(page, 0, --page->unsorted);
	return 1 + page_sink(page, page->unsorted);
}
