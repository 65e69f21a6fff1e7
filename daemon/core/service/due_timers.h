/* SPDX-License-Identifier: BSD-2-Clause */
/* Each timer that is due goes to its owner. */
#ifndef CORE_DUE_TIMERS_H
#define CORE_DUE_TIMERS_H

#include "daemon/core/session/request_context.h"

/* Fires timers that are due, the first of which is `t`: as many as a step has time for. core.late: some are left. */
void due_timers_due(struct request_context *x, struct timer *t);

static inline void due_timers_timers(struct request_context *x)
{
	struct timer *t = heap_first(&x->core->timers);

	if (t && !instant_before(x->core->now, t->at))
		due_timers_due(x, t);
}

#endif
