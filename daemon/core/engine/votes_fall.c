/* SPDX-License-Identifier: BSD-2-Clause */
/* See votes_fall.h. */
#include "daemon/core/engine/votes_fall.h"

#include "daemon/core/engine/validity.h"
#include "daemon/core/engine/lease_owner.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/round/round.h"

#define LOST_A_STEP      64   /* the others have timers that are due */
#define SCHEDULED_A_STEP 2048 /* buckets of the table of names */

/* Nothing else is done for most locks than to read and to write this: without it the step waits for memory. */
static inline void lock_prefetch(const struct lock *l)
{
	__builtin_prefetch(&l->name);
	__builtin_prefetch(&l->contender);
	__builtin_prefetch(&l->lease.renewal);
	__builtin_prefetch(&l->lease.promised);
	__builtin_prefetch(l->lease.votes);
}

static void lock_votes_fall(struct engine *e, struct lock *l, unsigned node, int64_t sooner_us)
{
	struct lease *x = &l->lease;

	if (l->contender->state == CONTENDER_ACQUIRING && l->contender->round)
		l->contender->round->votes.until[node] = instant_add(l->contender->round->votes.until[node], -sooner_us);
	if (x->state != LEASE_HELD && x->state != LEASE_ADOPTING)
		return;
	if (x->state == LEASE_HELD)
		x->believed_until = validity_of_lease(e, l);
	x->votes[node] = instant_add(x->votes[node], -sooner_us);
}

/* A store's clock jumped ahead, or its server is behind another address now: all its votes end that much sooner. */
static void votes_fall_of(struct engine *e, unsigned node)
{
	int64_t sooner_us = e->members.votes_fall_us[node];
	struct map_walk walk = {0};
	struct map_node *at;

	e->members.votes_fall_us[node] = 0;
	e->fell_us[node] += sooner_us;
	e->fell = true;
	while (map_walk(&e->table.map, &walk, &at)) {
		if (walk.ahead)
			lock_prefetch(container_of(walk.ahead, struct lock, name.node));
		for (; at; at = at->next)
			lock_votes_fall(e, container_of(at, struct lock, name.node), node, sooner_us);
	}
}

/*
 * When the leases end is known from now on, and a request finds what is over: see core.late. Their timers cost more than that, so these follow in the next
 * steps: a loss is told, and a renewal begins, that much later.
 */
void votes_fall_schedule(struct engine *e)
{
	unsigned left = core_portion(e->core, SCHEDULED_A_STEP);
	struct map_node *at;

	while (left > 0 && (e->falls = map_walk(&e->table.map, &e->fall_walk, &at))) {
		for (left--; at; at = at->next) {
			struct lease *x = &container_of(at, struct lock, name.node)->lease;

			if (x->state == LEASE_HELD) /* of an adoption they are counted when the next vote comes */
				lease_schedule(e, x);
		}
	}
	if (e->falls)
		heap_set(&e->core->timers, &e->back.timer, e->core->now);
}

void votes_fall(struct engine *e)
{
	e->members.votes_fall = false;
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		if (!e->members.votes_fall_us[i])
			continue;
		votes_fall_of(e, i);
		e->falls = true;
		e->fall_walk = (struct map_walk){0};
	}
	if (e->falls)
		votes_fall_schedule(e);
}

static struct lease *lease_that_is_over(const struct engine *e)
{
	struct timer *t = heap_first(&e->core->timers);
	struct lease *x = t && t->kind == TIMER_LEASE ? container_of(t, struct lease, timer) : NULL;

	return x && x->state == LEASE_HELD && lease_loss_is_due(x, e->core->conf.nodes, e->core->now) ? x : NULL;
}

void __attribute__((cold)) votes_fall_lose_over(struct engine *e)
{
	unsigned left = core_portion(e->core, LOST_A_STEP);
	struct lease *x;

	while (left-- > 0 && (x = lease_that_is_over(e)))
		lease_owner_expire(e, x);
	e->core->late = true; /* some may be left, behind other timers */
}
