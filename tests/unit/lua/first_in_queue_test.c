/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/redis/lua/queue.lua: how long a free lock is kept for the first in the queue. */
#include "tests/fixture/joined_node.h"

#include <string.h>

FIXTURE(.setup = setup, .teardown = teardown)

/* Not from the first request that it is refused for: servers that have seen another number of those would keep and grant it in turn. */
TEST(a_released_lock_is_kept_for_the_first_in_the_queue)
{
	struct call older = acquiring(SPAN("a"), THEIRS), younger = acquiring(SPAN("a"), SPAN("d3:9:22dd"));

	older.ticket = SPAN("1700000000000001:d2:1");
	younger.ticket = SPAN("1700000000000002:d3:1");
	older.ticket_ms = younger.ticket_ms = 5000;
	older.reserve_ms = younger.reserve_ms = 20;
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	ck_assert_int_eq(call(older), 'B');
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
	now_us += 19 * MSEC;
	ck_assert_int_eq(call(younger), 'W');
	now_us += MSEC;
	ck_assert_int_eq(call(younger), 'G');
	/* The lock is free once more, so a new grace begins. */
	younger.ticket = SPAN("1700000000000003:d3:2");
	ck_assert_int_eq(call(releasing(SPAN("a"), SPAN("d3:9:22dd"))), 'R');
	now_us += 19 * MSEC;
	ck_assert_int_eq(call(younger), 'W');
	now_us += MSEC;
	ck_assert_int_eq(call(younger), 'G');
}

/* A ticket that becomes the first because another leaves the queue is announced then. */
TEST(a_free_lock_is_kept_for_the_next_once_the_first_has_left_the_queue)
{
	struct call first = acquiring(SPAN("a"), THEIRS), second = acquiring(SPAN("a"), SPAN("d3:9:22dd"));
	struct call last = acquiring(SPAN("a"), SPAN("d4:3:33cc")), leaves = {.kind = CALL_WITHDRAW, .name = SPAN("a")};

	first.ticket = leaves.ticket = SPAN("1700000000000001:d2:1");
	second.ticket = SPAN("1700000000000002:d3:1");
	first.ticket_ms = second.ticket_ms = 5000;
	last.reserve_ms = 20;
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	ck_assert_int_eq(call(first), 'B');
	ck_assert_int_eq(call(second), 'B');
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
	now_us += 15 * MSEC;
	ck_assert_int_eq(call(leaves), 'X');
	now_us += 15 * MSEC;
	ck_assert_int_eq(call(last), 'W');
	/* A second leave of the first changes nothing. */
	ck_assert_int_eq(call(leaves), 'X');
	now_us += 5 * MSEC;
	ck_assert_int_eq(call(last), 'G');
}

/* The host of the store set its clock back while the lock was free, and the first in the queue is dead. The lock is not kept until the clock has caught up. */
LOOP_TEST(a_note_from_before_the_clock_was_set_back_does_not_count, 2)
{
	static const int64_t back[] = {3600 * SEC, 30 * SEC};
	struct call dead = acquiring(SPAN("a"), THEIRS), alive = acquiring(SPAN("a"), SPAN("d3:9:22dd"));

	dead.ticket = SPAN("1700000000000001:d2:1");
	alive.ticket = SPAN("1700000000000002:d3:1");
	dead.ticket_ms = alive.ticket_ms = 3000;
	alive.reserve_ms = 20;
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	ck_assert_int_eq(call(dead), 'B');
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
	now_us -= back[_i];
	call(alive);
	now_us += 20 * MSEC;
	ck_assert_int_eq(call(alive), 'G');
}

/* Whether the ticket, or the note of it, is in the queue of the name. */
static bool is_queued(struct span ticket)
{
	char note[64] = "~";
	int64_t until;

	memcpy(note + 1, ticket.p, ticket.n);
	return sim_node_place(node, SPAN("a"), ticket, now_us, &until) ||
	       sim_node_place(node, SPAN("a"), (struct span){note, 1 + ticket.n}, now_us, &until);
}

/* The number of messages to the daemon d3, which waits second. */
static int64_t second_is_told(void *context, struct span channel, struct span message)
{
	*(int *)context += span_equal(channel, SPAN("redlockd:lock:d:d3")) && span_equal(message, SPAN("wlock:a"));
	return 0;
}

static int64_t anybody_is_told(void *context, struct span channel, struct span message)
{
	(void)channel;
	(void)message;
	++*(int *)context;
	return 0;
}

/*
 * The host of the store set its clock ahead, so that the key that tells of waiters ended, and back. Nobody used this queue meanwhile, so it is still there.
 */
TEST(a_ticket_leaves_the_queue_though_nothing_tells_any_more_that_somebody_waits)
{
	struct call first = acquiring(SPAN("a"), THEIRS), second = acquiring(SPAN("a"), SPAN("d3:9:22dd"));
	struct call leaves = {.kind = CALL_WITHDRAW, .name = SPAN("a")};
	int told = 0;

	first.ticket = leaves.ticket = SPAN("1700000000000001:d2:1");
	second.ticket = SPAN("1700000000000002:d3:1");
	first.ticket_ms = second.ticket_ms = 3000;
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	ck_assert_int_eq(call(first), 'B');
	ck_assert_int_eq(call(second), 'B');
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
	now_us += 20 * SEC;
	ck_assert_int_eq(call(releasing(SPAN("b"), MINE)), 'N');
	now_us -= 20 * SEC;
	ck_assert(is_queued(first.ticket));
	sim_node_publish_to(node, second_is_told, &told);
	ck_assert_int_eq(call(leaves), 'X');
	ck_assert(!is_queued(first.ticket));
	ck_assert(is_queued(second.ticket));
	ck_assert_int_eq(told, 1);
}

/* A key that was left behind ends sooner than the second was told, and only the first was told that. */
LOOP_TEST(when_the_first_leaves_the_queue_of_a_kept_lock_the_next_is_woken, 2)
{
	struct call first = acquiring(SPAN("a"), THEIRS), second = acquiring(SPAN("a"), SPAN("d3:9:22dd"));
	struct call leaves = {.kind = CALL_WITHDRAW, .name = SPAN("a")};
	struct call keeps = {.kind = CALL_EXTEND, .name = SPAN("a"), .value = MINE, .new_value = MINE, .marker = MARKER, .px_ms = 23, .exact = true};
	int told = 0;

	first.ticket = SPAN("1700000000000001:d2:1");
	second.ticket = SPAN("1700000000000002:d3:1");
	first.ticket_ms = second.ticket_ms = 3000;
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	ck_assert_int_eq(call(first), 'B');
	ck_assert_int_eq(call(second), 'B');
	ck_assert_int_eq(call(keeps), 'E');
	sim_node_publish_to(node, second_is_told, &told);
	leaves.ticket = _i ? second.ticket : first.ticket;
	ck_assert_int_eq(call(leaves), 'X');
	ck_assert_int_eq(told, _i ? 0 : 1);
}

/* The first was told that the key ends much later, so it does not ask in time by itself. Nobody else is woken, and nobody twice. */
TEST(a_reserved_time_that_begins_with_a_refusal_wakes_the_first)
{
	struct call first = acquiring(SPAN("a"), SPAN("d3:9:22dd")), next = acquiring(SPAN("a"), SPAN("d4:3:33cc")), last = acquiring(SPAN("a"), THEIRS);
	struct call ends = {.kind = CALL_EXTEND, .name = SPAN("a"), .value = MINE, .new_value = MINE, .marker = MARKER, .px_ms = 23, .exact = true};
	int told = 0, all = 0;

	first.ticket = SPAN("1700000000000001:d3:1");
	next.ticket = SPAN("1700000000000002:d4:1");
	first.ticket_ms = next.ticket_ms = 3000;
	first.reserve_ms = next.reserve_ms = last.reserve_ms = 20;
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	ck_assert_int_eq(call(first), 'B');
	ck_assert_int_eq(call(next), 'B');
	ck_assert_int_eq(call(ends), 'E');
	now_us += 24 * MSEC;
	sim_node_publish_to(node, second_is_told, &told);
	ck_assert_int_eq(call(last), 'W');
	ck_assert_int_eq(told, 1);
	sim_node_publish_to(node, anybody_is_told, &all);
	now_us += 10 * MSEC;
	ck_assert_int_eq(call(last), 'W');
	ck_assert_int_eq(all, 0);
	ck_assert_int_eq(call(first), 'G');
	ck_assert_int_eq(all, 0);
}

static void look_shows(char code, const char *found)
{
	ck_assert_int_eq(call((struct call){.kind = CALL_LOOK, .name = SPAN("a"), .marker = MARKER}), code);
	ck_assert_uint_eq(answer.found.n, strlen(found));
	ck_assert_int_eq(memcmp(answer.found.p, found, strlen(found)), 0);
}

/* The smallest ticket, not the one that was refreshed last; no note, and no ticket that is over. */
TEST(a_look_shows_the_first_ticket_of_the_queue)
{
	struct call first = acquiring(SPAN("a"), THEIRS), second = acquiring(SPAN("a"), SPAN("d3:9:22dd"));

	first.ticket = SPAN("1700000000000001:d2:1");
	second.ticket = SPAN("1700000000000002:d3:1");
	first.ticket_ms = 3000;
	second.ticket_ms = 2000;
	look_shows('M', "");
	ck_assert_int_eq(acquire(SPAN("a"), MINE), 'G');
	look_shows('B', "d1:7");
	ck_assert_int_eq(call(second), 'B');
	look_shows('B', "d1:7 1700000000000002:d3:1");
	ck_assert_int_eq(call(first), 'B');
	look_shows('B', "d1:7 1700000000000001:d2:1");
	ck_assert_int_eq(call(releasing(SPAN("a"), MINE)), 'R');
	look_shows('M', " 1700000000000001:d2:1");
	now_us += 1000 * MSEC;
	ck_assert_int_eq(call(second), 'G');
	look_shows('B', "d3:9 1700000000000001:d2:1");
	now_us += 2000 * MSEC;
	look_shows('M', "");
}

/* Whatever a client calls its lock, those who wait for it stand in no line of a slot. */
LOOP_TEST(a_slot_is_in_no_line_of_a_lock, 3)
{
	static const char *const lock[] = {"ckd:lock:s:x#0", "redlockd:lock:s:x#0", "s:x#0"};
	const struct span slot = SPAN(SLOT_PREFIX "x#0");
	struct call waits = acquiring(span_of(lock[_i]), THEIRS), waits_for_slot = acquiring(slot, SPAN("d3:9:22dd")), comes_late = acquiring(slot, MINE);

	waits.ticket = SPAN("1700000000000001:d2:1");
	waits_for_slot.ticket = SPAN("1700000000000002:d3:1");
	waits.ticket_ms = waits_for_slot.ticket_ms = 5000;
	comes_late.reserve_ms = 20;
	ck_assert_int_eq(acquire(span_of(lock[_i]), MINE), 'G');
	ck_assert_int_eq(call(waits), 'B');
	ck_assert_int_eq(acquire(slot, MINE), 'G');
	ck_assert_int_eq(call(waits_for_slot), 'B');
	ck_assert_int_eq(call(releasing(slot, MINE)), 'R');
	ck_assert_int_eq(call(comes_late), 'W');
	ck_assert_int_eq(call(waits_for_slot), 'G');
}
