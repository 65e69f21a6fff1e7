/* SPDX-License-Identifier: BSD-2-Clause */
/* See drain.h. */
#include "daemon/core/admin/drain.h"

#include "daemon/core/engine/wait.h"
#include "daemon/core/job/take.h"
#include "daemon/core/rate/rate_turns.h"
#include "daemon/core/reply/watch.h"
#include "daemon/core/semaphore/permits.h"
#include "daemon/core/session/group.h"
#include "daemon/core/session/jobs.h"

/* So many requests are refused in a step, and beyond one session so many claims looked at for each. Nobody is granted anything meanwhile. */
#define REFUSED_A_STEP  1024
#define LOOKS_A_REFUSAL 8
#define SLOTS_A_REFUSAL 8 /* that the first in line leaves */

/* What an owner that holds the name has asked for stays. */
static bool refuse_claims(struct request_context *x, struct session *s, int64_t *left, int64_t *looks)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&s->claims); c; c = next, (*looks)++) {
		next = TAILQ_NEXT(c, in_session);
		if (c->state != CLAIM_WAITING || lock_holder_of(c->lock, s, claim_owner(c)))
			continue;
		if (*left <= 0)
			return false;
		wait_withdraw(x->engine, c, REFUSED_DRAINING);
		(*left)--;
	}
	return true;
}

/* Groups and permits are answered before the step ends. They give back what they have of it. */
static bool refuse_gathering(struct request_context *x, struct session *s, int64_t *left)
{
	struct group *g;
	struct permit *p;

	LIST_FOREACH(g, &s->groups, in_session) {
		if (g->state == GROUP_CANCELLED)
			continue;
		if (*left <= 0)
			return false;
		group_cancel(x, g);
		*left -= g->parts;
	}
	TAILQ_FOREACH(p, &s->permits, in_session) {
		if (p->state == PERMIT_HELD || p->state == PERMIT_LOST || p->state == PERMIT_CANCELLED)
			continue;
		if (*left <= 0)
			return false;
		permit_cancel(x, p);
		*left -= 1 + p->asked_n / SLOTS_A_REFUSAL;
	}
	return true;
}

/* False: some of the session's requests are left. */
static bool refuse_waiting(struct session *s, void *context)
{
	struct walk_step *r = context;
	struct request_context *x = r->x;
	int64_t looks = 0;

	if (s->over || s->refused)
		return true;
	if (r->left <= 0)
		return false;
	s->refused = takes_refuse(x, s, &r->left) && rate_turns_refuse(x, s, &r->left) &&
	             (s->waiting == 0 || (refuse_claims(x, s, &r->left, &looks) && refuse_gathering(x, s, &r->left)));
	r->left -= looks / LOOKS_A_REFUSAL;
	return s->refused;
}

/* True: it has looked at all sessions since a hold has ended, and nothing is left. */
static bool refuse_some(struct request_context *x)
{
	struct walk_step r = {x, core_portion(x->core, REFUSED_A_STEP)};

	if (x->drain.walk.slot == 0)
		x->drain.again = false;
	return session_table_walk(x->sessions, &x->drain.walk, core_portion(x->core, SESSIONS_A_STEP), refuse_waiting, &r) && !x->drain.again;
}

void drain_again(struct request_context *x)
{
	x->drain.more = !refuse_some(x);
	if (x->drain.more)
		request_context_again(x);
}

void drain_begin(struct request_context *x, int64_t in_us)
{
	bool first = !x->engine->draining;

	x->engine->draining = true;
	x->core->metrics.value[METRIC_DRAINING] = 1;
	x->drain.over = false;
	x->drain.timer.kind = TIMER_DRAIN;
	heap_cancel(&x->core->timers, &x->drain.timer);
	if (in_us >= 0)
		heap_set(&x->core->timers, &x->drain.timer, instant_add(x->core->now, in_us));
	if (first)
		drain_again(x);
	watch_drain(x);
}

void drain_fired(struct request_context *x)
{
	x->drain.over = true;
}

static bool session_is_answered(const struct session *s)
{
	return s->over || (s->waiting == 0 && !s->resuming && TAILQ_EMPTY(&s->pendings));
}

/*
 * What is asked of the stores is answered soon, and then it is known whether somebody holds. A LIST may take as long as its client reads slowly. Each look goes
 * on where the one before has found somebody. What is asked behind that is refused by EVENT_STOP if it is not answered by then.
 */
static bool sessions_are_answered(struct request_context *x)
{
	const struct session_table *t = x->sessions;

	for (unsigned left = SESSIONS_A_STEP; x->drain.looked < t->slots; x->drain.looked++, left--) {
		const struct session *s = t->slot[x->drain.look % t->slots];

		if (left == 0)
			return false;
		if (s && !session_is_answered(s)) {
			x->drain.looked = 0;
			return false;
		}
		x->drain.look = (x->drain.look + 1) % t->slots;
	}
	x->drain.looked = 0;
	return true;
}

bool drain_is_over(struct request_context *x)
{
	const struct engine *e = x->engine;

	if (!e->draining || e->stopping)
		return false;
	return x->drain.over || (e->held == 0 && TAILQ_EMPTY(&e->adopting) && x->jobs_at_stake == 0 &&
	                         sessions_are_answered(x));
}
