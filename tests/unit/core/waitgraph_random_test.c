/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/waitgraph.c and waitcycle.c on random graphs. A second opinion looks at all sets of owners: a set whose members are all in each other's way
 * never goes on.
 */
#include "daemon/core/waitcycle.h"

#include "daemon/base/rng.h"
#include "tests/fixture/seed.h"

#include <check.h>

#define OWNERS 6
#define NAMES  5
#define WANTS  6

static struct waitgraph graph;
static char cycle[2000];

static const char *const who[OWNERS] = {"a", "b", "c", "d", "e", "f"};
static const char *const host[OWNERS] = {"ha", "hb", "hc", "hd", "he", "hf"};
static const char *const name[NAMES] = {"v", "w", "x", "y", "z"};

struct story {
	unsigned owners;
	struct told_want {
		unsigned name, request;
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
	graph_release(&graph);
	graph_init(&graph, (const uint64_t[]){1, 2});
	for (unsigned i = 0; i < story.owners; i++) {
		graph_add_owner(&graph, &(struct graph_owner){.who = span_of(who[i]), .host = span_of(host[i]), .place = story.place[i]});
		for (unsigned n = 0; n < NAMES; n++)
			if (story.holds[i][n])
				graph_add_hold(&graph, i, span_of(name[n]), limit_of(n) > 0 ? story.holds[i][n] : 0);
		for (unsigned k = 0; k < story.wants[i]; k++) {
			const struct told_want *w = &story.want[i][k];

			graph_add_want(&graph, i, &(struct graph_want){
						       .name = span_of(name[w->name]), .request = w->request, .any = w->any,
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
	return limit_of(w->name) > 0 ? permits >= limit_of(w->name) : others;
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

static bool shows_all(const void *about, struct span word)
{
	(void)about;
	(void)word;
	return true;
}

/* Each step of the cycle is an edge, and it comes back to the victim. */
static void cycle_is_right(unsigned victim, unsigned stuck)
{
	const struct graph_want *first;
	size_t n = cycle_tell(&graph, victim, shows_all, NULL, cycle, sizeof(cycle) - 1, &first);
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

TEST(random_graphs_are_reduced_as_a_second_opinion_says)
{
	uint64_t seed[2] = {seed_pick("waitgraph"), 1};
	unsigned refused = 0, graphs_stuck = 0;
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned i = 0; i < 30000; i++) {
		bool reach[OWNERS][OWNERS];
		unsigned stuck;

		story_begins(&rng);
		story_is_told();
		stuck = stuck_set();
		ck_assert_msg(graph_reduce(&graph) == (stuck != 0), "graph %u", i);
		if (!stuck)
			continue;
		graphs_stuck++;
		cycle_find_victims(&graph);
		find_reach(stuck, reach);
		for (unsigned o = 0; o < story.owners; o++) {
			ck_assert_msg(graph.owner[o].stuck == (stuck >> o & 1), "graph %u, owner %u", i, o);
			if (!(stuck >> o & 1))
				continue;
			ck_assert_msg(graph.owner[o].victim == is_victim(o, reach), "graph %u, owner %u", i, o);
			if (!is_victim(o, reach))
				continue;
			refused++;
			cycle_is_right(o, stuck);
		}
	}
	ck_assert_uint_gt(graphs_stuck, 1200);
	ck_assert_uint_gt(refused, 1200);
	graph_release(&graph);
}
