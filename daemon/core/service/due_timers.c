/* SPDX-License-Identifier: BSD-2-Clause */
/* See due_timers.h. */
#include "daemon/core/service/due_timers.h"

#include "daemon/core/admin/alarm.h"
#include "daemon/core/admin/drain.h"
#include "daemon/core/admin/revoke.h"
#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/engine.h"
#include "daemon/core/group/group_step.h"
#include "daemon/core/group/groups.h"
#include "daemon/core/job/job.h"
#include "daemon/core/job/job_order.h"
#include "daemon/core/job/queue_pass.h"
#include "daemon/core/job/take.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/reply/watch_news.h"
#include "daemon/core/reply/name_history.h"
#include "daemon/core/reply/show.h"
#include "daemon/core/reply/lists.h"
#include "daemon/core/resume/resume.h"
#include "daemon/core/rights/auth.h"
#include "daemon/core/semaphore/permit_step.h"
#include "daemon/core/service/hangup.h"
#include "daemon/core/service/after_step.h"

static void job_timer_fired(struct request_context *x, struct timer *t)
{
	if (t->kind == TIMER_JOB)
		job_fired(x, container_of(t, struct job, timer));
	else if (t->kind == TIMER_QUEUE)
		queue_look(x, container_of(t, struct job_queue, timer));
	else if (t->kind == TIMER_TAKE)
		take_fired(x, container_of(t, struct take, timer));
	else if (t->kind == TIMER_RATE_LINE || t->kind == TIMER_RATE_TURN)
		rate_timer_fired(x, t);
	else
		job_order_fired(x, t);
}

/* Sessions that can go on are served at the end of each step. */
static void again(struct request_context *x)
{
	news_again(x);
	permits_again(x);
	groups_again(x);
	if (x->drain.more)
		drain_again(x);
	if (x->revoke.more)
		revoke_again(x);
}

static void timer_fired(struct request_context *x, struct timer *t)
{
	if (t->kind == TIMER_SESSION)
		hangup_fired(x, container_of(t, struct session, timer));
	else if (t->kind == TIMER_GRACE)
		resume_grace_over(x, container_of(t, struct lasting, grace)->session);
	else if (t->kind == TIMER_HANDED)
		after_step_handed(x);
	else if (t->kind == TIMER_WAITS)
		deadlock_fired(x);
	else if (t->kind == TIMER_NOTES)
		name_history_fired(x);
	else if (t->kind == TIMER_AGAIN)
		again(x);
	else if (t->kind == TIMER_ASK_DAEMON)
		show_fired(x);
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
	else if (t->kind == TIMER_LAPSE)
		group_step_fired(x, t);
	else if (t->kind == TIMER_PERMIT)
		permit_step_fired(x, container_of(t, struct permit, timer));
	else if (t->kind >= TIMER_JOB)
		job_timer_fired(x, t);
	else
		engine_fired(x->engine, t);
}

#define WORK_A_STEP 2048
#define WORK_A_WAIT 8 /* of a request that ends */
#define SLOTS_A_WORK 4 /* that the first in line leaves */

static unsigned session_work(const struct session *s)
{
	return WORK_A_WAIT * (1 + s->held + s->waiting) + s->slots / SLOTS_A_WORK;
}

/* A group that ends gives back what it has. */
static unsigned claim_work(const struct claim *c)
{
	const struct session *s = c->session;

	return WORK_A_WAIT * (s->principal && !s->of_permit ? group_of(c)->parts : 1);
}

/* About how much the timer is to do, where a lease to renew is 2. */
static unsigned timer_work(struct timer *t)
{
	switch ((enum timer_kind)t->kind) {
	case TIMER_LEASE: /* all readers lose it together */
		return 1 + lock_holders(lock_of_lease(container_of(t, struct lease, timer)));
	case TIMER_JOB:
		return 4;
	case TIMER_AGAIN:
	case TIMER_HANDED:
		return WORK_A_STEP;
	case TIMER_SESSION:
		return session_work(container_of(t, struct session, timer));
	case TIMER_GRACE:
		return session_work(container_of(t, struct lasting, grace)->session);
	case TIMER_CLAIM:
		return claim_work(container_of(t, struct claim, timer));
	case TIMER_LAPSE:
		return WORK_A_WAIT * container_of(t, struct group, lapse)->parts;
	case TIMER_PERMIT:
		return WORK_A_WAIT + container_of(t, struct permit, timer)->asked_n / SLOTS_A_WORK;
	default:
		return WORK_A_WAIT;
	}
}

/* Beyond some work the timers that are due are left to the next steps, which follow at once: a client can choose one moment for many. */
void due_timers_due(struct request_context *x, struct timer *t)
{
	int64_t late_us = instant_diff(x->core->now, t->at);
	unsigned work = 0, most = core_portion(x->core, WORK_A_STEP);

	x->core->late = x->engine->falls;
	x->core->metrics.value[METRIC_LOOP_LAG] = late_us;
	metric_peak(&x->core->metrics, METRIC_GAP_LONGEST, late_us);
	for (unsigned n = 0; t && !instant_before(x->core->now, t->at); t = heap_first(&x->core->timers), n++) {
		work += timer_work(t);
		if (work > most && n > 0) {
			x->core->late = true;
			break;
		}
		heap_cancel(&x->core->timers, t);
		timer_fired(x, t);
		if (x->engine->fell)
			after_step_fallen(x);
		after_step_notices(x);
	}
}
