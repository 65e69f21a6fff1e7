/* SPDX-License-Identifier: BSD-2-Clause */
/* See deadlock.h. Those that hold what the asker waits for, what these wait for in turn, and so on, as a graph. Who waits for nothing is not in it. */
#include "daemon/core/deadlock.h"

#include "daemon/core/waitcycle.h"
#include "daemon/core/waitowners.h"

#define LOOKS_MOST   8192 /* of one search, and of all in a moment: less than a millisecond */
#define LOOKS_PER_MS 1000 /* of all searches: some 5 per cent of a core */

/* How many looks may be spent now. */
static unsigned looks_left(struct commander *x)
{
	int64_t more = instant_diff(x->core->now, x->looked.at) / MSEC * LOOKS_PER_MS;

	if (more > 0) {
		x->looked.spent = more < x->looked.spent ? x->looked.spent - (unsigned)more : 0;
		x->looked.at = x->core->now;
	}
	return LOOKS_MOST - x->looked.spent;
}

/* An owner is in the way of one that was reached, by such a hold of the name. One that does not wait goes on. False: that is too much. */
static bool search_reach(struct wait_owners *o, struct session *s, struct span owner, struct span name, unsigned count)
{
	unsigned i;

	o->looks++;
	if (s->over || (s->waiting == 0 && s != o->owner[0].session))
		return true;
	if (s->searched != o->x->searches) {
		s->searched = o->x->searches;
		waitowners_add_session(o, s);
	}
	i = waitowners_find(o, s, owner);
	if (i == NOBODY)
		return true;
	if (graph_is_full(&o->graph, 1))
		return false;
	graph_add_hold(&o->graph, i, name, count);
	if (!o->owner[i].reached)
		o->queue[o->queued++] = i;
	o->owner[i].reached = true;
	return true;
}

/* What a group keeps for a while is in nobody's way. */
static bool search_lock(struct wait_owners *o, struct span name, unsigned most)
{
	const struct lock *l = lock_find(&o->x->engine->table, name);
	bool more = true;

	for (const struct claim *c = l ? l->holder : NULL; c && more; c = lock_next_holder(l, c))
		more = c->session->principal ? ++o->looks <= most : search_reach(o, c->session, claim_owner(c), name, 0) && o->looks <= most;
	return more;
}

/* Those that have permits of it. */
static bool search_semaphore(struct wait_owners *o, struct span name, unsigned most)
{
	struct semaphore *m = semaphore_find(o->x, name);
	bool more = true;

	for (struct permit *p = m ? TAILQ_FIRST(&m->others) : NULL; p && more; p = TAILQ_NEXT(p, in_line)) {
		o->looks++;
		more = (!waitowner_has_permit(p) || search_reach(o, p->session, permit_owner(p), name, 1)) && o->looks <= most;
	}
	return more;
}

/* Follows what this owner waits for, each name once. */
static bool search_owner(struct wait_owners *o, unsigned owner, unsigned most)
{
	struct waitgraph *g = &o->graph;
	bool more = true;

	for (unsigned i = g->owner[owner].want; i != NOBODY && more; i = g->want[i].next) {
		unsigned of = g->want[i].of;
		struct span name = g->name[of].name;

		o->looks++;
		if (g->name[of].followed)
			continue;
		g->name[of].followed = true;
		more = g->name[of].permits ? search_semaphore(o, name, most) : search_lock(o, name, most);
	}
	return more && !o->full;
}

/* Fills the graph. False: there is too much. */
static bool search_all(struct wait_owners *o, struct session *s, struct span owner, const struct graph_want *want, unsigned wants, unsigned most)
{
	bool more = waitowners_add(o, s, owner) == 0;

	o->owner[0].reached = true;
	o->queue[o->queued++] = 0;
	for (unsigned i = 0; i < wants; i++)
		graph_add_want(&o->graph, 0, &want[i]);
	o->requests++; /* theirs is 0 */
	s->searched = o->x->searches;
	waitowners_add_session(o, s);
	for (unsigned i = 0; i < o->queued && more; i++)
		more = search_owner(o, o->queue[i], most) && o->looks <= most;
	return more;
}

static bool owner_is_stuck(struct wait_owners *o, const struct session *s, char *room, struct span *ret_cycle)
{
	const struct wait_view view = {o->x->core, s};
	const struct graph_want *want;

	if (o->queued < 2 || !graph_reduce(&o->graph) || !o->graph.owner[0].stuck)
		return false;
	*ret_cycle = (struct span){room, cycle_tell(&o->graph, 0, waitowner_shows, &view, room, CYCLE_MAX, &want)};
	return ret_cycle->n > 0;
}

bool deadlock_closes(struct commander *x, struct session *s, struct span owner, const struct graph_want *want, unsigned wants, char *room,
                     struct span *ret_cycle)
{
	unsigned most = looks_left(x);
	struct wait_owners *o;
	bool closes;

	if ((s->held == 0 && TAILQ_EMPTY(&s->permits)) || most == 0)
		return false;
	o = waitowners_new(x, INSTANT_NEVER);
	x->searches++;
	closes = waitowner_holds(o, s, owner) && search_all(o, s, owner, want, wants, most) && owner_is_stuck(o, s, room, ret_cycle);
	x->looked.spent += o->looks < most ? o->looks : most;
	waitowners_free(o);
	return closes;
}
