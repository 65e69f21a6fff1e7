/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/main/backlog.c: calls come out as they went in, whatever becomes of the memory that they pointed to. */
#include "daemon/main/backlog.h"

#include "daemon/base/mem.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct backlog b;

static void setup(void)
{
	backlog_init(&b);
	backlog_begin_pass(&b, 1000);
}

static void teardown(void)
{
	backlog_release(&b);
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(calls_come_in_their_order_with_all_that_they_point_to)
{
	char text[6][16], is[6][16];
	struct call call;

	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = 0; k < 6; k++)
			snprintf(text[k], sizeof(text[k]), "%u/%u", i, k);
		backlog_add(&b, &(struct call){.id = i,
					       .kind = CALL_EXTEND,
					       .px_ms = i,
					       .name = span_of(text[0]),
					       .value = span_of(text[1]),
					       .new_value = span_of(text[2]),
					       .marker = span_of(text[3]),
					       .new_marker = span_of(text[4]),
					       .ticket = span_of(text[5])});
		memset(text, '?', sizeof(text));
	}
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned k = 0; k < 6; k++)
			snprintf(is[k], sizeof(is[k]), "%u/%u", i, k);
		ck_assert(!backlog_is_empty(&b));
		ck_assert(backlog_first(&b, &call));
		ck_assert_uint_eq(call.id, i);
		ck_assert_int_eq(call.kind, CALL_EXTEND);
		ck_assert_int_eq(call.px_ms, i);
		ck_assert(span_equal(call.name, span_of(is[0])) && span_equal(call.value, span_of(is[1])));
		ck_assert(span_equal(call.new_value, span_of(is[2])) && span_equal(call.marker, span_of(is[3])));
		ck_assert(span_equal(call.new_marker, span_of(is[4])) && span_equal(call.ticket, span_of(is[5])));
		backlog_drop_first(&b);
	}
	ck_assert(backlog_is_empty(&b));
	ck_assert(!backlog_first(&b, &call));
}

TEST(the_longest_of_all_fits_and_what_points_nowhere_stays_empty)
{
	static char longest[512];
	struct span name = {longest, 512}, value = {longest, VALUE_MAX}, marker = {longest, MARKER_MAX};
	struct call call;

	backlog_add(&b,
		    &(struct call){.name = name, .value = value, .new_value = value, .marker = marker, .new_marker = marker, .ticket = value});
	backlog_add(&b, &(struct call){.kind = CALL_PROBE});
	ck_assert(backlog_first(&b, &call));
	ck_assert_uint_eq(call.name.n, 512);
	backlog_drop_first(&b);
	ck_assert(backlog_first(&b, &call));
	ck_assert_uint_eq(call.name.n, 0);
}

TEST(a_pass_carries_out_no_more_than_its_calls_in_whatever_order_they_come)
{
	struct call call;

	backlog_begin_pass(&b, 3);
	backlog_add(&b, &(struct call){.id = 1});
	ck_assert(!backlog_lets_pass(&b));
	ck_assert(backlog_first(&b, &call));
	backlog_drop_first(&b);
	/* The calls that follow from its answer use up the pass. */
	ck_assert(backlog_lets_pass(&b));
	ck_assert(backlog_lets_pass(&b));
	ck_assert(!backlog_lets_pass(&b));
	for (unsigned i = 0; i < 3; i++)
		backlog_add(&b, &(struct call){.id = 2 + i});
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!backlog_first(&b, &call));
	ck_assert(!backlog_is_empty(&b));
	backlog_begin_pass(&b, 1);
	ck_assert(backlog_first(&b, &call));
	ck_assert_uint_eq(call.id, 2);
	backlog_drop_first(&b);
	ck_assert(!backlog_first(&b, &call));
}

TEST(a_pass_whose_time_is_over_carries_out_no_more)
{
	struct call call;

	backlog_begin_pass(&b, 3);
	ck_assert(backlog_lets_pass(&b));
	backlog_end_pass(&b);
	ck_assert(!backlog_lets_pass(&b));
	backlog_add(&b, &(struct call){.id = 1});
	ck_assert(!backlog_first(&b, &call));
	backlog_begin_pass(&b, 3);
	ck_assert(backlog_first(&b, &call));
	backlog_drop_first(&b);
}

TEST(a_text_of_any_length_is_kept)
{
	static char text[100000];
	struct call call;

	memset(text, 'x', sizeof(text));
	for (size_t n = 1; n < sizeof(text); n = 3 * n + 1) {
		backlog_add(&b, &(struct call){.id = n, .name = SPAN("queue"), .value = {text, n}, .ticket = SPAN("daemon")});
		ck_assert(backlog_first(&b, &call));
		ck_assert(span_equal(call.name, SPAN("queue")) && span_equal(call.ticket, SPAN("daemon")));
		ck_assert(span_equal(call.value, (struct span){text, n}));
		backlog_drop_first(&b);
	}
}
