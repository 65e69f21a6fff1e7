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
	mem_free(g->stuck);
	mem_free(g->edge);
	g->stuck = NULL;
	g->edge = NULL;
	g->owners = g->wants = g->holds = g->stucks = 0;
}

void graph_release(struct waitgraph *g)
{
	graph_clear(g);
	mem_free(g->owner);
	mem_free(g->want);
	mem_free(g->hold);
	graph_init(g);
}

static void *graph_room(void *items, unsigned count, unsigned *cap, size_t size)
{
	if (count < *cap)
		return items;
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
	g->want[g->wants].by = NOBODY;
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

static int hold_order(const void *a, const void *b)
{
	return span_order(((const struct graph_hold *)a)->name, ((const struct graph_hold *)b)->name);
}

/* The first hold whose name is not before this one, or not behind it. */
static unsigned graph_search(const struct waitgraph *g, struct span name, bool behind)
{
	unsigned from = 0, to = g->holds;

	while (from < to) {
		unsigned at = from + (to - from) / 2;
		int order = span_order(g->hold[at].name, name);

		if (order < 0 || (behind && order == 0))
			from = at + 1;
		else
			to = at;
	}
	return from;
}

/* Holds of one name stand together, and each owner knows its own. */
static void graph_sort(struct waitgraph *g)
{
	if (g->holds > 0)
		qsort(g->hold, g->holds, sizeof(*g->hold), hold_order);
	for (unsigned i = 0; i < g->owners; i++)
		g->owner[i].hold = NOBODY;
	for (unsigned i = 0; i < g->holds; i++) {
		struct graph_hold *h = &g->hold[i];

		h->first = i > 0 && span_equal(h->name, h[-1].name) ? h[-1].first : i;
		h->taken = 0;
		g->hold[h->first].taken += h->count;
		h->next = g->owner[h->owner].hold;
		g->owner[h->owner].hold = i;
	}
}

/* Each want knows where the holds of its name are. */
static void graph_index(struct waitgraph *g)
{
	graph_sort(g);
	for (unsigned i = 0; i < g->wants; i++) {
		g->want[i].from = graph_search(g, g->want[i].name, false);
		g->want[i].to = graph_search(g, g->want[i].name, true);
	}
}

/*
 * This holder is in the way of the want, unless it goes on. The modes do not count: a reader waits for readers only while a writer stands before it, and that
 * one waits for them.
 */
static bool is_in_the_way(const struct waitgraph *g, const struct graph_hold *h, const struct graph_want *w)
{
	return h->owner != w->owner && g->owner[h->owner].stuck && (h->count > 0) == (w->need > 0);
}

/* Those that the others free do not suffice. Its own are not free either, as long as it waits. */
static bool permits_are_taken(const struct waitgraph *g, const struct graph_want *w)
{
	return w->from < w->to && g->hold[w->from].taken + w->need > w->limit;
}

static bool want_is_blocked(struct waitgraph *g, struct graph_want *w)
{
	if (w->need > 0)
		return permits_are_taken(g, w);
	if (w->by != NOBODY && g->owner[w->by].stuck)
		return true;
	for (unsigned i = w->from; i < w->to; i++) {
		if (!is_in_the_way(g, &g->hold[i], w))
			continue;
		w->by = g->hold[i].owner;
		return true;
	}
	return false;
}

static void owner_frees(struct waitgraph *g, struct graph_owner *o)
{
	o->stuck = false;
	for (unsigned i = o->hold; i != NOBODY; i = g->hold[i].next)
		g->hold[g->hold[i].first].taken -= g->hold[i].count;
}

/* All requests of an owner can be granted, as far as the stuck owners are concerned. */
static bool owner_goes_on(struct waitgraph *g, const struct graph_owner *o)
{
	unsigned w = o->want, end = o->want + o->wants, first;

	while (w < end) {
		bool all = true, any = false;

		for (first = w; w < end && g->want[w].request == g->want[first].request; w++) {
			bool blocked = want_is_blocked(g, &g->want[w]);

			all &= !blocked;
			any |= !blocked;
		}
		if (!(g->want[first].any ? any : all))
			return false;
	}
	return true;
}

/* The owner waits for this holder: it is in the way, and of permits there are too few without its own. */
static bool want_waits_for(const struct waitgraph *g, const struct graph_want *w, const struct graph_hold *h)
{
	return is_in_the_way(g, h, w) && (w->need == 0 || permits_are_taken(g, w));
}

/* Bit j of row i: the i-th stuck owner waits for the j-th. */
static void graph_connect(struct waitgraph *g)
{
	g->words = (g->stucks + 63) / 64;
	g->edge = mem_alloc((size_t)g->stucks * g->words * sizeof(*g->edge));
	for (unsigned i = 0; i < g->stucks; i++) {
		const struct graph_owner *o = &g->owner[g->stuck[i]];

		for (unsigned w = o->want; w < o->want + o->wants; w++)
			for (unsigned r = g->want[w].from; r < g->want[w].to; r++) {
				unsigned to = g->owner[g->hold[r].owner].node;

				if (want_waits_for(g, &g->want[w], &g->hold[r]))
					g->edge[(size_t)i * g->words + to / 64] |= UINT64_C(1) << to % 64;
			}
	}
}

bool graph_reduce(struct waitgraph *g)
{
	unsigned left = g->owners;
	bool more = true;

	graph_index(g);
	for (unsigned i = 0; i < g->owners; i++)
		g->owner[i].stuck = true;
	while (more) {
		more = false;
		for (unsigned i = 0; i < g->owners; i++) {
			if (!g->owner[i].stuck || !owner_goes_on(g, &g->owner[i]))
				continue;
			owner_frees(g, &g->owner[i]);
			left--;
			more = true;
		}
	}
	if (left == 0)
		return false;
	g->stuck = mem_alloc(left * sizeof(*g->stuck));
	for (unsigned i = 0; i < g->owners; i++) {
		if (!g->owner[i].stuck)
			continue;
		g->owner[i].node = g->stucks;
		g->stuck[g->stucks++] = i;
	}
	graph_connect(g);
	return true;
}

static bool graph_has_edge(const struct waitgraph *g, unsigned from, unsigned to)
{
	return g->edge[(size_t)from * g->words + to / 64] >> to % 64 & 1;
}

/*
 * Breadth first, from this node along the edges, or against them. via[i]: the node before i on a shortest path; NOBODY: it is not reached. The start counts as
 * reached only if a path comes back to it.
 */
static void graph_walk(const struct waitgraph *g, unsigned start, bool backwards, unsigned *via, unsigned *queue)
{
	unsigned head = 0, tail = 0;

	for (unsigned i = 0; i < g->stucks; i++)
		via[i] = NOBODY;
	queue[tail++] = start;
	while (head < tail) {
		unsigned at = queue[head++];

		for (unsigned i = 0; i < g->stucks; i++) {
			if (via[i] != NOBODY || !(backwards ? graph_has_edge(g, i, at) : graph_has_edge(g, at, i)))
				continue;
			via[i] = at;
			if (i != start)
				queue[tail++] = i;
		}
	}
}

/* All daemons have the same order. */
static bool came_before(const struct graph_owner *a, const struct graph_owner *b)
{
	return a->place != b->place ? a->place < b->place : span_order(a->who, b->who) < 0;
}

bool graph_is_in_cycle(const struct waitgraph *g, unsigned owner)
{
	unsigned *via = mem_alloc(2 * (size_t)g->stucks * sizeof(*via));
	bool found;

	graph_walk(g, g->owner[owner].node, false, via, via + g->stucks);
	found = via[g->owner[owner].node] != NOBODY;
	mem_free(via);
	return found;
}

bool graph_is_victim(const struct waitgraph *g, unsigned owner)
{
	unsigned n = g->stucks, start = g->owner[owner].node;
	unsigned *to = mem_alloc(3 * (size_t)n * sizeof(*to)), *from = to + n, *queue = from + n;
	bool victim;

	graph_walk(g, start, false, to, queue);
	graph_walk(g, start, true, from, queue);
	victim = to[start] != NOBODY;
	for (unsigned i = 0; victim && i < n; i++) {
		if (i != start && to[i] != NOBODY && from[i] != NOBODY && came_before(&g->owner[owner], &g->owner[g->stuck[i]]))
			victim = false;
	}
	mem_free(to);
	return victim;
}

/* The want because of which one waits for the other, between which there is an edge. */
static const struct graph_want *graph_want_of(const struct waitgraph *g, unsigned from, unsigned to)
{
	const struct graph_owner *o = &g->owner[g->stuck[from]];

	for (unsigned w = o->want; w < o->want + o->wants; w++)
		for (unsigned r = g->want[w].from; r < g->want[w].to; r++)
			if (g->hold[r].owner == g->stuck[to] && want_waits_for(g, &g->want[w], &g->hold[r]))
				return &g->want[w];
	return NULL;
}

static size_t text_put(char *out, struct span text)
{
	memcpy(out, text.p, text.n);
	return text.n;
}

static struct span want_shown(const struct graph_want *w)
{
	return w->hidden ? SPAN("...") : w->name;
}

/* "name@host", or "name" */
static size_t part_put(char *out, const struct graph_want *w, const struct graph_owner *holder)
{
	size_t n = text_put(out, want_shown(w));

	if (holder->host.n == 0)
		return n;
	n += text_put(out + n, SPAN("@"));
	return n + text_put(out + n, holder->host);
}

static size_t part_length(const struct graph_want *w, const struct graph_owner *holder)
{
	return want_shown(w).n + holder->host.n + 1;
}

/* The nodes of the path: from the start to itself. Returns how many steps it has. */
static unsigned graph_path(const struct waitgraph *g, unsigned start, unsigned *via, unsigned *path)
{
	unsigned steps = 0;

	graph_walk(g, start, false, via, path);
	for (unsigned at = via[start]; at != start; at = via[at])
		steps++;
	steps++;
	path[steps] = start;
	for (unsigned i = steps, at = start; i-- > 0; path[i] = at)
		at = via[at];
	return steps;
}

/* Once the rest might not fit, dots take the place of all but the last part. */
size_t graph_cycle(const struct waitgraph *g, unsigned owner, char *out, size_t size, const struct graph_want **ret_want)
{
	unsigned *via = mem_alloc((2 * (size_t)g->stucks + 1) * sizeof(*via)), *path = via + g->stucks;
	unsigned steps = graph_path(g, g->owner[owner].node, via, path);
	const struct graph_want *first = graph_want_of(g, path[0], path[1]);
	const struct graph_owner *holder = &g->owner[g->stuck[path[1]]];
	size_t used = part_put(out, first, holder), last = sizeof("<-...<-") + part_length(first, holder);

	for (unsigned i = 1; i < steps; i++) {
		const struct graph_want *w = graph_want_of(g, path[i], path[i + 1]);

		used += text_put(out + used, SPAN("<-"));
		holder = &g->owner[g->stuck[path[i + 1]]];
		if (used + part_length(w, holder) + last > size) {
			used += text_put(out + used, SPAN("..."));
			break;
		}
		used += part_put(out + used, w, holder);
	}
	used += text_put(out + used, SPAN("<-"));
	used += part_put(out + used, first, &g->owner[g->stuck[path[1]]]);
	mem_free(via);
	*ret_want = first;
	return used;
}
