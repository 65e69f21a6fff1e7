/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitgraph.h. */
#include "daemon/core/waitgraph.h"

#include "daemon/base/mem.h"

#include <stdlib.h>
#include <string.h>

void graph_init(struct waitgraph *g)
{
	*g = (struct waitgraph){0};
}

void graph_clear(struct waitgraph *g)
{
	g->owners = g->wants = g->holds = g->names = g->turns = g->stucks = 0;
}

void graph_release(struct waitgraph *g)
{
	mem_free(g->owner);
	mem_free(g->want);
	mem_free(g->hold);
	mem_free(g->name);
	mem_free(g->turn);
	mem_free(g->stuck);
	graph_init(g);
}

static void *graph_room(void *items, unsigned count, unsigned *cap, size_t size)
{
	if (count < *cap)
		return items;
	while (*cap <= count)
		*cap = *cap ? 2 * *cap : 32;
	return mem_grow(items, *cap, size);
}

void graph_add_owner(struct waitgraph *g, const struct graph_owner *o)
{
	g->owner = graph_room(g->owner, g->owners, &g->owner_cap, sizeof(*g->owner));
	g->owner[g->owners] = *o;
	g->owner[g->owners].want = g->wants;
	g->owner[g->owners++].wants = 0;
}

void graph_add_want(struct waitgraph *g, const struct graph_want *w)
{
	g->want = graph_room(g->want, g->wants, &g->want_cap, sizeof(*g->want));
	g->want[g->wants] = *w;
	g->want[g->wants].owner = g->owners - 1;
	g->owner[g->owners - 1].wants++;
	g->wants++;
}

void graph_add_hold(struct waitgraph *g, struct span name, unsigned count)
{
	g->hold = graph_room(g->hold, g->holds, &g->hold_cap, sizeof(*g->hold));
	g->hold[g->holds++] = (struct graph_hold){.name = name, .owner = g->owners - 1, .count = count};
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

/* --- names ------------------------------------------------------------------------------------------------------------ */

/* A lock and a semaphore may have the same name. */
static int name_order(const struct graph_hold *h, struct span name, bool permits)
{
	int order = span_order(h->name, name);

	return order ? order : (h->count > 0) - permits;
}

static int hold_order(const void *a, const void *b)
{
	const struct graph_hold *ha = a, *hb = b;
	int order = name_order(ha, hb->name, hb->count > 0);

	return order ? order : (ha->owner > hb->owner) - (ha->owner < hb->owner);
}

/* Holds of one name stand together, and each owner knows its own. */
static void graph_find_names(struct waitgraph *g)
{
	if (g->holds > 0)
		qsort(g->hold, g->holds, sizeof(*g->hold), hold_order);
	for (unsigned i = 0; i < g->owners; i++)
		g->owner[i].hold = NOBODY;
	g->names = 0;
	g->name = graph_room(g->name, g->holds, &g->name_cap, sizeof(*g->name));
	for (unsigned i = 0; i < g->holds; i++) {
		struct graph_hold *h = &g->hold[i];

		if (i == 0 || name_order(h, h[-1].name, h[-1].count > 0) != 0)
			g->name[g->names++] = (struct graph_name){.hold = i};
		h->of = g->names - 1;
		g->name[h->of].holds++;
		g->name[h->of].taken += h->count ? h->count : 1;
		h->next = g->owner[h->owner].hold;
		g->owner[h->owner].hold = i;
	}
}

static unsigned graph_find_name(const struct waitgraph *g, const struct graph_want *w)
{
	unsigned from = 0, to = g->names;

	while (from < to) {
		unsigned at = from + (to - from) / 2;
		int order = name_order(&g->hold[g->name[at].hold], w->name, w->need > 0);

		if (order == 0)
			return at;
		if (order < 0)
			from = at + 1;
		else
			to = at;
	}
	return NOBODY;
}

/* The first hold of a name that is not of an owner before this one. */
static unsigned name_find_owner(const struct waitgraph *g, const struct graph_name *n, unsigned owner)
{
	unsigned from = n->hold, to = n->hold + n->holds;

	while (from < to) {
		unsigned at = from + (to - from) / 2;

		if (g->hold[at].owner < owner)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

/*
 * An owner is not in its own way at a lock. The modes do not count: a reader waits for readers only while a writer stands before it, and that one waits for
 * them. At a semaphore its own permits are not free either, as long as it waits.
 */
static uint64_t want_room(const struct waitgraph *g, const struct graph_want *w)
{
	const struct graph_name *n = &g->name[w->of];
	uint64_t own = 0;

	if (w->need > 0)
		return w->limit > w->need ? w->limit - w->need : 0;
	for (unsigned i = name_find_owner(g, n, w->owner); i < n->hold + n->holds && g->hold[i].owner == w->owner; i++)
		own++;
	return own;
}

static int turn_order(const void *a, const void *b)
{
	const struct graph_turn *ta = a, *tb = b;

	if (ta->of != tb->of)
		return ta->of > tb->of ? 1 : -1;
	return (ta->room < tb->room) - (ta->room > tb->room);
}

static void graph_find_turns(struct waitgraph *g)
{
	g->turns = 0;
	g->turn = graph_room(g->turn, g->wants, &g->turn_cap, sizeof(*g->turn));
	for (unsigned i = 0; i < g->wants; i++) {
		struct graph_want *w = &g->want[i];

		w->of = graph_find_name(g, w);
		if (w->of != NOBODY)
			g->turn[g->turns++] = (struct graph_turn){.of = w->of, .want = i, .room = want_room(g, w)};
	}
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
	for (unsigned i = 0; i < g->wants; i++)
		if (g->want[i].of == NOBODY)
			want_granted(g, &g->want[i]);
	for (unsigned i = 0; i < g->names; i++)
		name_frees(g, &g->name[i]);
}

bool graph_reduce(struct waitgraph *g)
{
	graph_find_names(g);
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
