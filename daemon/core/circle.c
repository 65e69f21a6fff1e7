/* SPDX-License-Identifier: BSD-2-Clause */
/* See circle.h. Those that hold what the asker waits for, what these wait for in turn, and so on, as a graph. Who waits for nothing is not in it. */
#include "daemon/core/circle.h"

#include "daemon/core/waitcycle.h"
#include "daemon/core/waitowners.h"

#define OWNERS_MOST 1024 /* of a graph: where there are more, the wait table finds the deadlock */

static void circle_add(struct commander *x, struct wait_owners *o, struct session *s, struct span owner)
{
	if (s->waiting > 0 && !s->over && o->count < OWNERS_MOST && !wait_owners_have(o, s, owner))
		waitowner_add(x, o, s, owner, NULL, 0);
}

/* What a group keeps for a while is in nobody's way. */
static void circle_add_holders(struct commander *x, struct wait_owners *o, struct span name)
{
	const struct lock *l = lock_find(&x->engine->table, name);

	for (const struct claim *c = l ? l->holder : NULL; c; c = lock_next_holder(l, c))
		if (!c->session->principal)
			circle_add(x, o, c->session, claim_owner(c));
}

/* Those that have permits of it, and the first of the line, that may have some slots. */
static void circle_add_permits(struct commander *x, struct wait_owners *o, struct span name)
{
	struct semaphore *m = semaphore_find(x, name);
	struct permit *p = m ? TAILQ_FIRST(&m->line) : NULL;

	if (p && p->seats > 0)
		circle_add(x, o, p->session, permit_owner(p));
	for (p = m ? TAILQ_FIRST(&m->others) : NULL; p; p = TAILQ_NEXT(p, in_line))
		if (p->state == PERMIT_HELD)
			circle_add(x, o, p->session, permit_owner(p));
}

/* Adding an owner may move the text of the rows. */
static void circle_follow(struct commander *x, struct wait_owners *o, unsigned i)
{
	size_t left = o->item[i].rows_n;
	struct entry_row r;

	while (left > 0 && o->count < OWNERS_MOST) {
		struct span rows = waitowner_rows(o, &o->item[i]);

		rows = (struct span){rows.p + rows.n - left, left};
		if (entry_read_row(&rows, &r) <= 0)
			return;
		left = rows.n;
		if (r.kind == 'n' || r.kind == 'a')
			circle_add_holders(x, o, r.name);
		else if (r.kind == 'p')
			circle_add_permits(x, o, r.name);
	}
}

static bool circle_of_first(const struct commander *x, const struct session *s, const struct wait_owners *o, char *cycle, struct span *ret_cycle)
{
	const struct graph_want *want;
	struct waitgraph g;

	graph_init(&g);
	for (unsigned i = 0; i < o->count; i++) {
		graph_add_owner(&g, &(struct graph_owner){.who = SPAN(""), .host = SPAN(""), .own = true});
		entry_rows_to_graph(&g, waitowner_rows(o, &o->item[i]));
	}
	*ret_cycle = SPAN("");
	if (graph_reduce(&g) && g.owner[0].stuck) {
		waitowner_hide(x, s, &g, 0);
		*ret_cycle = (struct span){cycle, cycle_tell(&g, 0, cycle, CYCLE_MAX, &want)};
	}
	graph_release(&g);
	return ret_cycle->n > 0;
}

bool circle_closes(struct commander *x, struct session *s, struct span owner, const struct entry_row *row, unsigned rows, char *cycle,
                   struct span *ret_cycle)
{
	struct wait_owners o = {0};
	bool closes;

	if (x->semaphores.count == 0 || !waitowner_holds(x, s, owner))
		return false;
	waitowner_add(x, &o, s, owner, row, rows);
	for (unsigned i = 0; i < o.count; i++)
		circle_follow(x, &o, i);
	closes = o.count > 1 && circle_of_first(x, s, &o, cycle, ret_cycle);
	waitowners_release(&o);
	return closes;
}
