/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/lua/shares.lua, sharing.lua, queue.lua: readers of several daemons and a writer at one key, and whom the store tells what. */
#include "tests/fixture/joined_node.h"

#include <stdio.h>
#include <string.h>

#define A SPAN("a")
#define FIRST  SPAN("d1:7:00ff")
#define SECOND SPAN("d2:8:11ee")
#define WRITER SPAN("d3:9:22dd")

static char told[512]; /* every message since told_nothing(): "d2 w " … */

static int64_t note_told(void *context, struct span channel, struct span message)
{
	size_t n = strlen(told);

	(void)context;
	snprintf(told + n, sizeof(told) - n, "%.*s %c ", (int)channel.n - 16, channel.p + 16, message.p[0]);
	return 1;
}

static void listens(void)
{
	told[0] = '\0';
	sim_node_publish_to(node, note_told, NULL);
}

static char shares(struct span value)
{
	struct call c = acquiring(A, value);

	c.form = FORM_SHARED;
	return call(c);
}

/* With a ticket. */
static char asks(struct span value, enum form form, struct span ticket)
{
	struct call c = acquiring(A, value);

	c.form = (uint8_t)form;
	c.ticket = ticket;
	c.ticket_ms = 3000;
	c.reserve_ms = 20;
	return call(c);
}

static char renews(struct span value, enum form form, int64_t floor, struct span ticket)
{
	return call((struct call){.kind = CALL_EXTEND, .name = A, .value = value, .new_value = value, .marker = MARKER, .px_ms = 1000, .create = true,
	                          .form = (uint8_t)form, .fence = floor, .ticket = ticket, .ticket_ms = 3000});
}

static char frees(struct span value)
{
	struct call c = releasing(A, value);

	c.form = FORM_SHARED;
	return call(c);
}

static char withdraws(struct span ticket)
{
	return call((struct call){.kind = CALL_WITHDRAW, .name = A, .ticket = ticket});
}

static bool stands(const char *text)
{
	struct span value;
	int64_t expires;

	return sim_node_get(node, A, now_us, &value, &expires) ? span_equal(value, span_of(text)) : !*text;
}

static bool is_shown(const char *text)
{
	return span_equal(answer.found, span_of(text));
}

FIXTURE(.setup = setup, .teardown = teardown)

TEST(shares_stand_together_in_one_key_and_a_writer_waits_for_the_last)
{
	int64_t fence;

	ck_assert_int_eq(shares(FIRST), 'G');
	now_us += MSEC;
	ck_assert_int_eq(shares(SECOND), 'G');
	fence = answer.fence;
	ck_assert(stands("R 0001700000001123,d1:7:00ff 0001700000001124,d2:8:11ee"));
	ck_assert_int_eq(acquire(A, WRITER), 'S');
	ck_assert(is_shown("d2:8"));
	ck_assert_int_eq(answer.pttl_ms, 1000);
	ck_assert_int_eq(frees(SECOND), 'R');
	ck_assert_int_eq(frees(SECOND), 'N');
	ck_assert(stands("R 0001700000001123,d1:7:00ff"));
	ck_assert_int_eq(frees(FIRST), 'R');
	ck_assert(stands(""));
	ck_assert_int_eq(acquire(A, WRITER), 'G');
	ck_assert_int_gt(answer.fence, fence);
	ck_assert_int_eq(shares(FIRST), 'B');
}

TEST(each_share_ends_at_its_own_moment)
{
	ck_assert_int_eq(shares(FIRST), 'G');
	now_us += 500 * MSEC;
	ck_assert_int_eq(shares(SECOND), 'G');
	now_us += 499 * MSEC;
	ck_assert_int_eq(acquire(A, WRITER), 'S');
	ck_assert_int_eq(renews(FIRST, FORM_SHARED, 0, SPAN("")), 'E');
	now_us += 600 * MSEC;
	ck_assert_int_eq(frees(FIRST), 'R');
	ck_assert_int_eq(acquire(A, WRITER), 'G');
}

/* The key may have been deleted, and a writer may have taken it. */
TEST(a_share_that_is_missing_is_put_back_beside_others_and_never_over_a_writer)
{
	ck_assert_int_eq(shares(SECOND), 'G');
	ck_assert_int_eq(renews(FIRST, FORM_SHARED, 0, SPAN("")), 'A');
	ck_assert_int_eq(frees(SECOND), 'R');
	ck_assert_int_eq(frees(FIRST), 'R');
	ck_assert_int_eq(acquire(A, WRITER), 'G');
	ck_assert_int_eq(renews(FIRST, FORM_SHARED, 0, SPAN("")), 'B');
	ck_assert(stands("d3:9:22dd"));
}

TEST(a_reader_does_not_pass_an_older_writer_however_long_that_waits)
{
	listens();
	ck_assert_int_eq(shares(FIRST), 'G');
	ck_assert_int_eq(asks(WRITER, FORM_ALONE, SPAN("1700000000000001:d3:1")), 'S');
	ck_assert_str_eq(told, "d1 c ");
	ck_assert_int_eq(asks(SECOND, FORM_SHARED, SPAN("1700000000000002:d2:1:s")), 'S');
	now_us += 100 * MSEC;
	ck_assert_int_eq(asks(SECOND, FORM_SHARED, SPAN("1700000000000002:d2:1:s")), 'S');
	/* An older one does, and is told that a writer waits. So is who renews. */
	ck_assert_int_eq(asks(SECOND, FORM_SHARED, SPAN("1700000000000000:d2:2:s")), 'G');
	ck_assert(is_shown("1700000000000001"));
	ck_assert_int_eq(renews(FIRST, FORM_SHARED, 0, SPAN("")), 'E');
	ck_assert(is_shown("1700000000000001"));
}

TEST(a_writer_that_gives_up_behind_readers_lets_the_next_readers_know)
{
	ck_assert_int_eq(shares(FIRST), 'G');
	ck_assert_int_eq(asks(WRITER, FORM_ALONE, SPAN("1700000000000001:d3:1")), 'S');
	ck_assert_int_eq(asks(SECOND, FORM_SHARED, SPAN("1700000000000002:d2:1:s")), 'S');
	ck_assert_int_eq(asks(SPAN("d4:1:33"), FORM_ALONE, SPAN("1700000000000003:d4:1")), 'S');
	listens();
	ck_assert_int_eq(withdraws(SPAN("1700000000000001:d3:1")), 'X');
	ck_assert_str_eq(told, "d2 w ");
}

/* One of them was woken before, and stands before that writer. */
TEST(a_writer_that_gives_up_behind_a_reader_that_waits_lets_the_next_readers_know)
{
	ck_assert_int_eq(shares(FIRST), 'G');
	ck_assert_int_eq(asks(WRITER, FORM_ALONE, SPAN("1700000000000001:d3:1")), 'S');
	ck_assert_int_eq(asks(SECOND, FORM_SHARED, SPAN("1700000000000002:d2:1:s")), 'S');
	ck_assert_int_eq(asks(SPAN("d4:1:33"), FORM_ALONE, SPAN("1700000000000003:d4:1")), 'S');
	ck_assert_int_eq(asks(SPAN("d5:1:33"), FORM_SHARED, SPAN("1700000000000004:d5:1:s")), 'S');
	ck_assert_int_eq(withdraws(SPAN("1700000000000001:d3:1")), 'X');
	listens();
	ck_assert_int_eq(withdraws(SPAN("1700000000000003:d4:1")), 'X');
	ck_assert(strstr(told, "d2 w ") && strstr(told, "d5 w "));
}

/* The key may end sooner than the writer was told. Who moves up was not told that, either; a renewal is no news. */
LOOP_TEST(a_share_that_is_left_behind_wakes_the_writer_that_is_first, 2)
{
	struct call leaves = {.kind = CALL_EXTEND, .name = A, .value = FIRST, .new_value = FIRST, .marker = MARKER, .px_ms = 100, .exact = true,
	                      .form = FORM_SHARED};

	ck_assert_int_eq(shares(FIRST), 'G');
	if (_i)
		ck_assert_int_eq(shares(SECOND), 'G');
	ck_assert_int_eq(asks(WRITER, FORM_ALONE, SPAN("1700000000000001:d3:1")), 'S');
	ck_assert_int_eq(asks(SPAN("d4:1:33"), FORM_ALONE, SPAN("1700000000000002:d4:1")), 'S');
	ck_assert_int_eq(asks(SPAN("d5:1:33"), FORM_SHARED, SPAN("1700000000000003:d5:1:s")), 'S');
	listens();
	ck_assert_int_eq(renews(FIRST, FORM_SHARED, 0, SPAN("")), 'E');
	ck_assert_str_eq(told, "");
	ck_assert_int_eq(call(leaves), 'E');
	ck_assert_str_eq(told, "d3 w ");
	ck_assert_int_eq(withdraws(SPAN("1700000000000002:d4:1")), 'X');
	ck_assert_str_eq(told, "d3 w ");
	ck_assert_int_eq(asks(SPAN("d4:1:33"), FORM_ALONE, SPAN("1700000000000002:d4:1")), 'S');
	listens();
	ck_assert_int_eq(withdraws(SPAN("1700000000000001:d3:1")), 'X');
	ck_assert_str_eq(told, "d4 w ");
}

/* It was told the end of the share that was released. */
TEST(a_writer_is_woken_when_a_reader_is_refused_for_it_after_the_last_share_ended)
{
	struct call leaves = {.kind = CALL_EXTEND, .name = A, .value = FIRST, .new_value = FIRST, .marker = MARKER, .px_ms = 50, .exact = true,
	                      .form = FORM_SHARED};

	ck_assert_int_eq(shares(FIRST), 'G');
	ck_assert_int_eq(shares(SECOND), 'G');
	ck_assert_int_eq(call(leaves), 'E');
	ck_assert_int_eq(asks(WRITER, FORM_ALONE, SPAN("1700000000000001:d3:1")), 'S');
	ck_assert_int_eq(answer.pttl_ms, 1000);
	listens();
	ck_assert_int_eq(frees(SECOND), 'R');
	ck_assert_str_eq(told, "");
	now_us += 51 * MSEC;
	ck_assert_int_eq(asks(SPAN("d4:1:33"), FORM_SHARED, SPAN("1700000000000002:d4:1:s")), 'W');
	ck_assert_str_eq(told, "d3 w ");
	ck_assert_int_eq(asks(WRITER, FORM_ALONE, SPAN("1700000000000001:d3:1")), 'G');
}

TEST(a_release_wakes_all_readers_up_to_the_first_writer)
{
	ck_assert_int_eq(acquire(A, WRITER), 'G');
	ck_assert_int_eq(asks(FIRST, FORM_SHARED, SPAN("1700000000000001:d1:1:s")), 'B');
	ck_assert_int_eq(asks(SECOND, FORM_SHARED, SPAN("1700000000000002:d2:1:s1700000000000004")), 'B');
	ck_assert_int_eq(asks(SPAN("d4:1:33"), FORM_SHARED, SPAN("1700000000000003:d4:1:s")), 'B');
	ck_assert_int_eq(asks(SPAN("d5:1:33"), FORM_SHARED, SPAN("1700000000000005:d5:1:s")), 'B');
	listens();
	ck_assert_int_eq(call(releasing(A, WRITER)), 'R');
	ck_assert(strstr(told, "d1 w ") && strstr(told, "d2 w ") && strstr(told, "d4 w ") && !strstr(told, "d5"));
}

TEST(all_shares_are_broken_together)
{
	struct call c = {.kind = CALL_BREAK, .name = A, .marker = MARKER, .value = SPAN("")};

	ck_assert_int_eq(shares(FIRST), 'G');
	ck_assert_int_eq(shares(SECOND), 'G');
	ck_assert_int_eq(call(c), 'B');
	ck_assert(is_shown("+"));
	listens();
	c.value = SPAN("+");
	ck_assert_int_eq(call(c), 'X');
	ck_assert_str_eq(told, "d1 b d2 b ");
	ck_assert_int_eq(renews(FIRST, FORM_SHARED, 0, SPAN("")), 'X');
	ck_assert_int_eq(shares(WRITER), 'S');
	ck_assert_int_eq(acquire(A, WRITER), 'S');
	ck_assert_int_eq(frees(FIRST), 'R');
	ck_assert_int_eq(renews(SECOND, FORM_SHARED, 0, SPAN("")), 'X');
	ck_assert_int_eq(frees(SECOND), 'R');
	ck_assert_int_eq(acquire(A, WRITER), 'G');
}
