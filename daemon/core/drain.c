/* SPDX-License-Identifier: BSD-2-Clause */
/* See drain.h. */
#include "daemon/core/drain.h"

#include "daemon/core/group.h"
#include "daemon/core/jobs.h"
#include "daemon/core/permits.h"
#include "daemon/core/rate_turns.h"
#include "daemon/core/take.h"
#include "daemon/core/wait.h"
#include "daemon/core/watch.h"

/* So many requests are refused in a step. Of the others one may still be granted, as one may that comes just before the DRAIN. */
#define REFUSED_A_STEP 1024

/* A claim that converts belongs to an owner that holds the name, so it stays. */
static void refuse_claims(struct commander *x, struct session *s, unsigned *left)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&s->claims); c && *left > 0; c = next) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state != CLAIM_WAITING || lock_holder_of(c->lock, s, claim_owner(c)))
			continue;
		wait_withdraw(x->engine, c, REFUSED_DRAINING);
		(*left)--;
	}
}

/* Groups and permits are answered before the step ends. They give back what they have of it. */
static void refuse_waiting(struct commander *x, struct session *s, unsigned *left)
{
	struct group *g;
	struct permit *p;

	takes_refuse(x, s);
	rate_turns_refuse(x, s);
	refuse_claims(x, s, left);
	LIST_FOREACH(g, &s->groups, in_session)
		if (*left > 0 && g->state != GROUP_CANCELLED) {
			group_cancel(x, g);
			*left -= g->parts < *left ? g->parts : *left;
		}
	TAILQ_FOREACH(p, &s->permits, in_session)
		if (*left > 0 && p->state != PERMIT_HELD && p->state != PERMIT_LOST && p->state != PERMIT_CANCELLED) {
			permit_cancel(x, p);
			(*left)--;
		}
}

static void refuse_some(struct commander *x)
{
	struct session_table *t = x->sessions;
	unsigned left = REFUSED_A_STEP;
	struct session *s;

	for (uint32_t i = 0; i < t->slots && left > 0; i++)
		if (t->slot[i] && !t->slot[i]->over)
			refuse_waiting(x, t->slot[i], &left);
	TAILQ_FOREACH(s, &t->detached, lasting->in_detached)
		refuse_waiting(x, s, &left);
	if (left == 0)
		heap_set(&x->core->timers, &x->drain.more, instant_add(x->core->now, MSEC));
}

void drain_begin(struct commander *x, int64_t in_us)
{
	bool first = !x->engine->draining;

	x->engine->draining = true;
	x->core->metrics.value[METRIC_DRAINING] = 1;
	x->drain.over = false;
	x->drain.timer.kind = x->drain.more.kind = TIMER_DRAIN;
	heap_cancel(&x->core->timers, &x->drain.timer);
	if (in_us >= 0)
		heap_set(&x->core->timers, &x->drain.timer, instant_add(x->core->now, in_us));
	if (first)
		refuse_some(x);
	watch_drain(x);
}

void drain_fired(struct commander *x, struct timer *t)
{
	if (t == &x->drain.more)
		refuse_some(x);
	else
		x->drain.over = true;
}

/* What is asked of the stores is answered soon, and then it is known whether somebody holds. A LIST may take as long as its client reads slowly. */
static bool sessions_are_answered(const struct session_table *t)
{
	for (uint32_t i = 0; i < t->slots; i++) {
		const struct session *s = t->slot[i];

		if (s && !s->over && (s->waiting > 0 || s->resuming || !TAILQ_EMPTY(&s->pendings)))
			return false;
	}
	return true;
}

bool drain_is_over(const struct commander *x)
{
	const struct engine *e = x->engine;

	if (!e->draining || e->stopping)
		return false;
	return x->drain.over || (e->held == 0 && TAILQ_EMPTY(&e->adopting) && LIST_EMPTY(&x->jobs) &&
	                         sessions_are_answered(x->sessions));
}
