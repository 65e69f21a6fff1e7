/* SPDX-License-Identifier: BSD-2-Clause */
/* See gather.h. */
#include "daemon/core/gather.h"

#include "daemon/core/award.h"
#include "daemon/core/deliver.h"
#include "daemon/core/holders.h"
#include "daemon/core/together.h"
#include "daemon/core/waiters.h"

#define INSIST_MOST_US (64 * SEC)
#define INSIST_PART    4 /* between two times of insisting it is polite for so many times as long */

static struct lock *part_lock(const struct commander *x, const struct part *p)
{
	return lock_find(&x->engine->table, part_name(p));
}

/* The client or the group holds the name, and will for a while. */
static bool part_is_had(struct commander *x, struct group *g, const struct part *p)
{
	struct claim *c = group_own(x, g, p);

	if (!c || c->shared != g->shared)
		c = p->claim && p->claim->state == CLAIM_HELD ? p->claim : NULL;
	return c && c->lock->lease.state == LEASE_HELD && !lock_is_over(&x->engine->table, c->lock);
}

static bool part_is_asked(const struct part *p)
{
	return p->claim && p->claim->state != CLAIM_HELD;
}

/* Somebody has it, or stands in its queue. */
static bool part_is_taken(struct commander *x, struct group *g, const struct part *p)
{
	const struct lock *l = part_lock(x, p);

	if (!l || part_is_had(x, g, p) || (g->shared && holders_are_open(x->engine, l, g->priority)))
		return false;
	return lock_is_taken(l) || l->contender->patient > 0;
}

static void part_see(struct commander *x, struct part *p, enum refusal why)
{
	if (!p->seen) {
		p->seen = lock_find_or_add(&x->engine->table, part_name(p));
		p->seen->name.refs++;
	}
	p->why = why;
}

/* The first name in the order of the request that somebody has; NULL: as far as this daemon knows, all are free. */
static struct part *group_taken(struct commander *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++) {
		if (!part_is_taken(x, g, &g->part[i]))
			continue;
		part_see(x, &g->part[i], REFUSED_BUSY);
		if (g->shared)
			together_refused(x->engine, g->part[i].seen);
		return &g->part[i];
	}
	return NULL;
}

/* Of the names that were refused: the first that somebody has; else the first. */
static struct part *group_refused(struct commander *x, struct group *g)
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

/* Asks for all names that it has not. */
static void group_ask(struct commander *x, struct group *g, bool patient)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (!g->part[i].claim && !part_is_had(x, g, &g->part[i]))
			part_ask(x, g, &g->part[i], patient);
}

static unsigned group_count(struct commander *x, struct group *g, bool asked)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->parts; i++)
		n += asked ? part_is_asked(&g->part[i]) : part_is_had(x, g, &g->part[i]);
	return n;
}

static bool group_is_complete(struct commander *x, struct group *g)
{
	return group_count(x, g, false) == g->parts;
}

/* A hold that was lost before the client was told of it interests nobody. */
static void group_drop_lost(struct commander *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++) {
		struct part *p = &g->part[i];

		if (!p->claim || p->claim->state != CLAIM_LOST)
			continue;
		part_drop(x, p);
		part_see(x, p, REFUSED_BUSY);
	}
}

/* --- LOCKALL --- */

static bool is_trouble(enum refusal why)
{
	return why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED;
}

/* It cannot have this name now. It has given back all that it had, and waits for the name, or is refused. */
static void all_is_refused(struct commander *x, struct group *g, struct part *p)
{
	bool may_wait = g->patient && !g->leaving && !x->engine->draining && instant_before(x->core->now, g->wait_until);

	if (x->engine->draining) {
		group_refuse(x, g, p, REFUSED_DRAINING);
	} else if (may_wait && (p->why == REFUSED_BUSY || is_trouble(p->why))) {
		g->state = GROUP_WAITING;
		g->next = (unsigned)(p - g->part);
		g->waits_since = x->core->now;
		part_ask(x, g, p, true);
	} else {
		group_refuse(x, g, p, p->why);
	}
}

/* Asks for all names that it has not, unless somebody is known to have one of them. */
static void all_try(struct commander *x, struct group *g)
{
	struct part *taken = group_taken(x, g);

	if (taken) {
		group_drop_parts(x, g, NULL);
		all_is_refused(x, g, taken);
		return;
	}
	g->state = GROUP_TRYING;
	group_ask(x, g, false);
}

static void all_insist(struct commander *x, struct group *g)
{
	g->state = GROUP_INSISTING;
	g->offers = 0;
	heap_set(&x->core->timers, &g->insisting, instant_add(x->core->now, g->insist_us));
	group_ask(x, g, true);
}

static void all_tried(struct commander *x, struct group *g)
{
	struct part *p;

	if (group_count(x, g, true) > 0)
		return;
	p = group_refused(x, g);
	if (!p) {
		group_ask(x, g, false); /* the client has given back what it held */
		return;
	}
	group_drop_parts(x, g, NULL);
	all_is_refused(x, g, p);
}

/*
 * Its turn came as soon as the stores could answer, for as many names in a row as it asks for. Nobody has to leave for it: it may join others at the stores,
 * and takes each of its names for one that it must wait for.
 */
static bool all_is_offered(const struct commander *x, struct group *g)
{
	bool quick = instant_diff(x->core->now, g->waits_since) <= x->core->conf.timeout_us;

	g->offers = quick ? g->offers + 1 : 0;
	return g->offers >= g->parts;
}

static void all_waited(struct commander *x, struct group *g)
{
	struct part *p = &g->part[g->next];
	bool had = part_is_had(x, g, p);

	if (had && all_is_offered(x, g))
		g->insist_at = x->core->now;
	if (!had) {
		if (!p->claim)
			all_is_refused(x, g, p); /* also if it was granted and lost at once */
	} else if (instant_before(x->core->now, g->insist_at)) {
		if (part_is_asked(p))
			part_drop(x, p); /* the client itself has got it */
		all_try(x, g);
	} else {
		all_insist(x, g);
	}
}

static void all_insisted(struct commander *x, struct group *g)
{
	struct part *p = group_refused(x, g);

	if (p && p->why != REFUSED_BUSY) {
		group_drop_parts(x, g, NULL);
		group_refuse(x, g, p, p->why);
		return;
	}
	group_ask(x, g, true); /* what was lost meanwhile */
}

static void all_go_on(struct commander *x, struct group *g)
{
	if (group_is_complete(x, g)) {
		group_win_all(x, g);
		return;
	}
	switch (g->state) {
	case GROUP_NEW:
		all_try(x, g);
		break;
	case GROUP_TRYING:
		all_tried(x, g);
		break;
	case GROUP_WAITING:
		all_waited(x, g);
		break;
	case GROUP_INSISTING:
		all_insisted(x, g);
		break;
	case GROUP_CANCELLED:
		break;
	}
}

static void all_relent(struct commander *x, struct group *g)
{
	struct part *p = NULL;

	for (unsigned i = 0; i < g->parts && !p; i++)
		if (part_is_asked(&g->part[i]))
			p = &g->part[i];
	g->insist_at = instant_add(x->core->now, INSIST_PART * g->insist_us);
	g->waits_since = x->core->now;
	if (g->insist_us < INSIST_MOST_US)
		g->insist_us *= 2;
	group_drop_parts(x, g, p); /* there it keeps its place */
	if (p) {
		g->state = GROUP_WAITING;
		g->next = (unsigned)(p - g->part);
	} else {
		g->state = GROUP_NEW;
	}
	group_make_due(x, g);
}

/* --- LOCKANY --- */

/* The stores are in trouble, or slow: to ask for more names would take as long again for each. */
static bool any_has_tried_enough(const struct commander *x, const struct group *g)
{
	return (g->next > 0 && is_trouble(g->part[g->next - 1].why)) || instant_diff(x->core->now, g->asked_at) >= WAITERS_HURRY_US;
}

/* Asks for the names one after the other, as long as each is refused. */
static bool any_try(struct commander *x, struct group *g)
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
	return p->why == NOT_REFUSED || p->why == REFUSED_BUSY || is_trouble(p->why);
}

/* No name can be had at once: it waits for all of them, if it may. */
static void any_wait(struct commander *x, struct group *g)
{
	bool may_wait = g->patient && !g->leaving && !x->engine->draining && instant_before(x->core->now, g->wait_until), waits = false;

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

static struct part *any_had(struct commander *x, struct group *g)
{
	for (unsigned i = 0; i < g->parts; i++)
		if (part_is_had(x, g, &g->part[i]))
			return &g->part[i];
	return NULL;
}

/* The first name that it has is enough: in the same step it gives back all others, and leaves their queues. */
static void any_go_on(struct commander *x, struct group *g)
{
	struct part *had = any_had(x, g);

	if (had) {
		group_win_one(x, g, had);
		return;
	}
	for (unsigned i = 0; i < g->parts && g->state == GROUP_WAITING; i++)
		if (!g->part[i].claim && g->part[i].why == REFUSED_BUSY)
			part_ask(x, g, &g->part[i], true); /* it was granted, and lost at once */
	if (group_count(x, g, true) > 0)
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

void gather_next(struct commander *x)
{
	struct group *g = TAILQ_FIRST(&x->groups_due);

	TAILQ_REMOVE(&x->groups_due, g, in_due);
	g->due = false;
	x->due--;
	x->gathered = true;
	group_drop_lost(x, g);
	if (g->state == GROUP_CANCELLED)
		group_drop_parts(x, g, NULL), group_refuse(x, g, NULL, withdrawn_why(x, g->denied));
	else if (g->any)
		any_go_on(x, g);
	else
		all_go_on(x, g);
}

void gather_fired(struct commander *x, struct timer *t)
{
	if (t->kind == TIMER_INSISTING)
		all_relent(x, container_of(t, struct group, insisting));
	else
		group_answered(x, container_of(t, struct group, lapse));
	x->gathered = true;
}

void gather_finish_up(struct commander *x, struct session *s)
{
	struct group *g;

	LIST_FOREACH(g, &s->groups, in_session) {
		g->leaving = true;
		if (g->state == GROUP_WAITING || g->state == GROUP_INSISTING)
			group_cancel(x, g);
	}
}
