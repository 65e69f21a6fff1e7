/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/validity.h"

/*
 * The holder may believe until D, as it was when renewing stopped. Its clock may be slower than ours: by the drift of the longest lease that may vouch for D.
 * When a store denies its vote or its clock jumps, D is sooner than what the holder was told, and nobody knows when it reads LOST.
 */
struct instant validity_of_lease(const struct engine *e, const struct lock *l)
{
	struct instant end = instant_max(lock_deadline(&e->table, l), l->lease.renewal->stood);

	return instant_max(instant_add(end, drift_us(l->lease.promised.ttl_us)), l->lease.believed_until);
}

/* Of a lease that may yet be adopted: of the votes of the previous run only their end is known. */
struct instant validity_of(const struct engine *e, const struct claim *c)
{
	return c->lock->lease.state == LEASE_ADOPTING ? c->believed : validity_of_lease(e, c->lock);
}

int64_t validity_leave_us(const struct engine *e, const struct lock *l, struct instant believed)
{
	int64_t believed_us = instant_diff(believed, e->core->now);

	if (believed_us <= 0)
		return l->lease.delay_us;
	return lock_mark(l) > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_ADOPTING) ? believed_us + drift_us(believed_us) + MSEC : 0;
}
