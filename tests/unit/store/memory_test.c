/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/store/memory.c and keyspace.c: what the differential test cannot see from outside Redis. */
#include "tests/fixture/joined_memory.h"

#include <malloc.h>

FIXTURE(.setup = store_start, .teardown = store_stop)

TEST(a_join_lifts_the_fence_above_what_was_seen_elsewhere)
{
	int64_t floor;

	floor = now.us + EPOCH + 3600 * SEC;
	ck_assert_int_eq(call((struct call){.kind = CALL_MARK, .new_marker = SPAN("q|cfg"), .fence = floor}), 'J');
	ck_assert_int_eq(memory_fence(memory), 0);
	ck_assert_int_eq(call((struct call){.kind = CALL_MARK, .marker = SPAN("q|cfg"), .new_marker = MARKER, .fence = floor}), 'J');
	ck_assert_int_eq(memory_fence(memory), floor);
	ck_assert_int_eq(call((struct call){.kind = CALL_MARK, .marker = MARKER, .new_marker = MARKER, .fence = floor - 1}), 'J');
	ck_assert_int_eq(memory_fence(memory), floor);
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'G');
	ck_assert_int_gt(memory_fence(memory), floor);
}

TEST(a_store_that_nobody_joined_grants_nothing)
{
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'Q');
	ck_assert(span_equal(answer.found, SPAN("")));
	ck_assert_int_eq(join(SPAN("q"), MARKER), 'X');
	ck_assert_int_eq(join(SPAN(""), SPAN("q|cfg")), 'J');
	ck_assert_int_eq(memory_fence(memory), 0);
	ck_assert_int_eq(join(SPAN("q|cfg"), MARKER), 'J');
	ck_assert_int_eq(memory_fence(memory), now.us + EPOCH + 60 * SEC);
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'G');
}

FIXTURE(.setup = joined_start, .teardown = store_stop, .seconds = 30)

TEST(a_busy_name_says_who_holds_it_and_for_how_long)
{
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'G');
	now.us += 400 * MSEC;
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS, 1000), 'B');
	ck_assert(span_equal(answer.found, SPAN("d1:7")));
	ck_assert_int_eq(answer.pttl_ms, 600);
	ck_assert_int_eq(answer.server_us, now.us + EPOCH);
	ck_assert_int_eq(release(SPAN("a"), THEIRS), 'N');
	ck_assert_int_eq(release(SPAN("a"), MINE), 'R');
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS, 1000), 'G');
}

TEST(a_key_runs_through_the_millisecond_of_its_expiry)
{
	now.us = 5 * SEC + 700; /* the server counts from the whole millisecond before */
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 10), 'G');
	now.us = 5 * SEC + 10 * MSEC + 999;
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS, 10), 'B');
	ck_assert_int_eq(answer.pttl_ms, 0);
	now.us++;
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS, 10), 'G');
}

TEST(a_renewal_never_shortens_a_key_but_a_lock_delay_does)
{
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'G');
	ck_assert_int_eq(acquire(SPAN("b"), MINE, 1000), 'G');
	ck_assert_int_eq(extend(SPAN("a"), MINE, MINE, 5000), 'E');
	ck_assert_int_eq(extend(SPAN("a"), MINE, MINE, 10), 'E');
	ck_assert_int_eq(answer.pttl_ms, 5000);
	ck_assert_int_eq(call((struct call){.kind = CALL_EXTEND, .name = SPAN("b"), .value = MINE, .new_value = MINE, .marker = MARKER,
					 .px_ms = 10, .exact = true}), 'E');
	now.us += 20 * MSEC;
	call((struct call){.kind = CALL_PROBE});
	ck_assert_uint_eq(memory_count(memory), 1);
	now.us += 4 * SEC;
	ck_assert_int_eq(acquire(SPAN("a"), THEIRS, 1000), 'B');
	now.us += 2 * SEC;
	call((struct call){.kind = CALL_PROBE});
	ck_assert_uint_eq(memory_count(memory), 0);
	ck_assert_int_eq(extend(SPAN("a"), MINE, MINE, 1000), 'M');
}

static char put_back(int64_t not_after_ms, bool exact)
{
	return call((struct call){.kind = CALL_EXTEND, .name = SPAN("a"), .value = MINE, .new_value = MINE, .marker = MARKER, .px_ms = 10, .create = true,
				  .exact = exact, .not_after_ms = not_after_ms});
}

TEST(a_missing_key_is_put_back_in_time_or_not_at_all)
{
	int64_t server_ms = (now.us + EPOCH) / MSEC;

	ck_assert_int_eq(put_back(server_ms - 1, false), 'M');
	ck_assert_int_eq(put_back(0, true), 'M');
	ck_assert_int_eq(put_back(server_ms, false), 'A');
	ck_assert_int_eq(put_back(server_ms - 1, false), 'E');
}

TEST(a_value_may_grow_when_it_is_adopted)
{
	char name[90], value[VALUE_MAX];

	memset(name, 'n', sizeof(name));
	memset(value, 'e', sizeof(value));
	ck_assert_int_eq(acquire((struct span){name, sizeof(name)}, MINE, 1000), 'G');
	ck_assert_int_eq(extend((struct span){name, sizeof(name)}, MINE, (struct span){value, sizeof(value)}, 1000), 'E');
	ck_assert_uint_eq(memory_count(memory), 1);
	ck_assert_int_eq(release((struct span){name, sizeof(name)}, MINE), 'N');
	ck_assert_int_eq(release((struct span){name, sizeof(name)}, (struct span){value, sizeof(value)}), 'R');
}

TEST(names_are_bytes_of_any_number)
{
	static char text[5000];
	size_t n;

	for (n = 1; n <= sizeof(text); n = n < 700 ? n + 1 : n + 1000)
		ck_assert_int_eq(acquire((struct span){text, n}, MINE, 1000), 'G');
	for (n = 1; n <= sizeof(text); n = n < 700 ? n + 1 : n + 1000) {
		ck_assert_int_eq(acquire((struct span){text, n}, THEIRS, 1000), 'B');
		ck_assert_int_eq(release((struct span){text, n}, MINE), 'R');
	}
	ck_assert_uint_eq(memory_count(memory), 0);
}

/* --- promises of an earlier run ----------------------------------------------------------------------------------------- */

TEST(a_name_that_an_earlier_run_promised_has_no_holder)
{
	memory_put(memory, SPAN("a"), SPAN(""), (struct instant){now.us + SEC});
	ck_assert_int_eq(acquire(SPAN("a"), SPAN(""), 1000), 'B');
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'B');
	ck_assert(span_equal(answer.found, SPAN("")));
	ck_assert_int_eq(extend(SPAN("a"), SPAN(""), SPAN(""), 1000), 'B');
	ck_assert_int_eq(release(SPAN("a"), SPAN("")), 'N');
	now.us += SEC - 1;
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'B');
	now.us += MSEC;
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 1000), 'G');
}

struct visits {
	unsigned count;
	struct span name[8], value[8];
	struct instant until[8];
};

static void visit(void *context, struct span name, struct span value, struct instant until)
{
	struct visits *v = context;

	ck_assert_uint_lt(v->count, 8);
	v->name[v->count] = name;
	v->value[v->count] = value;
	v->until[v->count++] = until;
}

TEST(live_keys_are_visited_in_name_order)
{
	struct visits v = {0};

	memory_put(memory, SPAN("b"), MINE, INSTANT_NEVER);
	ck_assert_int_eq(acquire(SPAN("ab"), MINE, 1000), 'G');
	ck_assert_int_eq(acquire(SPAN("gone"), MINE, 5), 'G');
	memory_put(memory, SPAN("a\0"), SPAN(""), (struct instant){now.us + 12345});
	ck_assert_int_eq(acquire(SPAN("a"), MINE, 2000), 'G');
	now.us += 10 * MSEC;
	memory_each(memory, now, visit, &v);
	ck_assert_uint_eq(v.count, 4);
	ck_assert(span_equal(v.name[0], SPAN("a")) && span_equal(v.name[1], SPAN("a\0")));
	ck_assert(span_equal(v.name[2], SPAN("ab")) && span_equal(v.name[3], SPAN("b")));
	ck_assert(span_equal(v.value[0], MINE) && v.value[1].n == 0 && span_equal(v.value[3], MINE));
	ck_assert_int_eq(v.until[0].us, 5 * SEC + 2001 * MSEC);
	ck_assert_int_eq(v.until[1].us, 5 * SEC + 13 * MSEC); /* up to the next millisecond, never down */
	ck_assert_int_eq(v.until[3].us, INSTANT_NEVER.us);
}

TEST(a_deadline_survives_being_put_again_as_it_is)
{
	struct span value;
	struct instant until;
	int i;

	until.us = now.us + 777777;
	for (i = 0; i < 5; i++) {
		memory_put(memory, SPAN("a"), SPAN(""), until);
		ck_assert(memory_get(memory, SPAN("a"), now, &value, &until));
	}
	ck_assert_int_eq(until.us, now.us + 778 * MSEC);
	ck_assert(!memory_get(memory, SPAN("a"), until, &value, &until));
}

TEST(the_fence_is_never_lowered)
{
	int64_t fence = memory_fence(memory);

	memory_set_fence(memory, 1);
	ck_assert_int_eq(memory_fence(memory), fence);
	memory_set_fence(memory, fence + 1);
	ck_assert_int_eq(memory_fence(memory), fence + 1);
}

TEST(a_key_of_another_type_is_told_as_such)
{
	memory_put_foreign(memory, SPAN("h"), INSTANT_NEVER);
	ck_assert_int_eq(acquire(SPAN("h"), MINE, 1000), 'K');
	ck_assert_int_eq(answer.pttl_ms, -1);
	ck_assert_int_eq(release(SPAN("h"), MINE), 'N');
	memory_put(memory, SPAN("h"), THEIRS, INSTANT_NEVER);
	ck_assert_int_eq(acquire(SPAN("h"), MINE, 1000), 'B');
	memory_remove(memory, SPAN("h"));
	memory_remove(memory, SPAN("h"));
	ck_assert_int_eq(acquire(SPAN("h"), MINE, 1000), 'G');
}

TEST(a_probe_tells_a_healthy_master)
{
	ck_assert_int_eq(call((struct call){.kind = CALL_PROBE, .id = 9, .node = 2}), 'P');
	ck_assert(answer.class == ANSWER_EXECUTED && answer.call == 9 && answer.node == 2);
	ck_assert_int_eq(answer.fence, memory_fence(memory));
	ck_assert(span_equal(answer.probe->marker, MARKER) && span_equal(answer.probe->run_id, SPAN("run")));
	ck_assert(span_equal(answer.probe->replid, SPAN("run")) && span_equal(answer.probe->role, SPAN("master")));
	ck_assert(span_equal(answer.probe->policy, SPAN("noeviction")) && answer.probe->version.n > 0);
	ck_assert(!answer.probe->loading && !answer.probe->defect && !answer.probe->maxmemory);
}
