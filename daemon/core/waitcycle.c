/* SPDX-License-Identifier: BSD-2-Clause */
/* See waitcycle.h. */
#include "daemon/core/waitcycle.h"

#include "daemon/base/mem.h"

#include <string.h>

/* --- components ------------------------------------------------------------------------------------------------------- */

/* An owner, or a name behind all owners: owners lead to the names that they wait for, and names to the owners that have them. */
struct vertex {
	unsigned seen;   /* when it was found, from 1 on; 0: not yet */
	unsigned low;    /* the earliest that is known to be reached from it, in its component */
	unsigned edge;   /* the next of its edges that is looked at; NOBODY: all were */
	unsigned up;     /* from where it was found; NOBODY: the search began here */
	unsigned below;  /* the one below it on the stack; NOBODY: there is none */
	bool on_stack;
};

struct search {
	struct waitgraph *g;
	struct vertex *vertex;
	unsigned seen, top; /* how many were found; the top of the stack of those whose component is not whole */
};

static bool owner_leads_to(struct search *s, unsigned at, unsigned *ret_to)
{
	struct vertex *v = &s->vertex[at];

	while (v->edge != NOBODY) {
		const struct graph_want *w = &s->g->want[v->edge];

		v->edge = w->next;
		if (!w->blocked)
			continue;
		*ret_to = s->g->owners + w->of;
		return true;
	}
	return false;
}

static bool name_leads_to(struct search *s, unsigned at, unsigned *ret_to)
{
	struct vertex *v = &s->vertex[at];

	while (v->edge != NOBODY) {
		*ret_to = s->g->hold[v->edge].owner;
		v->edge = s->g->hold[v->edge].next_of;
		if (s->g->owner[*ret_to].stuck)
			return true;
	}
	return false;
}

static bool leads_to(struct search *s, unsigned at, unsigned *ret_to)
{
	return at < s->g->owners ? owner_leads_to(s, at, ret_to) : name_leads_to(s, at, ret_to);
}

static void vertex_found(struct search *s, unsigned at, unsigned up)
{
	struct vertex *v = &s->vertex[at];

	v->seen = v->low = ++s->seen;
	v->edge = at < s->g->owners ? s->g->owner[at].want : s->g->name[at - s->g->owners].hold;
	v->up = up;
	v->below = s->top;
	v->on_stack = true;
	s->top = at;
}

static void reaches(struct vertex *v, unsigned seen)
{
	if (seen < v->low)
		v->low = seen;
}

/* All above this one on the stack, and itself, are a component. An owner that waits for what it has itself, and for no other, is alone in it. */
static void component_ends(struct search *s, unsigned last)
{
	unsigned owners = 0, at;
	struct graph_owner *latest = NULL;

	do {
		at = s->top;
		s->top = s->vertex[at].below;
		s->vertex[at].on_stack = false;
		if (at >= s->g->owners)
			continue;
		owners++;
		if (!latest || graph_came_later(&s->g->owner[at], latest))
			latest = &s->g->owner[at];
	} while (at != last);
	if (owners > 1)
		latest->victim = true;
}

/* Depth first; the way back is in the vertices, since a chain of owners may be longer than the stack of the process. */
static void search_from(struct search *s, unsigned start)
{
	unsigned at = start, to;

	vertex_found(s, start, NOBODY);
	while (at != NOBODY) {
		struct vertex *v = &s->vertex[at];

		if (leads_to(s, at, &to)) {
			if (s->vertex[to].seen == 0) {
				vertex_found(s, to, at);
				at = to;
			} else if (s->vertex[to].on_stack) {
				reaches(v, s->vertex[to].seen);
			}
			continue;
		}
		if (v->low == v->seen)
			component_ends(s, at);
		else
			reaches(&s->vertex[v->up], v->low);
		at = v->up;
	}
}

void cycle_find_victims(struct waitgraph *g)
{
	struct search s = {.g = g, .vertex = mem_alloc(((size_t)g->owners + g->names) * sizeof(*s.vertex)), .top = NOBODY};

	for (unsigned i = 0; i < g->owners; i++)
		g->owner[i].victim = false;
	for (unsigned i = 0; i < g->stucks; i++)
		if (s.vertex[g->stuck[i]].seen == 0)
			search_from(&s, g->stuck[i]);
	mem_free(s.vertex);
}

/* --- a shortest cycle ------------------------------------------------------------------------------------------------- */

/* Breadth first. Its end is an owner that waits for what the start has. */
struct walk {
	struct waitgraph *g;
	unsigned start;
	unsigned end, end_by; /* the last owner of the cycle, and its want; NOBODY: not found yet */
	unsigned *queue, queued;
};

static void walk_begins(struct walk *k)
{
	struct waitgraph *g = k->g;

	for (unsigned i = 0; i < g->stucks; i++)
		g->owner[g->stuck[i]].via = NOBODY;
	for (unsigned i = 0; i < g->names; i++)
		g->name[i].reached = g->name[i].start = false;
	for (unsigned i = g->owner[k->start].hold; i != NOBODY; i = g->hold[i].next)
		g->name[g->hold[i].of].start = true;
	k->end = NOBODY;
	k->queue[k->queued++] = k->start;
}

static void walk_through(struct walk *k, unsigned at, unsigned want)
{
	struct graph_name *n = &k->g->name[k->g->want[want].of];

	if (at != k->start && n->start) {
		k->end = at;
		k->end_by = want;
		return;
	}
	if (n->reached)
		return;
	n->reached = true;
	for (unsigned i = n->hold; i != NOBODY; i = k->g->hold[i].next_of) {
		struct graph_owner *o = &k->g->owner[k->g->hold[i].owner];

		if (!o->stuck || o->via != NOBODY || k->g->hold[i].owner == k->start)
			continue;
		o->via = at;
		o->by = want;
		k->queue[k->queued++] = k->g->hold[i].owner;
	}
}

static bool walk_round(struct walk *k)
{
	walk_begins(k);
	for (unsigned i = 0; i < k->queued && k->end == NOBODY; i++) {
		const struct graph_owner *o = &k->g->owner[k->queue[i]];

		for (unsigned w = o->want; w != NOBODY && k->end == NOBODY; w = k->g->want[w].next)
			if (k->g->want[w].blocked)
				walk_through(k, k->queue[i], w);
	}
	return k->end != NOBODY;
}

/* --- its text --------------------------------------------------------------------------------------------------------- */

/* A want, and who is in its way. */
struct step {
	const struct graph_want *want;
	const struct graph_owner *holder;
};

struct text {
	cycle_shows *shows;
	const void *about;
	unsigned start;
	char *out;
	size_t used, size;
};

static void text_put(struct text *t, struct span s)
{
	memcpy(t->out + t->used, s.p, s.n);
	t->used += s.n;
}

static struct span text_name(const struct text *t, const struct graph_want *w)
{
	return w->owner == t->start || t->shows(t->about, w->name) ? w->name : SPAN("...");
}

/* "name@host", or "name" */
static void step_put(struct text *t, struct span name, const struct step *s)
{
	text_put(t, name);
	if (s->holder->host.n == 0)
		return;
	text_put(t, SPAN("@"));
	text_put(t, s->holder->host);
}

/* Once the rest might not fit, dots take the place of all but the last step. */
static void steps_put(struct text *t, const struct step *step, unsigned steps)
{
	struct span first = text_name(t, step[0].want);
	size_t last = sizeof("<-...<-@") + first.n + step[0].holder->host.n;

	step_put(t, first, &step[0]);
	for (unsigned i = 1; i < steps; i++) {
		struct span name = text_name(t, step[i].want);

		text_put(t, SPAN("<-"));
		if (t->used + name.n + 1 + step[i].holder->host.n + last > t->size) {
			text_put(t, SPAN("..."));
			break;
		}
		step_put(t, name, &step[i]);
	}
	text_put(t, SPAN("<-"));
	step_put(t, first, &step[0]);
}

/* From the end back to the start. */
static struct step *walk_steps(const struct walk *k, unsigned *ret_steps)
{
	const struct waitgraph *g = k->g;
	struct step *step;
	unsigned steps = 1;

	for (unsigned at = k->end; at != k->start; at = g->owner[at].via)
		steps++;
	step = mem_alloc(steps * sizeof(*step));
	*ret_steps = steps;
	step[--steps] = (struct step){&g->want[k->end_by], &g->owner[k->start]};
	for (unsigned at = k->end; at != k->start; at = g->owner[at].via)
		step[--steps] = (struct step){&g->want[g->owner[at].by], &g->owner[at]};
	return step;
}

size_t cycle_tell(struct waitgraph *g, unsigned owner, cycle_shows *shows, const void *about, char *out, size_t size, const struct graph_want **ret_want)
{
	struct walk k = {.g = g, .start = owner, .queue = mem_alloc(g->stucks * sizeof(*k.queue))};
	struct text t = {.shows = shows, .about = about, .start = owner, .out = out, .size = size};
	struct step *step;
	unsigned steps;

	if (walk_round(&k)) {
		step = walk_steps(&k, &steps);
		*ret_want = step[0].want;
		steps_put(&t, step, steps);
		mem_free(step);
	}
	mem_free(k.queue);
	return t.used;
}
