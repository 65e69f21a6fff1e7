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
#include "daemon/core/rate_turns.h"
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
	else if (t->kind == TIMER_RATE_LINE || t->kind == TIMER_RATE_TURN)
		rate_timer_fired(x, t);
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
		drain_fired(x, t);
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

#define WORK_A_STEP 2048
#define WORK_A_WAIT 8 /* of a request that ends */

/* What the timer is about can wait for some milliseconds, but not all others for a crowd that chose one moment. Returns its work; 0: it cannot wait. */
static unsigned timer_work(const struct commander *x, struct timer *t)
{
	const struct session *s;

	switch ((enum timer_kind)t->kind) {
	case TIMER_LEASE: /* what is lost is lost now */
		return lease_loss_is_due(container_of(t, struct lease, timer), x->core->conf.nodes, x->core->now) ? 0 : 2;
	case TIMER_JOB:
		return instant_before(x->core->now, job_tell_at(container_of(t, struct job, timer))) ? 4 : 0;
	case TIMER_CLAIM:
	case TIMER_PERMIT:
	case TIMER_TAKE:
	case TIMER_RATE_TURN:
	case TIMER_ALARM:
		return WORK_A_WAIT;
	case TIMER_SESSION:
		s = container_of(t, struct session, timer);
		return WORK_A_WAIT * (1 + s->held + s->waiting);
	case TIMER_GRACE:
		s = container_of(t, struct lasting, grace)->session;
		return WORK_A_WAIT * (1 + s->held + s->waiting);
	default:
		return 0;
	}
}

/* Beyond some work in a step, timers are put off in their order, so that each is put off once or twice. */
static bool timer_is_put_off(struct commander *x, struct timer *t, unsigned *work)
{
	unsigned more = timer_work(x, t);

	if (more == 0 || *work == 0 || *work + more <= WORK_A_STEP) {
		*work += more;
		return false;
	}
	heap_set(&x->core->timers, t, instant_add(x->core->now, (1 + *work / WORK_A_STEP) * MSEC));
	*work += more;
	return true;
}

void fire_due(struct commander *x, struct timer *t)
{
	int64_t late_us = instant_diff(x->core->now, t->at);
	unsigned work = 0;

	x->core->metrics.value[METRIC_LOOP_LAG] = late_us;
	metric_peak(&x->core->metrics, METRIC_GAP_LONGEST, late_us);
	for (; t && !instant_before(x->core->now, t->at); t = heap_first(&x->core->timers)) {
		if (timer_is_put_off(x, t, &work))
			continue;
		heap_cancel(&x->core->timers, t);
		timer_fired(x, t);
		if (x->engine->fell)
			settle_fallen(x);
		settle_notices(x);
	}
}
