/* SPDX-License-Identifier: BSD-2-Clause */
/* The next step of a LOCKALL or LOCKANY: it asks, waits, or gives back. */
#include "daemon/core/group/groups.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/reply/send.h"

#include <string.h>

static struct lock *part_lock(const struct request_context *x, const struct part *p)
{
	return lock_find(&x->engine->table, part_name(p));
}

static bool part_is_asked(const struct part *p)
{
	return p->claim && p->claim->state != CLAIM_HELD;
}

/* Somebody holds it, or waits in its queue. */
static bool part_is_taken(struct request_context *x, struct group *g, const struct part *p)
{
	const struct lock *l = part_lock(x, p);

	if (!l || part_is_had(x, g, p) || (g->shared && holders_are_open(x->engine, l, g->bid.priority)))
		return false;
	return lock_is_taken(l) || l->contender->patient > 0;
}

static void part_see(struct request_context *x, struct part *p, enum refusal why)
{
	if (!p->seen) {
		p->seen = lock_find_or_add(&x->engine->table, part_name(p));
		p->seen->name.refs++;
	}
	p->why = why;
}

/* Returns the first refused name that somebody holds; if there is none, the first refused one. */
static struct part *group_refused(struct request_context *x, struct group *g)
{
	struct part *first = NULL;

	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (part_is_had(x, g, p) || p->claim || p->why == NOT_REFUSED)
			continue;
		if (p->why == REFUSED_BUSY)
			return p;
		if (!first)
			first = p;
	}
	return first;
}

static bool group_asks(const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_is_asked(&g->part[i]))
			return true;
	return false;
}

/* If a hold was lost before the client was told of it, nobody needs to know. */
static void group_drop_lost(struct request_context *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (!p->claim || p->claim->state != CLAIM_LOST)
			continue;
		inner_session_drop(x->engine, &p->claim);
		part_see(x, p, REFUSED_BUSY);
	}
}

static bool group_may_wait(const struct request_context *x, const struct group *g)
{
	return g->bid.patient && !g->bid.leaving && !x->engine->draining && instant_before(x->core->now, g->bid.wait_until);
}

/* --- LOCKALL --- */

/* All requests ask for names in the same order, so no two of them wait for each other. */
static bool part_comes_before(const struct part *p, const struct part *q)
{
	return span_compare(part_name(p), part_name(q)) < 0;
}

/* Returns the first name that it does not have; NULL: it has all. */
static struct part *all_next(struct request_context *x, struct group *g)
{
	struct part *next = NULL;

	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (!part_is_had(x, g, p))
			next = next && part_comes_before(next, p) ? next : p;
		else if (part_is_asked(p))
			inner_session_drop(x->engine, &p->claim); /* the client got it by another request */
	}
	return next;
}

/* While it waits for a name, it holds none that comes after it. */
static void all_give_back_after(struct request_context *x, struct group *g, const struct part *next)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_comes_before(next, &g->part[i]))
			inner_session_drop(x->engine, &g->part[i].claim);
}

static void all_go_on(struct request_context *x, struct group *g)
{
	struct part *p = all_next(x, g);

	if (!p) {
		group_win_all(x, g);
		return;
	}
	all_give_back_after(x, g, p);
	if (p->claim)
		return;
	if (p->why != NOT_REFUSED && (p->why != REFUSED_BUSY || !group_may_wait(x, g))) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, p, x->engine->draining ? REFUSED_DRAINING : p->why);
		return;
	}
	g->state = g->bid.patient && !g->bid.leaving ? GROUP_WAITING : GROUP_TRYING;
	g->next = (unsigned)(p - g->part);
	part_ask(x, g, p, g->state == GROUP_WAITING);
	if (g->state == GROUP_WAITING)
		deadlock_note(x, g->bid.session);
}

/* --- LOCKANY --- */

/* The stores have a problem, or are slow. Each further name would take as long again. */
static bool any_has_tried_enough(const struct request_context *x, const struct group *g)
{
	return g->next > 0 && (refusal_is_trouble(g->part[g->next - 1].why) || instant_diff(x->core->now, g->bid.asked_at) >= WAITERS_HURRY_US);
}

/* Asks for one name after the other, until one is granted. */
static bool any_try(struct request_context *x, struct group *g)
{
	for (; g->next < g->parts && !any_has_tried_enough(x, g); g->next++) {
		struct part *p = &g->part[g->next];

		if (part_is_taken(x, g, p)) {
			part_see(x, p, REFUSED_BUSY);
			continue;
		}
		g->state = GROUP_TRYING;
		part_ask(x, g, p, false);
		return true;
	}
	return false;
}

static bool any_may_wait_for(const struct part *p)
{
	return p->why == NOT_REFUSED || p->why == REFUSED_BUSY || refusal_is_trouble(p->why);
}

/* No name is free now: it waits for all of them, if it may. */
static void any_wait(struct request_context *x, struct group *g)
{
	bool may_wait = group_may_wait(x, g), waits = false;

	for (unsigned i = 0; i < g->parts && may_wait; i++) {
		if (!any_may_wait_for(&g->part[i]))
			continue;
		part_ask(x, g, &g->part[i], true);
		waits = true;
	}
	if (waits)
		g->state = GROUP_WAITING;
	else
		group_refuse(x, g, group_refused(x, g), x->engine->draining ? REFUSED_DRAINING : group_refused(x, g)->why);
}

static struct part *any_had(struct request_context *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_is_had(x, g, &g->part[i]))
			return &g->part[i];
	return NULL;
}

/*
 * The name of a semaphore, which the client has mistaken for a lock. It is refused as in names_are_of_locks(), which knows only the semaphores of this daemon.
 * NULL: none.
 */
static const struct part *any_semaphore_part(const struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (!g->part[i].claim && g->part[i].why == REFUSED_IN_USE)
			return &g->part[i];
	return NULL;
}

/* The first name that it gets is enough. In the same step it gives back all others, and leaves their queues. */
static void any_go_on(struct request_context *x, struct group *g)
{
	const struct part *of_semaphore = any_semaphore_part(g);
	struct part *had = any_had(x, g);

	if (had) {
		group_win_one(x, g, had);
		return;
	}
	if (of_semaphore) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, of_semaphore, REFUSED_IN_USE);
		return;
	}
	for (unsigned i = 0; i < g->parts && g->state == GROUP_WAITING; i++)
		if (!g->part[i].claim && g->part[i].why == REFUSED_BUSY)
			part_ask(x, g, &g->part[i], true); /* it was granted, and lost at once */
	if (group_asks(g))
		return;
	if (g->state == GROUP_WAITING) {
		group_refuse(x, g, group_refused(x, g), group_refused(x, g)->why);
		return;
	}
	g->next += g->state == GROUP_TRYING;
	if (!any_try(x, g))
		any_wait(x, g);
}

/* --- */

void group_step_next(struct request_context *x)
{
	struct group *g = group_of_bid(TAILQ_FIRST(&x->bids_due[BID_GROUP]));

	bid_set_due(x, &g->bid, DUE_NOT);
	x->step_again = true;
	group_drop_lost(x, g);
	if (g->bid.withdrawn) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, NULL, withdrawn_why(x, g->bid.denied));
	} else if (g->any) {
		any_go_on(x, g);
	} else {
		all_go_on(x, g);
	}
}

void group_step_fired(struct request_context *x, struct timer *t)
{
	group_answered(x, container_of(t, struct group, bid.timer));
	x->step_again = true;
}

void group_step_finish_up(struct request_context *x, struct session *s)
{
	struct group *g;

	GROUPS_FOREACH(g, s) {
		if (g->state == GROUP_WAITING && g->any)
			bid_withdraw(x, &g->bid);
		else if (g->state == GROUP_WAITING && !g->bid.leaving && !g->bid.withdrawn && part_is_asked(&g->part[g->next]))
			wait_finish_up(x->engine, g->part[g->next].claim);
		g->bid.leaving = true;
	}
}
