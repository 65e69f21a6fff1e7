/* SPDX-License-Identifier: BSD-2-Clause */
/* See fire.h. */
#include "daemon/core/fire.h"

#include "daemon/core/alarm.h"
#include "daemon/core/auth.h"
#include "daemon/core/busy.h"
#include "daemon/core/drain.h"
#include "daemon/core/engine.h"
#include "daemon/core/gather.h"
#include "daemon/core/hangup.h"
#include "daemon/core/job.h"
#include "daemon/core/list.h"
#include "daemon/core/names.h"
#include "daemon/core/noted.h"
#include "daemon/core/obtain.h"
#include "daemon/core/order.h"
#include "daemon/core/pass.h"
#include "daemon/core/rehome.h"
#include "daemon/core/resume.h"
#include "daemon/core/settle.h"
#include "daemon/core/take.h"
#include "daemon/core/waittable.h"

static void job_timer_fired(struct commander *x, struct timer *t)
{
	if (t->kind == TIMER_JOB)
		job_fired(x, container_of(t, struct job, timer));
	else if (t->kind == TIMER_QUEUE)
		queue_look(x, container_of(t, struct job_queue, timer));
	else if (t->kind == TIMER_TAKE)
		take_fired(x, container_of(t, struct take, timer));
	else if (t->kind == TIMER_REHOME)
		rehome_fired(x);
	else
		order_fired(x, t);
}

static void timer_fired(struct commander *x, struct timer *t)
{
	if (t->kind == TIMER_SESSION)
		hangup_fired(x, container_of(t, struct session, timer));
	else if (t->kind == TIMER_GRACE)
		resume_grace_over(x, container_of(t, struct lasting, grace)->session);
	else if (t->kind == TIMER_WAITS)
		waittable_fired(x);
	else if (t->kind == TIMER_NOTES)
		noted_fired(x);
	else if (t->kind == TIMER_STRANGERS)
		busy_fired(x);
	else if (t->kind == TIMER_INQUIRY)
		names_fired(x, t);
	else if (t->kind == TIMER_DRAIN)
		drain_fired(x);
	else if (t->kind == TIMER_ALARM)
		alarm_fired(x, t);
	else if (t->kind == TIMER_FAILURES)
		alarm_count_failures(x);
	else if (t->kind == TIMER_AUTH)
		auth_fired(x, t);
	else if (t->kind == TIMER_LISTS)
		lists_go_on(x);
	else if (t->kind == TIMER_INSISTING || t->kind == TIMER_LAPSE)
		gather_fired(x, t);
	else if (t->kind == TIMER_PERMIT)
		obtain_fired(x, container_of(t, struct permit, timer));
	else if (t->kind >= TIMER_JOB)
		job_timer_fired(x, t);
	else
		engine_fired(x->engine, t);
}

void fire_due(struct commander *x, struct timer *t)
{
	int64_t late_us = instant_diff(x->core->now, t->at);

	x->core->metrics.value[METRIC_LOOP_LAG] = late_us;
	metric_peak(&x->core->metrics, METRIC_GAP_LONGEST, late_us);
	for (; t && !instant_before(x->core->now, t->at); t = heap_first(&x->core->timers)) {
		heap_cancel(&x->core->timers, t);
		timer_fired(x, t);
		if (x->engine->fell)
			settle_fallen(x);
		settle_notices(x);
	}
}
