/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/deadlock/wait_graph.c on random graphs. A second opinion looks at all sets of owners: a set whose members are all in each other's way
 * never goes on.
 */
#include "daemon/core/deadlock/wait_graph.h"

#include "daemon/base/netstring.h"
#include "daemon/base/rng.h"
#include "tests/fixture/seed.h"

#include <check.h>

#define OWNERS 6
#define NAMES  5
#define WANTS  6

static struct buf text, told;

static const char *const daemon_id[OWNERS] = {"a.ha", "b.hb", "c.hc", "d.hd", "e.he", "f.hf"}; /* each has one owner */
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

	*w = (struct told_want){.name = rng_below(rng, any ? NAMES - 2 : NAMES), .request = request, .any = any};
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

static void row_is_told(struct buf *rows, char kind, unsigned i, unsigned count, struct buf *names)
{
	row_put(rows, &(struct wait_row){kind, 1, 2, story.place[i], count, {buf_begin(names), buf_length(names)}});
	buf_clear(names);
}

static void wants_are_told(struct buf *rows, unsigned i)
{
	struct buf names = {0};

	for (unsigned k = 0; k < story.wants[i]; k++) {
		const struct told_want *w = &story.want[i][k];

		netstring_put(&names, span_of(name[w->name]));
		if (limit_of(w->name) > 0)
			row_is_told(rows, 'p', i, limit_of(w->name), &names);
		else if (!w->any || k + 1 == story.wants[i] || w[1].request != w->request)
			row_is_told(rows, 'w', i, 1, &names);
	}
	buf_release(&names);
}

static void story_is_told(void)
{
	struct buf rows = {0}, names = {0};

	buf_clear(&text);
	for (unsigned i = 0; i < story.owners; i++) {
		for (unsigned n = 0; n < NAMES; n++) {
			netstring_put(&names, span_of(name[n]));
			if (story.holds[i][n])
				row_is_told(&rows, limit_of(n) > 0 ? 's' : 'h', i, story.holds[i][n], &names);
			buf_clear(&names);
		}
		wants_are_told(&rows, i);
		netstring_put(&text, span_of(daemon_id[i]));
		netstring_put(&text, (struct span){buf_begin(&rows), buf_length(&rows)});
		buf_clear(&rows);
	}
	buf_release(&rows);
	buf_release(&names);
}

static bool is_blocked(unsigned i, const struct told_want *w, unsigned set)
{
	unsigned permits = 0;
	bool others = false;

	for (unsigned j = 0; j < story.owners; j++) {
		permits += set >> j & 1 ? story.holds[j][w->name] : 0;
		others |= i != j && set >> j & 1 && story.holds[j][w->name];
	}
	return others && permits >= limit_of(w->name);
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

static bool came_later(unsigned i, unsigned j)
{
	return story.place[i] != story.place[j] ? story.place[i] > story.place[j] : i > j;
}

static bool shows_all(const void *about, struct span word)
{
	(void)about;
	(void)word;
	return true;
}

/* Each step of the cycle is an edge, it comes back to the victim, and nobody on it came later. */
static void cycle_is_right(const struct victim *v, unsigned victim, unsigned stuck)
{
	unsigned at = victim, from = 0;
	const char *cycle;

	buf_clear(&told);
	wait_graph_write(v, shows_all, NULL, &told, 2000);
	buf_append(&told, "", 1);
	cycle = buf_begin(&told);
	ck_assert(v->name.n == 1 && *v->name.p == cycle[0]);
	for (;;) {
		char what = cycle[from], there = cycle[from + 3];
		bool edge = false;

		ck_assert_msg(cycle[from + 1] == '@' && cycle[from + 2] == 'h', "%s", cycle);
		for (unsigned k = 0; k < story.wants[at]; k++)
			edge |= name[story.want[at][k].name][0] == what && is_in_the_way(at, &story.want[at][k], (unsigned)(there - 'a'), stuck);
		ck_assert_msg(edge, "%s: no step to %s", cycle, cycle + from);
		at = (unsigned)(there - 'a');
		ck_assert_msg(!came_later(at, victim), "%s: '%c' came later", cycle, there);
		from += 4;
		if (at == victim)
			break;
		ck_assert_msg(cycle[from] == '<', "%s", cycle);
		from += 2;
	}
	ck_assert_msg(cycle[from] == '<' && cycle[from + 2] == cycle[0] && cycle[from + 5] == cycle[3] && cycle[from + 6] == '\0', "%s", cycle);
}

/* How many are refused, by all daemons. */
static unsigned story_is_judged(unsigned stuck)
{
	const uint64_t key[2] = {1, 2};
	unsigned refused = 0, daemons;

	for (unsigned i = 0; i < story.owners; i++) {
		struct wait_graph *g = wait_graph_new((struct span){buf_begin(&text), buf_length(&text)}, key, &daemons);
		struct victim victim[VICTIMS_MOST];

		ck_assert_uint_eq(daemons, story.owners);
		if (wait_graph_find(g, span_of(daemon_id[i]), victim) > 0) {
			cycle_is_right(&victim[0], i, stuck);
			refused++;
		}
		wait_graph_free(g);
	}
	return refused;
}

TEST(random_graphs_are_judged_as_a_second_opinion_says)
{
	uint64_t seed[2] = {seed_pick("waitgraph"), 1};
	unsigned stories = 0, several = 0;
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned i = 0; i < 3000; i++) {
		unsigned stuck, refused;

		story_begins(&rng);
		story_is_told();
		stuck = stuck_set();
		refused = story_is_judged(stuck);
		ck_assert_msg((refused > 0) == (stuck != 0), "graph %u: %u refused", i, refused);
		stories += stuck != 0;
		several += refused > 1;
	}
	ck_assert_uint_gt(stories, 120);
	ck_assert_uint_gt(several, 0);
	buf_release(&text);
	buf_release(&told);
}
