/* SPDX-License-Identifier: BSD-2-Clause */
/* See page.h. */
#include "daemon/core/reply/page.h"

#include "daemon/base/mem.h"

#include <string.h>

#define ROWS_FIRST     ((size_t)64)
#define GONE_MOST      ((size_t)64 << 10) /* if removed names have so many bytes more than those of the rows, the text is written anew */
#define BYTES_A_WORK   256
#define ROWS_A_WORK    64 /* that are moved to make room for one */
#define WORK_OF_ROW    2  /* to compare with it, or to copy it */

int span_compare(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

void page_release(struct page *page)
{
	mem_free(page->row);
	buf_release(&page->text);
	*page = (struct page){.most = page->most, .bytes_most = page->bytes_most};
}

static unsigned page_write_anew(struct page *page)
{
	struct buf text;

	buf_init(&text);
	(void)buf_reserve(&text, page->bytes);
	for (size_t i = 0; i < page->n; i++) {
		struct span name = page_name(page, i);

		page->row[i].at = (uint32_t)buf_length(&text);
		buf_append(&text, name.p, name.n);
	}
	buf_release(&page->text);
	page->text = text;
	return WORK_OF_ROW * (unsigned)page->n;
}

/* Finds the place of the name. Most tables have no order, but a store returns its queues sorted. */
static size_t page_place(const struct page *page, struct span name, unsigned *work)
{
	size_t from = 0, to = page->n;

	if (to > 0 && span_compare(page_name(page, to - 1), name) < 0)
		return to;
	for (; from < to; *work += WORK_OF_ROW) {
		size_t middle = from + (to - from) / 2;

		if (span_compare(page_name(page, middle), name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static unsigned page_insert(struct page *page, struct span name)
{
	unsigned work = WORK_OF_ROW + (unsigned)(name.n / BYTES_A_WORK);
	size_t at = page_place(page, name, &work);

	if (page->n == page->cap) {
		page->cap = page->cap ? 2 * page->cap : ROWS_FIRST;
		page->row = mem_grow(page->row, page->cap, sizeof(*page->row));
	}
	memmove(&page->row[at + 1], &page->row[at], (page->n - at) * sizeof(*page->row));
	page->row[at] = (struct page_row){(uint32_t)buf_length(&page->text), (uint32_t)name.n};
	buf_append(&page->text, name.p, name.n);
	work += (unsigned)((page->n++ - at) / ROWS_A_WORK);
	page->bytes += name.n;
	return work;
}

static bool page_is_too_large(const struct page *page)
{
	return page->n > page->most || (page->bytes_most > 0 && page->bytes > page->bytes_most && page->n > 1);
}

unsigned page_add(struct page *page, struct span name)
{
	unsigned work;

	if ((page->more > 0 || page->n == page->most) && (page->n == 0 || span_compare(page_name(page, page->n - 1), name) <= 0)) {
		page->more++; /* the page leaves out other names already, or has no room */
		return WORK_OF_ROW;
	}
	work = page_insert(page, name);
	for (; page_is_too_large(page); page->more++)
		page->bytes -= page->row[--page->n].n;
	if (buf_length(&page->text) - page->bytes > page->bytes + GONE_MOST)
		work += page_write_anew(page);
	return work;
}
