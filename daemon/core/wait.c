/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a wait ends without a grant: those who wait are refused, withdrawn, or out of time. With the last of them the name asks for nothing any more. And
 * how a name waits while too few stores can be asked for it.
 */
#include "daemon/core/wait.h"

#include "daemon/core/move.h"
#include "daemon/core/ticket.h"
#include "daemon/core/waiters.h"

#define HURRY_APART_US (5 * MSEC) /* claims that are due within that time are answered in one pass over the waiters */

void wait_leave(struct engine *e, struct claim *c)
{
	metric_add(&e->core->metrics, METRIC_WAITERS, -(int64_t)c->patient);
	heap_cancel(&e->core->timers, &c->timer);
	lock_dequeue(c->lock, c);
}

void wait_over(struct engine *e, struct lock *l, enum cause why)
{
	ticket_spend(e, l, NODESET_NONE);
	if (l->contender.state != CONTENDER_IDLE)
		contender_move(e, l, CONTENDER_IDLE, why);
}

void wait_left(struct engine *e, struct lock *l)
{
	if (TAILQ_EMPTY(&l->waiters) && l->contender.state != CONTENDER_ACQUIRING)
		wait_over(e, l, CAUSE_NOBODY_WAITS);
}

void wait_set_end(struct engine *e, struct claim *c, struct instant until)
{
	c->overdue = false;
	c->wait_until = until;
	heap_set(&e->core->timers, &c->timer, until);
}

/* Takes the claim out, with an answer. A claim that waited is told TIMEOUT where others are told BUSY. */
static void wait_answer(struct engine *e, struct claim *c, enum refusal why)
{
	if (c->patient && why == REFUSED_BUSY)
		why = c->leaving ? REFUSED_CANCELLED : REFUSED_TIMEOUT;
	wait_leave(e, c);
	notices_add(&e->notices, NOTICE_REFUSED, c, NULL, why);
}

static void wait_refuse(struct engine *e, struct claim *c, enum refusal why)
{
	struct lock *l = c->lock;

	wait_answer(e, c, why);
	wait_left(e, l);
}

void wait_look_at(struct engine *e, struct lock *l, struct instant at)
{
	struct instant due = waiters_due(l);

	at = instant_min(at, instant_max(due, instant_add(e->core->now, HURRY_APART_US)));
	if (instant_before(at, INSTANT_NEVER))
		heap_set(&e->core->timers, &l->contender.timer, at);
}

void wait_refuse_part(struct engine *e, struct lock *l, enum refusal why, enum waiters_part part)
{
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&l->waiters); c; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (waiters_include(c, part, e->core->now))
			wait_answer(e, c, why);
	}
}

bool wait_continue(struct engine *e, struct lock *l, enum refusal why, enum waiters_part part)
{
	wait_refuse_part(e, l, why, part);
	if (!TAILQ_EMPTY(&l->waiters))
		return true;
	wait_over(e, l, CAUSE_NOBODY_WAITS);
	return false;
}

/*
 * The claim has waited long enough. A round under way may still grant the lock, or say who holds it: it decides, within the timeout of a command.
 */
void wait_fired(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (l->contender.state == CONTENDER_ACQUIRING && !l->elsewhere.known) {
		c->overdue = true;
		return;
	}
	if (!c->patient) { /* it waited for an adoption; if that is over, the next round answers it */
		if (l->lease.state == LEASE_ADOPTING)
			wait_refuse(e, c, waiters_trouble(l));
		return;
	}
	wait_refuse(e, c, waiters_timeout_why(l));
}

void wait_finish_up(struct engine *e, struct claim *c)
{
	c->leaving = true;
	if (c->lock->contender.state == CONTENDER_ACQUIRING || !c->patient)
		c->overdue = true;
	else
		wait_refuse(e, c, REFUSED_CANCELLED);
}

void wait_withdraw(struct engine *e, struct claim *c, enum refusal why)
{
	wait_refuse(e, c, why);
}

void wait_for_quorum(struct engine *e, struct lock *l)
{
	bool promised = members_promise_quorum(&e->members);

	l->elsewhere.split = false;
	l->elsewhere.outdated = true;
	if (!wait_continue(e, l, REFUSED_QUORUM, promised ? WAITERS_OVERDUE : WAITERS_IMPATIENT))
		return;
	contender_move(e, l, CONTENDER_NO_QUORUM, CAUSE_TOO_FEW);
	if (promised)
		wait_look_at(e, l, instant_add(e->core->now, core_patience_us(e->core)));
	ticket_withdraw(e, l); /* without a quorum the ticket would only keep others out */
}
