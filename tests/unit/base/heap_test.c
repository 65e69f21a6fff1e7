/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/heap.c. */
#include "daemon/base/heap.h"
#include "daemon/base/rng.h"

#include <check.h>

#define TIMERS 500

static struct instant at(int64_t us)
{
	return (struct instant){us};
}

TEST(timers_fire_in_the_order_of_their_deadlines)
{
	struct timer t[4] = {{.kind = 0}};
	struct heap h;

	heap_init(&h);
	ck_assert_ptr_null(heap_first(&h));
	heap_set(&h, &t[0], at(30));
	heap_set(&h, &t[1], at(10));
	heap_set(&h, &t[2], at(20));
	ck_assert_ptr_eq(heap_first(&h), &t[1]);
	heap_cancel(&h, &t[1]);
	ck_assert(!timer_is_set(&t[1]));
	ck_assert_ptr_eq(heap_first(&h), &t[2]);
	heap_set(&h, &t[0], at(5));
	ck_assert_ptr_eq(heap_first(&h), &t[0]);
	heap_release(&h);
}

TEST(equal_deadlines_fire_in_the_order_in_which_they_were_set)
{
	struct timer t[TIMERS] = {{.kind = 0}};
	struct heap h;
	int i;

	heap_init(&h);
	for (i = 0; i < TIMERS; i++)
		heap_set(&h, &t[i], at(7));
	heap_set(&h, &t[0], at(7)); /* set anew: last now */
	for (i = 1; i <= TIMERS; i++) {
		ck_assert_ptr_eq(heap_first(&h), &t[i % TIMERS]);
		heap_cancel(&h, &t[i % TIMERS]);
	}
	heap_release(&h);
}

TEST(never_cancels)
{
	struct timer t = {.kind = 0};
	struct heap h;

	heap_init(&h);
	heap_set(&h, &t, INSTANT_NEVER);
	ck_assert(!timer_is_set(&t));
	heap_set(&h, &t, at(1));
	heap_set(&h, &t, INSTANT_NEVER);
	ck_assert(!timer_is_set(&t));
	ck_assert_ptr_null(heap_first(&h));
	heap_cancel(&h, &t);
	heap_release(&h);
}

static void assert_heap(const struct heap *h)
{
	size_t i, wrong = 0;

	for (i = 0; i < h->count; i++) {
		wrong += h->slot[i]->index != i + 1;
		wrong += i && h->slot[(i - 1) / 4]->at.us > h->slot[i]->at.us;
	}
	ck_assert_uint_eq(wrong, 0);
}

TEST(random_sets_and_cancels_keep_the_order)
{
	static const uint64_t key[2] = {3, 5};
	struct timer t[TIMERS] = {{.kind = 0}};
	size_t set = 0, i;
	struct heap h;
	struct rng r;
	int turn;

	rng_init(&r, key);
	heap_init(&h);
	for (turn = 0; turn < 20000; turn++) {
		struct timer *one = &t[rng_below(&r, TIMERS)];

		if (rng_below(&r, 3))
			heap_set(&h, one, at((int64_t)rng_below(&r, 1000)));
		else
			heap_cancel(&h, one);
		if (turn % 100 == 0)
			assert_heap(&h);
	}
	assert_heap(&h);
	for (i = 0; i < TIMERS; i++)
		set += timer_is_set(&t[i]);
	ck_assert_uint_eq(set, h.count);
	heap_release(&h);
}

/* The timer that must ring first, by a look at each. */
static const struct timer *first_of(const struct timer *t, size_t n)
{
	const struct timer *first = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		if (timer_is_set(&t[i]) && (!first || t[i].at.us < first->at.us || (t[i].at.us == first->at.us && t[i].order < first->order)))
			first = &t[i];
	return first;
}

/* Of few deadlines, so that most are equal, with the earliest and the latest among them. The sizes give each group of children each number of members. */
TEST(the_first_timer_is_the_first_of_all_whichever_slot_changes)
{
	static const int64_t deadline[] = {INT64_MIN, -1, 0, 1, INT64_MAX - 1};
	struct timer t[40] = {{.kind = 0}};
	struct heap h;
	struct rng r;
	int turn;

	rng_init(&r, (const uint64_t[2]){7, 1});
	heap_init(&h);
	for (turn = 0; turn < 100000; turn++) {
		bool fill = turn / 200 % 2 == 0; /* by turns it grows and empties */

		if (h.count && rng_below(&r, 4) >= (fill ? 3 : 1))
			heap_cancel(&h, h.slot[rng_below(&r, 3) ? rng_below(&r, h.count) : rng_below(&r, 2) * (h.count - 1)]);
		else
			heap_set(&h, &t[rng_below(&r, 40)], at(deadline[rng_below(&r, 5)]));
		ck_assert_ptr_eq(heap_first(&h), first_of(t, 40));
	}
	assert_heap(&h);
	heap_release(&h);
}

TEST(a_drained_heap_yields_every_timer_once_and_sorted)
{
	static const uint64_t key[2] = {8, 9};
	struct timer t[TIMERS] = {{.kind = 0}}, *first;
	int64_t last = INT64_MIN;
	struct heap h;
	struct rng r;
	int i, n = 0;

	rng_init(&r, key);
	heap_init(&h);
	for (i = 0; i < TIMERS; i++)
		heap_set(&h, &t[i], at((int64_t)rng_next(&r) / 2));
	for (; (first = heap_first(&h)); n++) {
		ck_assert_int_le(last, first->at.us);
		last = first->at.us;
		heap_cancel(&h, first);
	}
	ck_assert_int_eq(n, TIMERS);
	heap_release(&h);
}
