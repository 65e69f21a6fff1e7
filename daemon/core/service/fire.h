/* SPDX-License-Identifier: BSD-2-Clause */
/* Each timer that is due goes to its owner. */
#ifndef CORE_FIRE_H
#define CORE_FIRE_H

#include "daemon/core/session/commander.h"

/* Fires timers that are due, the first of which is `t`: as many as a step has time for. core.late: some are left. */
void fire_due(struct commander *x, struct timer *t);

static inline void fire_timers(struct commander *x)
{
	struct timer *t = heap_first(&x->core->timers);

	if (t && !instant_before(x->core->now, t->at))
		fire_due(x, t);
}

#endif
