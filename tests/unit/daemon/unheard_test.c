/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/unheard.c. */
#include "daemon/main/unheard.h"

#include <check.h>
#include <string.h>

#define SOME 3000u

static struct unheard u;

static void add(uint64_t call)
{
	char found[16] = "found", text[16] = "text", marker[16] = "marker";
	const struct probe probe = {.marker = span_of(marker), .maxmemory = 7};
	const struct answer a = {.call = call, .found = span_of(found), .text = span_of(text), .probe = call % 2 ? &probe : NULL};

	unheard_add(&u, &a);
	memset(found, '#', sizeof(found));
	memset(text, '#', sizeof(text));
	memset(marker, '#', sizeof(marker));
}

static void assert_first(uint64_t call)
{
	const struct answer *a = unheard_first(&u);

	ck_assert_uint_eq(a->call, call);
	ck_assert(span_equal(a->found, SPAN("found")));
	ck_assert(span_equal(a->text, SPAN("text")));
	ck_assert_int_eq(a->probe != NULL, call % 2);
	if (!a->probe)
		return;
	ck_assert(span_equal(a->probe->marker, SPAN("marker")));
	ck_assert_int_eq(a->probe->maxmemory, 7);
}

static void teardown(void)
{
	unheard_release(&u);
}

FIXTURE(.teardown = teardown)

TEST(answers_come_out_as_they_came_in)
{
	uint64_t in = 0, out = 0;

	while (in < SOME) {
		add(++in);
		if (in % 3 == 0)
			continue;
		assert_first(++out);
		unheard_drop_first(&u);
	}
	for (; !unheard_is_empty(&u); unheard_drop_first(&u))
		assert_first(++out);
	ck_assert_uint_eq(out, in);
}

TEST(a_line_that_is_never_empty_needs_no_more_room_for_that)
{
	for (unsigned i = 1; i <= 2; i++)
		add(i);
	for (unsigned i = 3; i < SOME; i++) {
		add(i);
		unheard_drop_first(&u);
	}
	ck_assert_uint_le(u.cap, 256);
}

TEST(what_is_left_is_freed)
{
	for (unsigned i = 1; i <= 10; i++)
		add(i);
}
