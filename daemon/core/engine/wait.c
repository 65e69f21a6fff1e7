/* SPDX-License-Identifier: BSD-2-Clause */
/* See wait.h. */
#include "daemon/core/engine/wait.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/engine/ticket.h"
#include "daemon/core/engine/waiters.h"

#include <limits.h>

#define HURRY_APART_US (5 * MSEC) /* claims that are due within that time are answered in one pass over the waiters */
#define ANSWERED_AT_ONCE 768     /* claims of one name in a step, so that nothing else waits for a crowd */

void wait_leave(struct engine *e, struct claim *c)
{
	metric_add(&e->core->metrics, METRIC_WAITERS, -claim_queues(c));
	heap_cancel(&e->core->timers, &c->timer);
	contender_dequeue(contender_of_claim(c), c);
}

void wait_over(struct engine *e, struct contender *k, enum cause why)
{
	ticket_end(e, k);
	if (k->state != CONTENDER_IDLE)
		contender_move(e, k, CONTENDER_IDLE, why);
}

/* The place ends with the last who waits, though a round that has shown it be under way: who comes later is not to have a place from before. */
static void wait_end_place(struct engine *e, struct contender *k)
{
	if (k->patient == 0)
		ticket_end(e, k);
}

void wait_left(struct engine *e, struct contender *k)
{
	if (TAILQ_EMPTY(&k->waiters) && contender_is_between_rounds(k))
		wait_over(e, k, CAUSE_NOBODY_WAITS);
	else
		wait_end_place(e, k);
}

void wait_set_end(struct engine *e, struct claim *c, struct instant until)
{
	contender_set_overdue(contender_of_claim(c), c, false);
	c->asking->wait_until = until;
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
	struct contender *k = contender_of_claim(c);

	wait_answer(e, c, why);
	wait_left(e, k);
}

/* The first claim that is overdue ends the pause: contender_fired() answers it, and asks again at once for those who still wait, unless the name is queued. */
void wait_look_at(struct engine *e, struct contender *k, struct instant at)
{
	struct instant due = waiters_due(k);

	at = instant_min(at, instant_max(due, instant_add(e->core->now, HURRY_APART_US)));
	if (instant_before(at, INSTANT_NEVER))
		heap_set(&e->core->timers, &k->timer, at);
}

static unsigned answered_at_once(const struct engine *e)
{
	if (e->stopping)
		return UINT_MAX; /* the last step keeps nobody waiting */
	return core_portion(e->core, ANSWERED_AT_ONCE);
}

bool wait_refuse_part(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part)
{
	unsigned left = part == WAITERS_ALL ? UINT_MAX : contender_hurried(k), most = answered_at_once(e);
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&k->waiters); c && left > 0; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		left -= !c->patient || c->overdue;
		if (!waiters_include(c, part, e->core->now))
			continue;
		if (most-- == 0)
			return false;
		wait_answer(e, c, why);
	}
	return true;
}

void wait_look_soon(struct engine *e, struct contender *k)
{
	heap_set(&e->core->timers, &k->timer, instant_add(e->core->now, 1));
}

void wait_announce_all(struct engine *e, struct contender *k)
{
	unsigned left = k->patient - k->announced;

	/* From the end, where most of those are that have come. */
	for (struct claim *c = TAILQ_LAST(&k->waiters, claims); c && left > 0; c = TAILQ_PREV(c, claims, in_lock)) {
		if (!c->patient || c->announced)
			continue;
		left--;
		if (c->ending)
			continue;
		c->announced = true;
		k->announced++;
		notices_add(&e->notices, NOTICE_WAITING, c, NULL, NOT_REFUSED);
	}
}

bool wait_continue(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part)
{
	k->crowd = !wait_refuse_part(e, k, why, part);
	wait_end_place(e, k);
	wait_announce(e, k);
	if (!TAILQ_EMPTY(&k->waiters))
		return true;
	wait_over(e, k, CAUSE_NOBODY_WAITS);
	return false;
}

/* A round under way may still grant the lock, or say who holds it: it decides, within the timeout of a command. */
void wait_fired(struct engine *e, struct claim *c)
{
	struct contender *k = contender_of_claim(c);

	if (k->state == CONTENDER_ACQUIRING && !k->elsewhere.known)
		contender_set_overdue(k, c, true);
	else if (c->patient)
		wait_refuse(e, c, waiters_timeout_why(k));
	/* Else it waited for an adoption, which is over: the next round answers it. */
}

void wait_finish_up(struct engine *e, struct claim *c)
{
	c->leaving = true;
	if (contender_of_claim(c)->state == CONTENDER_ACQUIRING || !c->patient)
		contender_set_overdue(contender_of_claim(c), c, true);
	else
		wait_refuse(e, c, REFUSED_CANCELLED);
}

void wait_withdraw(struct engine *e, struct claim *c, enum refusal why)
{
	wait_refuse(e, c, why);
}

void wait_for_quorum(struct engine *e, struct contender *k)
{
	bool promised = members_promise_quorum(&e->members);

	k->elsewhere.split = false;
	k->elsewhere.outdated = true;
	if (!wait_continue(e, k, REFUSED_QUORUM, promised ? WAITERS_OVERDUE : WAITERS_IMPATIENT))
		return;
	contender_move(e, k, CONTENDER_NO_QUORUM, CAUSE_TOO_FEW);
	if (promised)
		wait_look_at(e, k, instant_add(e->core->now, core_soon_us(e->core)));
	if (k->crowd)
		wait_look_soon(e, k);
	ticket_withdraw(e, k); /* without a quorum the ticket would only keep others out */
}
