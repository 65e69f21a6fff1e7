/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/reply/listing.c: a page has the smallest of the names that were added, as many as there is room for. */
#include "daemon/core/reply/listing.h"

#include "daemon/base/rng.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define NAMES 3000

static char name[NAMES][512];
static struct span names[NAMES];

static int in_order(const void *a, const void *b)
{
	return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* Names of up to `longest` bytes. A number at the end makes them differ. */
static void names_draw(struct rng *rng, unsigned n, unsigned longest)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned length = 4 + (unsigned)rng_below(rng, longest - 3);

		for (unsigned k = 0; k < length; k++)
			name[i][k] = (char)('a' + rng_below(rng, 3));
		for (unsigned k = 0, rest = i; k < 4; k++, rest /= 10)
			name[i][length - 1 - k] = (char)('0' + rest % 10);
		names[i] = (struct span){name[i], length};
	}
}

static void page_is_right(const struct page *page, unsigned n)
{
	size_t bytes = 0;

	qsort(names, n, sizeof(*names), in_order);
	for (size_t i = 0; i < page->n; i++) {
		ck_assert(span_equal(page_name(page, i), names[i]));
		bytes += names[i].n;
	}
	ck_assert_uint_eq(page->bytes, bytes);
	ck_assert_uint_eq(page->n + page->more, n);
	ck_assert_uint_le(page->n, page->most);
	if (page->bytes_most > 0 && page->n > 1)
		ck_assert_uint_le(bytes, page->bytes_most);
}

TEST(a_page_has_the_smallest_names_in_their_order)
{
	struct rng rng;

	rng_init(&rng, (uint64_t[]){seed_pick("page"), 1});
	for (unsigned try = 0; try < 40; try++) {
		unsigned n = (unsigned)rng_below(&rng, NAMES), longest = rng_below(&rng, 2) ? 500 : 12;
		struct page page = {.most = (size_t)rng_below(&rng, NAMES), .bytes_most = rng_below(&rng, 2) ? (size_t)rng_below(&rng, 20000) : 0};

		names_draw(&rng, n, longest);
		for (unsigned i = 0; i < n; i++)
			(void)page_add(&page, names[i]);
		page_is_right(&page, n);
		page_release(&page);
		ck_assert_uint_eq(page.n + page.more + page.bytes, 0);
	}
}

/* Each name is smaller than all before, so each takes the place of another. */
TEST(a_page_takes_no_more_memory_than_its_names_however_many_come_and_go)
{
	struct page page = {.most = NAMES, .bytes_most = 100000};
	char text[500];

	memset(text, 'x', sizeof(text));
	for (unsigned i = 0; i < 20000; i++) {
		for (unsigned k = 0, rest = 20000 - i; k < 6; k++, rest /= 10)
			text[5 - k] = (char)('0' + rest % 10);
		(void)page_add(&page, (struct span){text, sizeof(text)});
		ck_assert_uint_le(page.bytes, page.bytes_most);
		ck_assert_uint_le(buf_length(&page.text), 4 * page.bytes_most);
	}
	ck_assert_uint_eq(page.n, 200);
	ck_assert_uint_eq(page.more, 20000 - 200);
	page_release(&page);
}

TEST(the_only_row_stays_however_long_it_is)
{
	struct page page = {.most = 5, .bytes_most = 2};

	(void)page_add(&page, SPAN("bcd"));
	(void)page_add(&page, SPAN("c"));
	ck_assert_uint_eq(page.n, 1);
	(void)page_add(&page, SPAN("abcd"));
	ck_assert_uint_eq(page.n, 1);
	ck_assert(span_equal(page_name(&page, 0), SPAN("abcd")));
	ck_assert_uint_eq(page.more, 2);
	page_release(&page);
}
