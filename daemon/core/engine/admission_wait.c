/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/engine/admission_wait.h"

bool admit(struct engine *e, struct admission_entry *x, struct instant urgent_at, struct origin *whose)
{
	if (x->waits)
		return false;
	if (admission_ask(&e->admission, x, members_room(&e->members)))
		return true;
	admission_queue(&e->admission, x, urgent_at, whose);
	metric_add(&e->core->metrics, METRIC_QUEUED, 1);
	admission_wait_watch(e);
	return false;
}

struct admission_entry *admission_wait_next(struct engine *e)
{
	return admission_next(&e->admission, members_room(&e->members), e->core->now);
}

void admission_wait_watch(struct engine *e)
{
	struct timer *t = &e->admission_timer;

	if (admission_is_idle(&e->admission))
		heap_cancel(&e->core->timers, t);
	else if (!timer_is_set(t))
		heap_set(&e->core->timers, t, instant_add(e->core->now, e->core->conf.timeout_us));
}
