/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns at the stores. A round begins when a quorum of them has room for its calls (flow.h); until then it waits here. Leases that are to be kept take
 * every other turn, and every one when half of the lease is over: a crowd that asks costs nobody a lease, and leases that could wait do not starve those who
 * ask. Among them it goes by when half of each is over: who extends a crowd of long leases, over and over, costs nobody a short one. A key that is to be
 * left behind (UNLOCK keep=) is the first of them: it may end any moment, and it is one question in the place of many renewals. What is given back
 * comes before those who ask, so a name is released before it is asked for again. Where there is no quorum there is nothing to wait for, and the round
 * is told so at once.
 */
#include "daemon/core/move.h"
#include "daemon/core/engine_part.h"

static bool pace_keeps_none(const struct pace *p)
{
	return p->keeping.count == 0;
}

static bool pace_is_idle(const struct pace *p)
{
	return pace_keeps_none(p) && TAILQ_EMPTY(&p->owing) && TAILQ_EMPTY(&p->asking);
}

static bool pace_has_room(const struct engine *e)
{
	unsigned missing = engine_quorum(e);

	for (unsigned i = 0; i < e->core->conf.nodes && missing; i++)
		missing -= member_usable(&e->members.node[i]) && flow_has_room(&e->members.node[i].flow);
	return missing == 0;
}

/* Who hopes waits for stores that may recover in a moment as well. */
static bool pace_is_in_vain(const struct engine *e, bool hopes)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		alive += member_usable(m) || (hopes && member_may_recover(&e->members, m));
	}
	return alive < engine_quorum(e);
}

static bool pace_may_begin(const struct engine *e, bool hopes)
{
	return pace_has_room(e) || pace_is_in_vain(e, hopes);
}

/* Those who wait are looked after even when no store says a word. */
static void pace_watch(struct engine *e)
{
	struct timer *t = &e->pace.timer;

	if (pace_is_idle(&e->pace))
		heap_cancel(&e->core->timers, t);
	else if (!timer_is_set(t))
		heap_set(&e->core->timers, t, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* Half of the lease is over. */
static struct instant pace_urgent_at(const struct engine *e, const struct lock *l)
{
	if (l->lease == LEASE_ADOPTING)
		return e->core->now;
	return instant_add(lock_deadline(&e->table, l), -l->ttl_us / 2);
}

/* Waits until admission; a request that does not wait is answered before that becomes long. */
static bool pace_held_back(struct engine *e, struct lock *l)
{
	if (l->contender == CONTENDER_QUEUED && !timer_is_set(&l->timer))
		line_look_at(e, l, INSTANT_NEVER);
	return true;
}

bool pace_holds(struct engine *e, struct lock *l)
{
	struct pace *p = &e->pace;
	bool first = pace_keeps_none(p) && (l->lease != LEASE_NONE || pace_is_idle(p));

	if (l->paced)
		return l->impatient == 0 || pace_held_back(e, l); /* who waits has just joined the line, and is not overdue */
	if (first && pace_may_begin(e, true))
		return false;
	if (l->lease == LEASE_NONE) {
		contender_move(e, l, CONTENDER_QUEUED, CAUSE_NO_ROOM);
		TAILQ_INSERT_TAIL(&p->asking, l, in_pace);
	} else {
		heap_set(&p->keeping, &l->keep, pace_urgent_at(e, l));
	}
	l->paced = true;
	metric_add(&e->core->metrics, METRIC_PACED, 1);
	pace_watch(e);
	return pace_held_back(e, l);
}

void pace_leave(struct engine *e, struct lock *l)
{
	if (timer_is_set(&l->keep))
		heap_cancel(&e->pace.keeping, &l->keep);
	else if (l->paced)
		TAILQ_REMOVE(&e->pace.asking, l, in_pace);
	l->paced = false;
}

bool pace_holds_debt(struct engine *e, struct op *op)
{
	struct pace *p = &e->pace;
	bool kept = op->kind == OP_LEAVE;

	if (op->paced)
		return true;
	if (pace_keeps_none(p) && (kept || TAILQ_EMPTY(&p->owing)) && pace_may_begin(e, false))
		return false;
	if (kept)
		heap_set(&p->keeping, &op->keep, INSTANT_PAST);
	else
		TAILQ_INSERT_TAIL(&p->owing, op, in_pace);
	op->paced = true;
	metric_add(&e->core->metrics, METRIC_PACED, 1);
	pace_watch(e);
	return true;
}

void pace_leave_debt(struct engine *e, struct op *op)
{
	if (timer_is_set(&op->keep))
		heap_cancel(&e->pace.keeping, &op->keep);
	else if (op->paced)
		TAILQ_REMOVE(&e->pace.owing, op, in_pace);
	op->paced = false;
}

static void pace_serve_lock(struct engine *e, struct lock *l)
{
	pace_leave(e, l);
	if (l->lease == LEASE_NONE)
		acquire_start(e, l, CAUSE_ADMITTED);
	else if (l->lease == LEASE_ADOPTING)
		adopt_go_on(e, l);
	else if (!l->round)
		renew_begin(e, l);
}

static void pace_serve_debt(struct engine *e, struct op *op)
{
	pace_leave_debt(e, op);
	if (op->kind == OP_WITHDRAW)
		turn_send(e, op);
	else
		debt_go_on(e, op);
}

static void pace_serve_kept(struct engine *e)
{
	struct timer *t = heap_first(&e->pace.keeping);

	if (t->kind == TIMER_OP)
		pace_serve_debt(e, container_of(t, struct op, keep));
	else
		pace_serve_lock(e, container_of(t, struct lock, keep));
}

/* Whether this turn is that of a lease to be kept. */
static bool pace_is_for_keeping(struct engine *e)
{
	struct pace *p = &e->pace;
	bool alone = TAILQ_EMPTY(&p->owing) && TAILQ_EMPTY(&p->asking);

	p->odd = !p->odd;
	return !pace_keeps_none(p) && (p->odd || alone || !instant_before(e->core->now, heap_first(&p->keeping)->at));
}

static bool pace_serve(struct engine *e)
{
	struct pace *p = &e->pace;
	bool debts = !TAILQ_EMPTY(&p->owing) && !(MUTATED(PACE_UNORDERED) && !TAILQ_EMPTY(&p->asking));

	if (!pace_may_begin(e, true)) {
		if (!debts || !pace_may_begin(e, false))
			return false;
		pace_serve_debt(e, TAILQ_FIRST(&p->owing));
	} else if (pace_is_for_keeping(e)) {
		pace_serve_kept(e);
	} else if (debts) {
		pace_serve_debt(e, TAILQ_FIRST(&p->owing));
	} else if (!TAILQ_EMPTY(&p->asking)) {
		pace_serve_lock(e, TAILQ_FIRST(&p->asking));
	} else {
		return false;
	}
	return true;
}

void pace_go_on(struct engine *e)
{
	if (pace_is_idle(&e->pace))
		return;
	while (pace_serve(e))
		;
	pace_watch(e);
}

/* A store that has gone silent with a full window stands in nobody's way. */
void pace_fired(struct engine *e)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (flow_is_stuck(&e->members.node[i].flow, e->core->now, e->core->conf.timeout_us))
			member_stall(&e->members, i);
	pace_go_on(e);
}
