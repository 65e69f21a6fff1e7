/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/expire.h"

#include "daemon/core/hold.h"
#include "daemon/core/stay.h"

/* While the lease is being adopted nobody is told: the adoption decides first. */
void expire_fired(struct engine *e, struct lock *l)
{
	struct instant next = INSTANT_NEVER;
	struct claim *c, *after;

	if (l->lease.state != LEASE_HELD)
		return;
	l->name.refs++;
	for (c = l->holder; c; c = after) {
		after = lock_next_holder(l, c);
		if (instant_before(e->core->now, stay_tell_at(c)))
			next = instant_min(next, stay_tell_at(c));
		else
			hold_lose_one(e, c, LOSS_EXPIRED);
	}
	l->name.refs--;
	/* Who joined meanwhile may have set it to a sooner moment. */
	if (l->share && instant_before(next, timer_is_set(&l->share->timer) ? l->share->timer.at : INSTANT_NEVER))
		heap_set(&e->core->timers, &l->share->timer, next);
}
