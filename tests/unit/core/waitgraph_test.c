/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/waitgraph.c and waitcycle.c: who is stuck, who is refused, and the cycle that is told. waitgraph_random_test.c compares them with a second
 * opinion.
 */
#include "daemon/core/waitcycle.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct waitgraph graph;
static char cycle[2000];

static const char *const who[] = {"a", "b", "c"};
static const char *const host[] = {"ha", "hb", "hc"};

static void begins(void)
{
	graph_release(&graph);
	graph_init(&graph, (const uint64_t[]){1, 2});
}

static void comes(unsigned i, int64_t place)
{
	graph_add_owner(&graph, &(struct graph_owner){.who = span_of(who[i]), .host = span_of(host[i]), .place = place, .own = true});
}

static void wants(const char *what, unsigned request, bool any)
{
	graph_add_want(&graph, graph.owners - 1, &(struct graph_want){.name = span_of(what), .request = request, .any = any});
}

static void holds(const char *what)
{
	graph_add_hold(&graph, graph.owners - 1, span_of(what), 0);
}

/* Of a semaphore of that limit. */
static void wants_permit(const char *what, unsigned limit)
{
	graph_add_want(&graph, graph.owners - 1, &(struct graph_want){.name = span_of(what), .limit = limit});
}

static void holds_permits(const char *what, unsigned count)
{
	graph_add_hold(&graph, graph.owners - 1, span_of(what), count);
}

static bool some_are_stuck(void)
{
	if (!graph_reduce(&graph))
		return false;
	cycle_find_victims(&graph);
	return true;
}

static bool shows_all(const void *about, struct span name)
{
	(void)about;
	(void)name;
	return true;
}

static const char *told(unsigned i)
{
	const struct graph_want *first;

	cycle[cycle_tell(&graph, i, shows_all, NULL, cycle, sizeof(cycle), &first)] = '\0';
	return cycle;
}

/* Owner 0 has x and wants y; owner 1, which came later, has y and wants x. */
static void two_wait_for_each_other(void)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("y", 0, false);
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
}

TEST(two_owners_that_wait_for_each_other_are_stuck_and_the_later_one_is_refused)
{
	two_wait_for_each_other();
	ck_assert(some_are_stuck());
	ck_assert(!graph.owner[0].victim);
	ck_assert(graph.owner[1].victim);
	ck_assert_str_eq(told(1), "x@ha<-y@hb<-x@ha");
}

TEST(an_owner_that_waits_for_a_cycle_is_stuck_but_not_refused)
{
	two_wait_for_each_other();
	comes(2, 30);
	holds("z");
	wants("x", 0, false);
	ck_assert(some_are_stuck());
	ck_assert(graph.owner[2].stuck);
	ck_assert(!graph.owner[2].victim);
	ck_assert(graph.owner[1].victim);
}

TEST(a_request_for_any_name_goes_on_when_one_of_them_becomes_free)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("y", 0, true);
	wants("z", 0, true);
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
	ck_assert(!some_are_stuck());
	comes(2, 30);
	holds("z");
	wants("x", 0, false);
	ck_assert(some_are_stuck());
	ck_assert(graph.owner[2].victim);
}

TEST(a_request_for_all_names_waits_for_each_of_them)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("y", 0, false);
	wants("z", 0, false); /* nobody has it */
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
	ck_assert(some_are_stuck());
	ck_assert_str_eq(told(1), "x@ha<-y@hb<-x@ha");
}

TEST(an_owner_is_not_in_its_own_way)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("x", 0, false);
	ck_assert(!some_are_stuck());
}

/* Owner 0 has x and wants a permit of three; 1 has so many of them and 2 has the others. */
static void two_have_permits(unsigned n)
{
	begins();
	comes(0, 30);
	holds("x");
	wants_permit("s", 3);
	comes(1, 10);
	holds_permits("s", n);
	wants("x", 0, false);
	comes(2, 20);
	if (n < 3)
		holds_permits("s", 3 - n);
}

TEST(a_request_for_permits_goes_on_when_enough_of_them_become_free)
{
	two_have_permits(2);
	ck_assert(!some_are_stuck()); /* 2 waits for nobody */
	two_have_permits(3);
	ck_assert(some_are_stuck());
	ck_assert(!graph.owner[2].stuck);
	ck_assert(graph.owner[0].victim);
	ck_assert_str_eq(told(0), "s@hb<-x@ha<-s@hb");
}

TEST(the_permits_of_an_owner_are_not_free_while_it_waits_for_more)
{
	begins();
	comes(0, 10);
	holds_permits("s", 1);
	wants_permit("s", 2);
	comes(1, 20);
	holds_permits("s", 1);
	ck_assert(!some_are_stuck());
	wants_permit("s", 2);
	ck_assert(some_are_stuck());
	ck_assert(graph.owner[1].victim);
}

TEST(an_owner_that_waits_for_itself_alone_is_in_no_cycle)
{
	begins();
	comes(0, 10);
	holds_permits("s", 2);
	wants_permit("s", 2);
	ck_assert(some_are_stuck());
	ck_assert_str_eq(told(0), "");
	ck_assert(!graph.owner[0].victim);
}

TEST(a_lock_and_a_permit_of_one_name_are_not_in_the_way_of_each_other)
{
	begins();
	comes(0, 10);
	holds("x");
	wants_permit("y", 1);
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
	ck_assert(!some_are_stuck());
}

TEST(a_long_cycle_is_told_with_dots)
{
	static char text[40][300];
	const struct graph_want *first;
	size_t n;

	begins();
	for (unsigned i = 0; i < 40; i++)
		snprintf(text[i], sizeof(text[i]), "%0290u", i);
	for (unsigned i = 0; i < 40; i++) {
		graph_add_owner(&graph, &(struct graph_owner){.who = span_of(text[i]), .host = SPAN("h"), .place = i});
		holds(text[i]);
		wants(text[(i + 1) % 40], 0, false);
	}
	ck_assert(some_are_stuck());
	ck_assert(graph.owner[39].victim);
	n = cycle_tell(&graph, 39, shows_all, NULL, cycle, sizeof(cycle), &first);
	ck_assert_uint_le(n, sizeof(cycle));
	ck_assert(span_equal(first->name, span_of(text[0])));
	ck_assert(n > 1000 && memmem(cycle, n, "@h<-...<-", 9) != NULL);
	ck_assert_mem_eq(cycle + n - 292, cycle, 292);
}

/* --- many owners ---------------------------------------------------------------------------------------------------- */

#define MANY 20000

static char many[MANY][8];

/* Each has one name, and wants the next. */
static void many_come(void)
{
	begins();
	for (unsigned i = 0; i < MANY; i++)
		snprintf(many[i], sizeof(many[i]), "%u", i);
	for (unsigned i = 0; i < MANY; i++) {
		graph_add_owner(&graph, &(struct graph_owner){.who = span_of(many[i]), .place = i % 2 ? i : -(int64_t)i});
		holds(many[i]);
		if (i + 1 < MANY)
			wants(many[i + 1], 0, false);
	}
}

static double seconds_since(clock_t from)
{
	return (double)(clock() - from) / CLOCKS_PER_SEC;
}

TEST(a_long_chain_is_reduced_at_once)
{
	clock_t from;

	many_come();
	from = clock();
	ck_assert(!graph_reduce(&graph));
	ck_assert_double_lt(seconds_since(from), 1);
}

TEST(a_large_ring_has_one_victim_that_is_found_at_once)
{
	unsigned victims = 0;
	clock_t from;

	many_come();
	wants(many[0], 0, false);
	from = clock();
	ck_assert(some_are_stuck());
	for (unsigned i = 0; i < MANY; i++)
		victims += graph.owner[i].victim;
	ck_assert_uint_eq(victims, 1);
	ck_assert(graph.owner[MANY - 1].victim);
	ck_assert_ptr_nonnull(strstr(told(MANY - 1), "0<-1<-2<-"));
	ck_assert_double_lt(seconds_since(from), 1);
}

/* Half of them have x and want y, the others have y and want x. */
TEST(many_owners_that_wait_for_many_are_judged_at_once)
{
	unsigned victims = 0;
	clock_t from;

	begins();
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(many[i], sizeof(many[i]), "%u", i);
		graph_add_owner(&graph, &(struct graph_owner){.who = span_of(many[i]), .place = i});
		holds(i % 2 ? "x" : "y");
		wants(i % 2 ? "y" : "x", 0, false);
	}
	from = clock();
	ck_assert(some_are_stuck());
	for (unsigned i = 0; i < MANY; i++)
		victims += graph.owner[i].victim;
	ck_assert_uint_eq(victims, 1);
	ck_assert_str_eq(told(MANY - 1), "y<-x<-y");
	ck_assert_double_lt(seconds_since(from), 1);
}
