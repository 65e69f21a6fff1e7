/* SPDX-License-Identifier: BSD-2-Clause */
/* See permit_step.h. */
#include "daemon/core/semaphore/permit_step.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/waiters.h"
#include "daemon/core/reply/refusal.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/semaphore/permit_answer.h"

static bool is_trouble(enum refusal why)
{
	return why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED;
}

/* What was lost before the client heard that it had it interests nobody. */
static void drop_lost(struct request_context *x, struct seat *seat)
{
	if (!seat->claim || seat_is_asked(seat) || seat_is_had(x, seat))
		return;
	seat_drop(x, seat);
	seat->why = NOT_REFUSED;
}

static void permit_drop_lost(struct request_context *x, struct permit *p)
{
	drop_lost(x, &p->mark);
	for (unsigned i = 0; i < p->asked_n; i++)
		drop_lost(x, &p->asked[i]);
}

static bool permit_is_complete(const struct request_context *x, const struct permit *p)
{
	return seat_is_had(x, &p->mark) && permit_has_slot(x, p);
}

static void permit_stall(struct permit *p, bool stalled)
{
	p->semaphore->stalled += stalled;
	p->semaphore->stalled -= p->stalled;
	p->stalled = stalled;
}

/* The end of its wait; or of the time to repeat the ACQUIRE, if its session was resumed while it tried. */
static struct instant permit_wait_until(const struct permit *p)
{
	const struct session *s = p->session;

	return p->not_notified && !s->detached && !s->resuming ? instant_min(p->wait_until, s->lasting->repeat_until) : p->wait_until;
}

/* It cannot have a slot now. It keeps nothing, and stands in line, or is refused. */
static void permit_fails(struct request_context *x, struct permit *p, enum refusal why)
{
	bool may_wait = p->patient && !p->leaving && !x->engine->draining && instant_before(x->core->now, p->wait_until);

	if (!may_wait || (why != REFUSED_BUSY && !is_trouble(why))) {
		permit_refuse(x, p, x->engine->draining ? REFUSED_DRAINING : why);
		return;
	}
	permit_drop_all(x, p);
	p->mark.why = NOT_REFUSED;
	permit_enter(x, p, PERMIT_WAITING);
	deadlock_note(x, p->session);
	heap_set(&x->core->timers, &p->timer, permit_wait_until(p));
	permit_watch(x, p, WATCH_WAITING);
	contended_semaphore(x, p->semaphore);
	semaphore_stir(x, p->semaphore);
}

/* --- trying --- */

/* Whether there are slots that no permit of this daemon has or asks for, and this one has not tried. */
static bool slots_are_untried(const struct permit *p)
{
	return memchr(p->semaphore->used, 0, p->semaphore->limit);
}

#define STALLED_MOST 64 /* they are looked at whenever one that tries gives up */

/* Whether another permit that tries may give back slots. */
static bool others_try(const struct permit *p)
{
	const struct permit *q;

	TAILQ_FOREACH(q, &p->semaphore->others, in_line)
		if (q != p && q->state == PERMIT_TRYING && !q->stalled)
			return true;
	return false;
}

/* Asks for the next slots, twice as many each time: a store that is asked for all at once refuses them to others meanwhile. */
static void try_slots(struct request_context *x, struct permit *p)
{
	struct semaphore *m = p->semaphore;
	unsigned from = m->next, n = p->step ? p->step : 1;

	p->step = 2 * n;
	for (unsigned i = 0; i < m->limit && n > 0; i++) {
		unsigned slot = (from + i) % m->limit;

		if (m->used[slot] > 0)
			continue;
		permit_ask_slot(x, p, slot, false);
		n--;
	}
}

static enum refusal permit_trouble(const struct permit *p)
{
	for (unsigned i = 0; i < p->asked_n; i++)
		if (!p->asked[i].claim && p->asked[i].why != NOT_REFUSED && p->asked[i].why != REFUSED_BUSY && p->asked[i].why != REFUSED_KIND)
			return p->asked[i].why;
	return NOT_REFUSED;
}

/* The name of the mark is somebody's, or the stores are in trouble. */
static bool mark_is_refused(const struct permit *p)
{
	return !p->mark.claim && p->mark.why != NOT_REFUSED;
}

static void go_on_trying(struct request_context *x, struct permit *p)
{
	bool had = permit_has_slot(x, p), again = p->stalled, may_try = had || slots_are_untried(p);

	permit_stall(p, false);
	if (permit_is_complete(x, p)) {
		permit_win(x, p);
	} else if (permit_asks_slots(p) || seat_is_asked(&p->mark)) {
		return;
	} else if (mark_is_refused(p)) {
		permit_fails(x, p, p->mark.why);
	} else if (permit_trouble(p) != NOT_REFUSED) {
		permit_fails(x, p, permit_trouble(p));
	} else if (!may_try && !p->patient && !again && p->semaphore->stalled < STALLED_MOST && others_try(p)) {
		permit_stall(p, true);
	} else if (!may_try || instant_diff(x->core->now, p->asked_at) >= WAITERS_HURRY_US) {
		permit_fails(x, p, REFUSED_BUSY);
	} else {
		if (!p->mark.claim)
			permit_ask_mark(x, p, false);
		if (!had)
			try_slots(x, p);
	}
}

/* Those that wait in line are served first, unless this one stands before them: they stand in the queues of all slots, so it need not look at each. */
static void begin(struct request_context *x, struct permit *p)
{
	const struct permit *first = TAILQ_FIRST(&p->semaphore->line);

	if (p->step == 0 && first && !permit_stands_before(p, first))
		permit_fails(x, p, REFUSED_BUSY);
	else
		go_on_trying(x, p);
}

/* --- first in line --- */

static bool step_has_time(const struct request_context *x)
{
	return x->slots_asked < core_portion(x->core, SLOTS_A_STEP);
}

static void ask_slot_as_first(struct request_context *x, struct permit *p, unsigned slot)
{
	x->slots_asked++;
	if (slot == p->asked_n)
		permit_ask_slot(x, p, slot, true);
	else
		permit_ask_again(x, p, &p->asked[slot], true);
}

static void ask_all_slots(struct request_context *x, struct permit *p)
{
	for (unsigned slot = 0; slot < p->semaphore->limit; slot++) {
		if (slot < p->asked_n && (p->asked[slot].claim || p->asked[slot].why != NOT_REFUSED))
			continue;
		if (!step_has_time(x)) {
			permit_leave_for_later(x, p);
			break;
		}
		ask_slot_as_first(x, p, slot);
	}
}

static void go_on_as_first(struct request_context *x, struct permit *p)
{
	if (permit_is_complete(x, p)) {
		permit_win(x, p);
	} else if (mark_is_refused(p)) {
		permit_refuse(x, p, p->mark.why);
	} else if (permit_trouble(p) != NOT_REFUSED) {
		permit_refuse(x, p, permit_trouble(p));
	} else {
		if (!p->mark.claim && step_has_time(x))
			permit_ask_mark(x, p, true);
		else if (!p->mark.claim)
			permit_leave_for_later(x, p);
		ask_all_slots(x, p);
	}
}

/* It would stand in more queues than a step can leave when its session ends. */
static bool session_stands_enough(const struct permit *p)
{
	return p->state != PERMIT_FIRST && p->session->slots + p->semaphore->limit > SLOTS_OF_SESSION;
}

static void go_on_in_line(struct request_context *x, struct permit *p)
{
	bool first = TAILQ_FIRST(&p->semaphore->line) == p;

	if (first && session_stands_enough(p)) {
		permit_refuse(x, p, REFUSED_SLOTS);
	} else if (first) {
		permit_enter(x, p, PERMIT_FIRST);
		go_on_as_first(x, p);
	} else if (p->state == PERMIT_FIRST) {
		permit_drop_all(x, p); /* another one came before it, by its priority */
		permit_enter(x, p, PERMIT_WAITING);
	}
}

/* --- */

/* One of its leases was lost, or adopted. A permit that the client was not told of may be asked for from then on, for a time. */
static void permit_look(struct request_context *x, struct permit *p)
{
	const struct seat *lost = permit_lost_seat(p);

	if (lost)
		permit_lose(x, p, lost->claim->loss);
	else if (!p->session->detached && !p->session->resuming)
		permit_bound(x, p, resume_repeat_until(x, p->session));
}

void permit_step_next(struct request_context *x)
{
	struct permit *p = TAILQ_FIRST(&x->permits_due);

	permit_is_due_no_more(x, p);
	x->gathered = true;
	if (permit_is_asking(p))
		permit_drop_lost(x, p);
	switch (p->state) {
	case PERMIT_TRYING:
		begin(x, p);
		break;
	case PERMIT_WAITING:
	case PERMIT_FIRST:
		go_on_in_line(x, p);
		break;
	case PERMIT_CANCELLED:
		permit_refuse(x, p, withdrawn_why(x, p->denied));
		break;
	case PERMIT_HELD:
		permit_look(x, p);
		break;
	case PERMIT_LOST:
		break;
	}
}

/* A wait that ends while no quorum of stores may grant tells so. */
static enum refusal timeout_why(const struct request_context *x)
{
	return members_that_may_grant(&x->engine->members) < engine_quorum(x->engine) ? REFUSED_QUORUM : REFUSED_TIMEOUT;
}

void permit_step_fired(struct request_context *x, struct permit *p)
{
	x->gathered = true;
	if (p->state == PERMIT_WAITING || p->state == PERMIT_FIRST)
		permit_refuse(x, p, timeout_why(x));
	else if ((p->not_notified && p->state == PERMIT_HELD) || p->state == PERMIT_LOST)
		permit_end(x, p);
}
