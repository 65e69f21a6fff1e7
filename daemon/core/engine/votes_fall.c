/* SPDX-License-Identifier: BSD-2-Clause */
/* See votes_fall.h. */
#include "daemon/core/engine/votes_fall.h"

#include "daemon/core/engine/validity.h"
#include "daemon/core/engine/lease_owner.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/round/round.h"

#define LOST_A_STEP 64 /* the others have timers that are due */

/* A store's clock jumped ahead, or its server is behind another address now: all its votes end that much sooner. */
static void votes_fall_of(struct engine *e, unsigned node)
{
	int64_t sooner_us = e->members.votes_fall_us[node];
	struct map_node *at = NULL;

	e->members.votes_fall_us[node] = 0;
	e->fell_us[node] += sooner_us;
	e->fell = true;
	while ((at = map_next(&e->table.map, at))) {
		struct lock *l = container_of(at, struct lock, name.node);

		if (l->contender->state == CONTENDER_ACQUIRING && l->contender->round)
			l->contender->round->votes.until[node] = instant_add(l->contender->round->votes.until[node], -sooner_us);
		if (l->lease.state != LEASE_HELD && l->lease.state != LEASE_ADOPTING)
			continue;
		if (l->lease.state == LEASE_HELD)
			l->lease.believed_until = validity_of_lease(e, l);
		l->lease.votes[node] = instant_add(l->lease.votes[node], -sooner_us);
		if (l->lease.state == LEASE_HELD)
			lease_schedule(e, &l->lease); /* of an adoption they are counted when the next vote comes */
	}
}

void votes_fall(struct engine *e)
{
	e->members.votes_fall = false;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (e->members.votes_fall_us[i])
			votes_fall_of(e, i);
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
