/* SPDX-License-Identifier: BSD-2-Clause */
/* See admin.h. */
#include "daemon/core/admin/admin.h"

#include "daemon/core/event/core.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/semaphore.h"

#include <inttypes.h>
#include <stdio.h>

#define GROUP_AGAIN_US   (100 * MSEC) /* pause before looking again at a group that asks at this moment, and will wait again soon */
#define FAILURES_OF_LEAST 20

/* --- held, waited --- */

/* The content of one alarm. */
struct facts {
	const struct session *session;
	struct span name;
	struct remark remark;
	struct instant since;
	int64_t fence; /* 0: none */
	unsigned names;
};

static bool claim_alarm(const struct alarm *a, struct facts *ret)
{
	const struct claim *c = a->about;
	bool held = a->kind == ALARM_HELD;

	if (c->state != (held ? CLAIM_HELD : CLAIM_WAITING))
		return false;
	*ret = (struct facts){.session = c->session, .name = lock_name(c->lock), .remark = claim_remark(c), .since = held ? c->granted_at : c->asking->asked_at,
	                     .fence = held ? c->token : 0};
	return true;
}

static bool permit_alarm(const struct alarm *a, struct facts *ret)
{
	const struct permit *p = a->about;
	bool held = a->kind == ALARM_HELD;

	if (held ? p->state != PERMIT_HELD : p->state > PERMIT_FIRST)
		return false;
	*ret = (struct facts){.session = p->bid.session, .name = p->semaphore->name, .remark = kept_remark(&p->bid.remark),
	                     .since = held ? p->granted_at : p->bid.asked_at, .fence = held ? p->fence : 0};
	return true;
}

/* Finds the name that the group waits for. */
static bool group_alarm(const struct alarm *a, struct facts *ret)
{
	const struct session *agent = a->about;
	const struct group *g = container_of(agent, struct group, agent);
	const struct claim *c;

	TAILQ_FOREACH(c, &agent->claims, in_session) {
		if (c->state != CLAIM_WAITING)
			continue;
		*ret = (struct facts){.session = g->bid.session, .name = lock_name(c->lock), .remark = kept_remark(&g->bid.remark), .since = g->bid.asked_at,
		                     .names = g->parts};
		return true;
	}
	return false;
}

static bool alarm_facts_find(const struct alarm *a, struct facts *ret)
{
	switch (a->of) {
	case ALARM_OF_CLAIM:
		return claim_alarm(a, ret);
	case ALARM_OF_PERMIT:
		return permit_alarm(a, ret);
	case ALARM_OF_GROUP:
		return group_alarm(a, ret);
	}
	return false;
}

static void alarm_log(struct request_context *x, const struct alarm *a, const struct facts *t)
{
	bool held = a->kind == ALARM_HELD;
	char who[WHO_MAX], more[64] = "";
	struct span peer = session_address(t->session->principal ? t->session->principal : t->session), note = t->remark.note, trace = t->remark.trace;

	if (!core_may_log(x->core, BURST_ALARM))
		return;
	if (t->fence > 0)
		snprintf(more, sizeof(more), " fence=%" PRId64, t->fence);
	else if (t->names > 0)
		snprintf(more, sizeof(more), " names=%u", t->names);
	core_log(x->core, LOG_WARN, "alarm", "kind=%s name=%s %s=%s session=%" PRIu64 "%s%s %s=%" PRId64 "%s%s%s%s%.*s", held ? "held" : "waited",
	         core_quoted(x->core, t->name), held ? "holder" : "waiter", core_quoted(x->core, (struct span){who, session_who(t->session, who)}),
	         t->session->serial, peer.n > 0 ? " peer=" : "", peer.n > 0 ? core_quoted(x->core, peer) : "", held ? "held_ms" : "waited_ms",
	         instant_diff(x->core->now, t->since) / MSEC, more, note.n > 0 ? " note=" : "", note.n > 0 ? core_quoted(x->core, note) : "",
	         trace.n > 0 ? " trace=" : "", (int)trace.n, trace.p);
}

/* Reports the alarm if it is due. A group may have one from an earlier configuration. */
static void alarm_report(struct request_context *x, struct alarm *a, const struct facts *t)
{
	struct instant due = instant_add(t->since, alarms_after_us(x->core, a->kind));

	if (instant_before(x->core->now, due)) {
		heap_set(&x->core->timers, &a->timer, due);
		return;
	}
	a->reported = true;
	metric_add(&x->core->metrics, a->kind == ALARM_HELD ? METRIC_ALARMS_HELD : METRIC_ALARMS_WAITED, 1);
	alarm_log(x, a, t);
}

void alarm_fired(struct request_context *x, struct timer *t)
{
	struct alarm *a = container_of(t, struct alarm, timer);
	struct facts facts;

	if (alarm_facts_find(a, &facts)) {
		alarm_report(x, a, &facts);
	} else if (a->of == ALARM_OF_GROUP) {
		heap_set(&x->core->timers, t, instant_add(x->core->now, GROUP_AGAIN_US));
	} else {
		alarms_drop(x->core, a->about);
	}
}

/* --- failures --- */

void alarm_count_failures(struct request_context *x)
{
	struct alarms *a = x->core->alarms;
	unsigned at = a->failures.next;
	int64_t failed = x->core->metrics.value[METRIC_FAILURES], answered = metrics_answered(&x->core->metrics);
	int64_t lately = failed - a->failures.failed[at], of = answered - a->failures.answered[at];
	bool above = of >= FAILURES_OF_LEAST && lately * 100 >= of * (int64_t)x->core->conf.alarm_failures;

	if (above && !a->failures.reported) {
		metric_add(&x->core->metrics, METRIC_ALARMS_FAILURES, 1);
		core_log(x->core, LOG_WARN, "alarm", "kind=failures percent=%" PRId64 " failed=%" PRId64 " of=%" PRId64 " seconds=%d",
		         lately * 100 / of, lately, of, ALARM_SECONDS);
	}
	a->failures.reported = above;
	a->failures.failed[at] = failed;
	a->failures.answered[at] = answered;
	a->failures.next = (at + 1) % ALARM_SECONDS;
	heap_set(&x->core->timers, &a->failures.timer, instant_add(x->core->now, SEC));
}

/* Only failures after this moment count for alarms. */
static void failures_begin(struct request_context *x)
{
	struct alarms *a = x->core->alarms;

	for (unsigned i = 0; i < ALARM_SECONDS; i++) {
		a->failures.failed[i] = x->core->metrics.value[METRIC_FAILURES];
		a->failures.answered[i] = metrics_answered(&x->core->metrics);
	}
	a->failures.reported = false;
	heap_set(&x->core->timers, &a->failures.timer, instant_add(x->core->now, SEC));
}

static void failures_configure(struct request_context *x)
{
	struct alarms *a = x->core->alarms;

	if (!a)
		return;
	if (x->core->conf.alarm_failures == 0)
		heap_cancel(&x->core->timers, &a->failures.timer);
	else if (!timer_is_set(&a->failures.timer))
		failures_begin(x);
}

/* --- the configuration --- */

static void session_set_alarms(struct request_context *x, const struct session *s)
{
	const struct claim *c;
	const struct permit *p;
	const struct group *g;

	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (c->state == CLAIM_HELD)
			alarms_set(x->core, ALARM_OF_CLAIM, c, ALARM_HELD, c->granted_at);
		else if (c->state == CLAIM_WAITING && c->patient)
			alarms_set(x->core, ALARM_OF_CLAIM, c, ALARM_WAITED, c->asking->asked_at);
	}
	PERMITS_FOREACH(p, s) {
		if (p->state == PERMIT_HELD)
			alarms_set(x->core, ALARM_OF_PERMIT, p, ALARM_HELD, p->granted_at);
		else if (p->state <= PERMIT_FIRST && p->bid.patient)
			alarms_set(x->core, ALARM_OF_PERMIT, p, ALARM_WAITED, p->bid.asked_at);
	}
	GROUPS_FOREACH(g, s)
		if (g->bid.patient && !g->take)
			alarms_set(x->core, ALARM_OF_GROUP, &g->agent, ALARM_WAITED, g->bid.asked_at);
}

void alarm_configure(struct request_context *x)
{
	const struct core_conf *conf = &x->core->conf;
	bool attends = conf->alarm_held_us > 0 || conf->alarm_waited_us > 0 || conf->slow_hold_us > 0 || conf->slow_wait_us > 0;
	struct session *s;

	x->engine->watched += attends;
	x->engine->watched -= x->attends;
	x->attends = attends;
	alarms_configure(x->core);
	failures_configure(x);
	if (!x->core->alarms)
		return;
	for (uint32_t i = 0; i < x->sessions->slots; i++)
		if (x->sessions->slot[i])
			session_set_alarms(x, x->sessions->slot[i]);
	TAILQ_FOREACH(s, &x->sessions->detached, lasting->in_detached)
		session_set_alarms(x, s);
}
