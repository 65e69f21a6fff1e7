/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/waitgraph.c: who is stuck, who is refused, and the cycle that is told. A second opinion looks at all sets of owners: a set whose members are all
 * in each other's way never goes on.
 */
#include "daemon/core/waitgraph.h"

#include "daemon/base/rng.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <stdio.h>

#define OWNERS 6
#define NAMES  5
#define WANTS  6

static struct waitgraph graph;
static char cycle[2000];

static const char *const who[OWNERS] = {"a", "b", "c", "d", "e", "f"};
static const char *const host[OWNERS] = {"ha", "hb", "hc", "hd", "he", "hf"};
static const char *const name[NAMES] = {"v", "w", "x", "y", "z"};

static void begins(void)
{
	graph_release(&graph);
}

static void comes(unsigned i, int64_t place)
{
	graph_add_owner(&graph, &(struct graph_owner){.who = span_of(who[i]), .host = span_of(host[i]), .place = place, .own = true});
}

static void wants(const char *what, unsigned request, bool any)
{
	graph_add_want(&graph, &(struct graph_want){.name = span_of(what), .request = request, .any = any});
}

static void holds(const char *what)
{
	graph_add_hold(&graph, span_of(what), 0);
}

/* Of a semaphore of that limit. */
static void wants_permits(const char *what, unsigned need, unsigned limit)
{
	graph_add_want(&graph, &(struct graph_want){.name = span_of(what), .need = need, .limit = limit});
}

static void holds_permits(const char *what, unsigned count)
{
	graph_add_hold(&graph, span_of(what), count);
}

static const char *told(unsigned i)
{
	const struct graph_want *first;

	cycle[graph_cycle(&graph, i, cycle, sizeof(cycle), &first)] = '\0';
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

START_TEST(two_owners_that_wait_for_each_other_are_stuck_and_the_later_one_is_refused)
{
	two_wait_for_each_other();
	ck_assert(graph_reduce(&graph));
	ck_assert(!graph_is_victim(&graph, 0));
	ck_assert(graph_is_victim(&graph, 1));
	ck_assert_str_eq(told(1), "x@ha<-y@hb<-x@ha");
}
END_TEST

START_TEST(an_owner_that_waits_for_a_cycle_is_stuck_but_not_refused)
{
	two_wait_for_each_other();
	comes(2, 30);
	holds("z");
	wants("x", 0, false);
	ck_assert(graph_reduce(&graph));
	ck_assert(graph.owner[2].stuck);
	ck_assert(!graph_is_victim(&graph, 2));
	ck_assert(graph_is_victim(&graph, 1));
}
END_TEST

START_TEST(a_request_for_any_name_goes_on_when_one_of_them_becomes_free)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("y", 0, true);
	wants("z", 0, true);
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
	ck_assert(!graph_reduce(&graph));
	comes(2, 30);
	holds("z");
	wants("x", 0, false);
	ck_assert(graph_reduce(&graph));
	ck_assert(graph_is_victim(&graph, 2));
}
END_TEST

START_TEST(a_request_for_all_names_waits_for_each_of_them)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("y", 0, false);
	wants("z", 0, false); /* nobody has it */
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
	ck_assert(graph_reduce(&graph));
	ck_assert_str_eq(told(1), "x@ha<-y@hb<-x@ha");
}
END_TEST

START_TEST(an_owner_is_not_in_its_own_way)
{
	begins();
	comes(0, 10);
	holds("x");
	wants("x", 0, false);
	ck_assert(!graph_reduce(&graph));
}
END_TEST

/* Owner 0 has x and wants a permit of three; 1 has one of them and 2 has two. */
static void two_have_permits(unsigned need)
{
	begins();
	comes(0, 30);
	holds("x");
	wants_permits("s", need, 3);
	comes(1, 10);
	holds_permits("s", 1);
	wants("x", 0, false);
	comes(2, 20);
	holds_permits("s", 2);
}

START_TEST(a_request_for_permits_goes_on_when_enough_of_them_become_free)
{
	two_have_permits(2);
	ck_assert(!graph_reduce(&graph)); /* 2 waits for nobody */
	two_have_permits(3);
	ck_assert(graph_reduce(&graph));
	ck_assert(!graph.owner[2].stuck);
	ck_assert(graph_is_victim(&graph, 0));
	ck_assert_str_eq(told(0), "s@hb<-x@ha<-s@hb");
}
END_TEST

START_TEST(the_permits_of_an_owner_are_not_free_while_it_waits_for_more)
{
	begins();
	comes(0, 10);
	holds_permits("s", 1);
	wants_permits("s", 1, 2);
	comes(1, 20);
	holds_permits("s", 1);
	ck_assert(!graph_reduce(&graph));
	wants_permits("s", 1, 2);
	ck_assert(graph_reduce(&graph));
	ck_assert(graph_is_victim(&graph, 1));
}
END_TEST

START_TEST(an_owner_that_waits_for_itself_alone_is_in_no_cycle)
{
	begins();
	comes(0, 10);
	holds_permits("s", 2);
	wants_permits("s", 1, 2);
	ck_assert(graph_reduce(&graph));
	ck_assert(!graph_is_in_cycle(&graph, 0));
	ck_assert(!graph_is_victim(&graph, 0));
}
END_TEST

START_TEST(a_lock_and_a_permit_of_one_name_are_not_in_the_way_of_each_other)
{
	begins();
	comes(0, 10);
	holds("x");
	wants_permits("y", 1, 1);
	comes(1, 20);
	holds("y");
	wants("x", 0, false);
	ck_assert(!graph_reduce(&graph));
}
END_TEST

START_TEST(a_long_cycle_is_told_with_dots)
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
	ck_assert(graph_reduce(&graph));
	ck_assert(graph_is_victim(&graph, 39));
	n = graph_cycle(&graph, 39, cycle, sizeof(cycle), &first);
	ck_assert_uint_le(n, sizeof(cycle));
	ck_assert(span_equal(first->name, span_of(text[0])));
	ck_assert(n > 1000 && memmem(cycle, n, "@h<-...<-", 9) != NULL);
	ck_assert_mem_eq(cycle + n - 292, cycle, 292);
}
END_TEST

/* --- a second opinion ------------------------------------------------------------------------------------------------- */

struct story {
	unsigned owners;
	struct told_want {
		unsigned name, request, need;
		bool any;
	} want[OWNERS][WANTS];
	unsigned wants[OWNERS];
	unsigned holds[OWNERS][NAMES]; /* how many permits, or the lock */
	int64_t place[OWNERS];
};

static struct story story;

/* The last two names are semaphores. */
static unsigned limit_of(unsigned n)
{
	return n < NAMES - 2 ? 0 : n - 1;
}

static void story_gives(unsigned i, unsigned n)
{
	story.holds[i][n] = limit_of(n) > 0 ? story.holds[i][n] + 1 : 1;
}

static void story_wants(struct rng *rng, unsigned i, unsigned request, bool any)
{
	struct told_want *w = &story.want[i][story.wants[i]++];

	*w = (struct told_want){.name = rng_below(rng, NAMES), .request = request, .any = any};
	w->need = limit_of(w->name) > 0 ? 1 + rng_below(rng, limit_of(w->name)) : 0;
}

static void story_begins(struct rng *rng)
{
	story = (struct story){.owners = 2 + rng_below(rng, OWNERS - 1)};
	for (unsigned n = 0; n < NAMES; n++)
		for (unsigned k = limit_of(n) > 0 ? limit_of(n) : rng_below(rng, 6) == 0 ? 2 : 1; k > 0; k--) /* readers hold it together */
			story_gives(rng_below(rng, story.owners), n);
	for (unsigned i = 0; i < story.owners; i++) {
		story.place[i] = rng_below(rng, 8);
		for (unsigned request = 0; request < 2 && story.wants[i] < WANTS - 3; request++) {
			bool any = rng_below(rng, 3) == 0, all = !any && rng_below(rng, 3) == 0;

			if (rng_below(rng, 3) == 0)
				continue;
			for (unsigned k = any || all ? 2 + rng_below(rng, 2) : 1; k > 0; k--)
				story_wants(rng, i, request, any);
		}
	}
}

static void story_is_told(void)
{
	begins();
	for (unsigned i = 0; i < story.owners; i++) {
		comes(i, story.place[i]);
		for (unsigned n = 0; n < NAMES; n++)
			if (story.holds[i][n])
				graph_add_hold(&graph, span_of(name[n]), limit_of(n) > 0 ? story.holds[i][n] : 0);
		for (unsigned k = 0; k < story.wants[i]; k++) {
			const struct told_want *w = &story.want[i][k];

			graph_add_want(&graph, &(struct graph_want){
						       .name = span_of(name[w->name]), .request = w->request, .any = w->any, .need = w->need,
						       .limit = limit_of(w->name)});
		}
	}
}

static bool is_blocked(unsigned i, const struct told_want *w, unsigned set)
{
	unsigned permits = 0;
	bool others = false;

	for (unsigned j = 0; j < story.owners; j++) {
		permits += set >> j & 1 ? story.holds[j][w->name] : 0;
		others |= i != j && set >> j & 1 && story.holds[j][w->name];
	}
	return w->need > 0 ? permits + w->need > limit_of(w->name) : others;
}

/* Is j in the way of this want of i, if these are stuck? */
static bool is_in_the_way(unsigned i, const struct told_want *w, unsigned j, unsigned stuck)
{
	return i != j && stuck >> j & 1 && story.holds[j][w->name] && is_blocked(i, w, stuck);
}

/* Some request of i needs what members of the set do not free. */
static bool is_stuck_in(unsigned i, unsigned set)
{
	for (unsigned request = 0; request < 2; request++) {
		unsigned names = 0, blocked = 0;
		bool any = false;

		for (unsigned k = 0; k < story.wants[i]; k++) {
			if (story.want[i][k].request != request)
				continue;
			any = story.want[i][k].any;
			names++;
			blocked += is_blocked(i, &story.want[i][k], set);
		}
		if (names > 0 && (any ? blocked == names : blocked > 0))
			return true;
	}
	return false;
}

/* The union of all sets in which each member is stuck. */
static unsigned stuck_set(void)
{
	unsigned all = 0;

	for (unsigned set = 1; set < 1U << story.owners; set++) {
		bool closed = true;

		for (unsigned i = 0; closed && i < story.owners; i++)
			closed = !(set >> i & 1) || is_stuck_in(i, set);
		all |= closed ? set : 0;
	}
	return all;
}

static void find_reach(unsigned stuck, bool reach[OWNERS][OWNERS])
{
	for (unsigned i = 0; i < story.owners; i++)
		for (unsigned j = 0; j < story.owners; j++) {
			reach[i][j] = false;
			for (unsigned k = 0; k < story.wants[i]; k++)
				reach[i][j] |= stuck >> i & 1 && is_in_the_way(i, &story.want[i][k], j, stuck);
		}
	for (unsigned k = 0; k < story.owners; k++)
		for (unsigned i = 0; i < story.owners; i++)
			for (unsigned j = 0; j < story.owners; j++)
				reach[i][j] |= reach[i][k] && reach[k][j];
}

static bool is_victim(unsigned i, bool reach[OWNERS][OWNERS])
{
	if (!reach[i][i])
		return false;
	for (unsigned j = 0; j < story.owners; j++)
		if (j != i && reach[i][j] && reach[j][i] && (story.place[j] > story.place[i] || (story.place[j] == story.place[i] && j > i)))
			return false;
	return true;
}

/* Each step of the cycle is an edge, and it comes back to the victim. */
static void cycle_is_right(unsigned victim, unsigned stuck)
{
	const struct graph_want *first;
	size_t n = graph_cycle(&graph, victim, cycle, sizeof(cycle) - 1, &first);
	unsigned at = victim, from = 0;

	cycle[n] = '\0';
	ck_assert(first->owner == victim);
	for (;;) {
		char what = cycle[from], there = cycle[from + 3];
		bool edge = false;

		ck_assert_msg(cycle[from + 1] == '@' && cycle[from + 2] == 'h', "%s", cycle);
		for (unsigned k = 0; k < story.wants[at]; k++)
			edge |= name[story.want[at][k].name][0] == what && is_in_the_way(at, &story.want[at][k], (unsigned)(there - 'a'), stuck);
		ck_assert_msg(edge, "%s: no step to %s", cycle, cycle + from);
		at = (unsigned)(there - 'a');
		from += 4;
		if (at == victim)
			break;
		ck_assert_msg(cycle[from] == '<', "%s", cycle);
		from += 2;
	}
	ck_assert_msg(cycle[from] == '<' && cycle[from + 2] == cycle[0] && cycle[from + 5] == cycle[3] && cycle[from + 6] == '\0', "%s", cycle);
}

START_TEST(random_graphs_are_reduced_as_a_second_opinion_says)
{
	uint64_t seed[2] = {seed_pick("waitgraph"), 1};
	unsigned refused = 0, graphs_stuck = 0;
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned i = 0; i < 60000; i++) {
		bool reach[OWNERS][OWNERS];
		unsigned stuck;

		story_begins(&rng);
		story_is_told();
		stuck = stuck_set();
		ck_assert_msg(graph_reduce(&graph) == (stuck != 0), "graph %u", i);
		if (!stuck)
			continue;
		graphs_stuck++;
		find_reach(stuck, reach);
		for (unsigned o = 0; o < story.owners; o++) {
			ck_assert_msg(graph.owner[o].stuck == (stuck >> o & 1), "graph %u, owner %u", i, o);
			if (!(stuck >> o & 1))
				continue;
			ck_assert_msg(graph_is_victim(&graph, o) == is_victim(o, reach), "graph %u, owner %u", i, o);
			if (!is_victim(o, reach))
				continue;
			refused++;
			cycle_is_right(o, stuck);
		}
	}
	ck_assert_uint_gt(graphs_stuck, 2500);
	ck_assert_uint_gt(refused, 2500);
	graph_release(&graph);
}
END_TEST

Suite *waitgraph_suite(void)
{
	Suite *s = suite_create("waitgraph");
	TCase *t = tcase_create("waitgraph");

	tcase_add_test(t, two_owners_that_wait_for_each_other_are_stuck_and_the_later_one_is_refused);
	tcase_add_test(t, an_owner_that_waits_for_a_cycle_is_stuck_but_not_refused);
	tcase_add_test(t, a_request_for_any_name_goes_on_when_one_of_them_becomes_free);
	tcase_add_test(t, a_request_for_all_names_waits_for_each_of_them);
	tcase_add_test(t, an_owner_is_not_in_its_own_way);
	tcase_add_test(t, a_request_for_permits_goes_on_when_enough_of_them_become_free);
	tcase_add_test(t, the_permits_of_an_owner_are_not_free_while_it_waits_for_more);
	tcase_add_test(t, an_owner_that_waits_for_itself_alone_is_in_no_cycle);
	tcase_add_test(t, a_lock_and_a_permit_of_one_name_are_not_in_the_way_of_each_other);
	tcase_add_test(t, a_long_cycle_is_told_with_dots);
	tcase_add_test(t, random_graphs_are_reduced_as_a_second_opinion_says);
	suite_add_tcase(s, t);
	return s;
}
