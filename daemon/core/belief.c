/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/belief.h"

/*
 * The holder may believe until D, as it was when renewing stopped. Its clock may be slower than ours: by the drift of the longest lease that may vouch for D.
 * When a store denies its vote or its clock jumps, D is sooner than what the holder was told, and nobody knows when it reads LOST.
 */
struct instant belief_of_lease(const struct engine *e, const struct lock *l)
{
	struct instant end = instant_max(lock_deadline(&e->table, l), l->lease.renewal->stood);

	return instant_max(instant_add(end, drift_us(l->lease.promised.ttl_us)), l->lease.believed_until);
}

/* Of a lease that may yet be adopted: of the votes of the previous run only their end is known. A reader with an end of its own was never told of more. */
struct instant belief_of(const struct engine *e, const struct claim *c)
{
	int64_t longest = c->ttl_us > c->lock->lease.promised.ttl_us ? c->ttl_us : c->lock->lease.promised.ttl_us;
	struct instant lease;

	if (c->lock->lease.state == LEASE_ADOPTING)
		return c->believed;
	lease = belief_of_lease(e, c->lock);
	return claim_has_end(c) ? instant_min(lease, instant_add(c->ends, drift_us(longest))) : lease;
}

struct instant belief_delayed(const struct engine *e, const struct claim *c, struct instant believed)
{
	int64_t delay_us = c->shared ? c->delay_us : c->lock->lease.delay_us;

	return delay_us > 0 ? instant_add(instant_max(believed, e->core->now), delay_us) : INSTANT_PAST;
}

struct instant belief_of_gone(const struct lock *l)
{
	return l->share ? l->share->ghost_until : INSTANT_PAST;
}

struct instant belief_kept(const struct lock *l)
{
	return l->share ? l->share->kept_until : INSTANT_PAST;
}

/* Its values can be replaced at the stores: not those of an adoption that was given up, see adoption_leave(). */
static bool belief_may_be_left(const struct lease *x)
{
	return x->state == LEASE_HELD || (x->state == LEASE_ADOPTING && x->renewal->adoption);
}

int64_t belief_leave_us(const struct engine *e, const struct lock *l, struct instant believed, struct instant kept)
{
	int64_t left = instant_diff(kept, e->core->now), believed_us = instant_diff(believed, e->core->now);

	if (lock_mark(l) > 0 && believed_us > 0)
		return belief_may_be_left(&l->lease) ? believed_us + drift_us(believed_us) + MSEC : 0;
	if (!instant_before(e->core->now, believed))
		return left > 0 ? left : 0;
	if (!l->share || !belief_may_be_left(&l->lease) || left <= 0)
		return 0;
	return instant_before(instant_add(believed, drift_us(left)), kept) ? left : 0;
}
