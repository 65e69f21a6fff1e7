/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitgraph.h. */
#include "daemon/core/waitgraph.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"

#include <stdlib.h>
#include <string.h>

void graph_init(struct waitgraph *g, const uint64_t key[2])
{
	*g = (struct waitgraph){.key = {key[0], key[1]}};
}

void graph_release(struct waitgraph *g)
{
	mem_free(g->owner);
	mem_free(g->want);
	mem_free(g->hold);
	mem_free(g->name);
	mem_free(g->turn);
	mem_free(g->stuck);
	mem_free(g->bucket);
	graph_init(g, g->key);
}

static void *graph_room(void *items, unsigned count, unsigned *cap, size_t size)
{
	if (count < *cap)
		return items;
	while (*cap <= count)
		*cap = *cap ? 2 * *cap : 32;
	return mem_grow(items, *cap, size);
}

unsigned graph_add_owner(struct waitgraph *g, const struct graph_owner *o)
{
	g->owner = graph_room(g->owner, g->owners, &g->owner_cap, sizeof(*g->owner));
	g->owner[g->owners] = *o;
	g->owner[g->owners].want = g->owner[g->owners].last_want = g->owner[g->owners].hold = NOBODY;
	return g->owners++;
}

static unsigned *graph_bucket(const struct waitgraph *g, struct span name, bool permits)
{
	return &g->bucket[(siphash(g->key, name.p, name.n) + permits) % g->buckets];
}

static void names_rehash(struct waitgraph *g)
{
	g->buckets = g->buckets ? 4 * g->buckets : 64;
	g->bucket = mem_grow(g->bucket, g->buckets, sizeof(*g->bucket));
	memset(g->bucket, 0xff, g->buckets * sizeof(*g->bucket)); /* NOBODY */
	for (unsigned i = 0; i < g->names; i++) {
		unsigned *first = graph_bucket(g, g->name[i].name, g->name[i].permits);

		g->name[i].next = *first;
		*first = i;
	}
}

static unsigned graph_name(struct waitgraph *g, struct span name, bool permits)
{
	unsigned *first;

	if (g->names >= g->buckets)
		names_rehash(g);
	first = graph_bucket(g, name, permits);
	for (unsigned i = *first; i != NOBODY; i = g->name[i].next)
		if (g->name[i].permits == permits && span_equal(g->name[i].name, name))
			return i;
	g->name = graph_room(g->name, g->names, &g->name_cap, sizeof(*g->name));
	g->name[g->names] = (struct graph_name){.name = name, .permits = permits, .next = *first, .hold = NOBODY, .own_of = NOBODY};
	return *first = g->names++;
}

void graph_add_want(struct waitgraph *g, unsigned owner, const struct graph_want *w)
{
	struct graph_owner *o = &g->owner[owner];

	g->want = graph_room(g->want, g->wants, &g->want_cap, sizeof(*g->want));
	g->want[g->wants] = *w;
	g->want[g->wants].owner = owner;
	g->want[g->wants].next = NOBODY;
	g->want[g->wants].of = graph_name(g, w->name, w->limit > 0);
	*(o->want == NOBODY ? &o->want : &g->want[o->last_want].next) = g->wants;
	o->last_want = g->wants++;
}

void graph_add_hold(struct waitgraph *g, unsigned owner, struct span name, unsigned count)
{
	unsigned of = graph_name(g, name, count > 0);

	g->hold = graph_room(g->hold, g->holds, &g->hold_cap, sizeof(*g->hold));
	g->hold[g->holds] = (struct graph_hold){.owner = owner, .count = count, .of = of, .next = g->owner[owner].hold, .next_of = g->name[of].hold};
	g->owner[owner].hold = g->name[of].hold = g->holds++;
}

static int span_order(struct span a, struct span b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

bool graph_came_later(const struct graph_owner *a, const struct graph_owner *b)
{
	return a->place != b->place ? a->place > b->place : span_order(a->who, b->who) > 0;
}

/* --- turns ------------------------------------------------------------------------------------------------------------ */

/*
 * An owner is not in its own way at a lock. The modes do not count: a reader waits for readers only while a writer stands before it, and that one waits for
 * them. At a semaphore its own permits are not free either, as long as it waits.
 */
static uint64_t want_room(const struct waitgraph *g, const struct graph_want *w)
{
	const struct graph_name *n = &g->name[w->of];

	if (w->limit > 0)
		return w->limit - 1;
	return n->own_of == w->owner ? n->own : 0;
}

static int turn_order(const void *a, const void *b)
{
	const struct graph_turn *ta = a, *tb = b;

	if (ta->of != tb->of)
		return ta->of > tb->of ? 1 : -1;
	return (ta->room < tb->room) - (ta->room > tb->room);
}

static void owner_find_turns(struct waitgraph *g, unsigned owner)
{
	for (unsigned i = g->owner[owner].hold; i != NOBODY; i = g->hold[i].next) {
		struct graph_name *n = &g->name[g->hold[i].of];

		n->taken += g->hold[i].count ? g->hold[i].count : 1;
		n->own = n->own_of == owner ? n->own + 1 : 1;
		n->own_of = owner;
	}
	for (unsigned i = g->owner[owner].want; i != NOBODY; i = g->want[i].next)
		g->turn[g->turns++] = (struct graph_turn){.of = g->want[i].of, .want = i, .room = want_room(g, &g->want[i])};
}

static void graph_find_turns(struct waitgraph *g)
{
	g->turns = 0;
	g->turn = graph_room(g->turn, g->wants, &g->turn_cap, sizeof(*g->turn));
	for (unsigned i = 0; i < g->names; i++)
		g->name[i].taken = g->name[i].turns = 0, g->name[i].own_of = NOBODY;
	for (unsigned i = 0; i < g->owners; i++)
		owner_find_turns(g, i);
	if (g->turns > 0)
		qsort(g->turn, g->turns, sizeof(*g->turn), turn_order);
	for (unsigned i = g->turns; i-- > 0;) {
		g->name[g->turn[i].of].turn = i;
		g->name[g->turn[i].of].turns++;
	}
}

/* --- the reduction ---------------------------------------------------------------------------------------------------- */

/* Until something is found to be free, each owner waits for all that it wants. */
static void graph_block(struct waitgraph *g)
{
	struct graph_want *first = NULL;

	for (unsigned i = 0; i < g->owners; i++)
		g->owner[i].lacks = 0;
	for (unsigned i = 0; i < g->wants; i++) {
		struct graph_want *w = &g->want[i];

		w->blocked = true;
		w->left = 0;
		if (!first || first->owner != w->owner || first->request != w->request) {
			first = w;
			g->owner[w->owner].lacks++;
		}
		w->first = (unsigned)(first - g->want);
		first->left = first->any ? 1 : first->left + 1;
	}
}

/* What the owners in this list have becomes free next. */
static void graph_free_next(struct waitgraph *g, unsigned owner)
{
	g->owner[owner].stuck = false;
	g->stuck[g->stucks++] = owner;
}

static void want_granted(struct waitgraph *g, struct graph_want *w)
{
	struct graph_want *first = &g->want[w->first];

	w->blocked = false;
	if (first->left == 0 || --first->left > 0)
		return;
	if (--g->owner[w->owner].lacks == 0)
		graph_free_next(g, w->owner);
}

static void name_frees(struct waitgraph *g, struct graph_name *n)
{
	for (; n->turns > 0 && g->turn[n->turn].room >= n->taken; n->turn++, n->turns--)
		want_granted(g, &g->want[g->turn[n->turn].want]);
}

static void owner_frees(struct waitgraph *g, const struct graph_owner *o)
{
	for (unsigned i = o->hold; i != NOBODY; i = g->hold[i].next) {
		struct graph_name *n = &g->name[g->hold[i].of];

		n->taken -= g->hold[i].count ? g->hold[i].count : 1;
		name_frees(g, n);
	}
}

/* The list begins with those who go on whatever the others do. */
static void graph_free_first(struct waitgraph *g)
{
	g->stucks = 0;
	g->stuck = graph_room(g->stuck, g->owners, &g->stuck_cap, sizeof(*g->stuck));
	for (unsigned i = 0; i < g->owners; i++) {
		g->owner[i].stuck = true;
		if (g->owner[i].lacks == 0)
			graph_free_next(g, i);
	}
	for (unsigned i = 0; i < g->names; i++)
		name_frees(g, &g->name[i]);
}

bool graph_reduce(struct waitgraph *g)
{
	graph_find_turns(g);
	graph_block(g);
	graph_free_first(g);
	for (unsigned i = 0; i < g->stucks; i++)
		owner_frees(g, &g->owner[g->stuck[i]]);
	g->stucks = 0;
	for (unsigned i = 0; i < g->owners; i++)
		if (g->owner[i].stuck)
			g->stuck[g->stucks++] = i;
	return g->stucks > 0;
}
