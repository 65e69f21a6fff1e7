/* SPDX-License-Identifier: BSD-2-Clause */
/* The next step of a requested permit: it tries slots, waits for its turn, then in the queues; how it is answered, and resumed. */
#include "daemon/core/semaphore/permit.h"

#include "daemon/core/deadlock/deadlock.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/reply/history.h"
#include "daemon/core/reply/listing.h"
#include "daemon/core/reply/records.h"
#include "daemon/core/reply/show.h"

/* Its client is told of the permit. Forgets what the same owner lost earlier with the same slot. */
static void permit_forget_losses(struct request_context *x, struct permit *p)
{
	struct permit *loss, *next;

	for (loss = permit_first(p->bid.session); loss && loss->state == PERMIT_LOST; loss = next) {
		next = permit_next(loss);
		if (!loss->bid.not_notified && loss->semaphore == p->semaphore &&
		    span_equal(loss->bid.owner, p->bid.owner) && loss->slot.slot == p->slot.slot) {
			permit_abandon(x, loss, INSTANT_NEVER); /* its client has not read of the new grant yet */
			permit_end(x, loss);
		}
	}
}

void permit_notified(struct request_context *x, struct permit *p)
{
	if (!p->bid.not_notified)
		return;
	p->bid.not_notified = false;
	heap_cancel(&x->core->timers, &p->bid.timer);
	record_permit(x, p);
	permit_forget_losses(x, p);
}

unsigned permits_send_rows(struct request_context *x, struct session *s, size_t begin, int64_t *more)
{
	struct permit *p;
	struct reply r;
	unsigned n = 0;

	PERMITS_FOREACH(p, s) {
		if (p->state != PERMIT_HELD || permit_is_adopting(p) || permit_valid_us(x, p) <= 0)
			continue;
		if (rows_take_long(x, s->unsent - begin)) {
			++*more;
			continue;
		}
		heap_cancel(&x->core->timers, &p->bid.timer);
		permit_notified(x, p);
		reply_begin(&r, session_line(x->sessions), span_of(s->lasting->resume_tag), "*");
		reply_permit(&r, p);
		reply_ms(&r, "valid_ms", permit_valid_us(x, p));
		reply_int(&r, "count", 1);
		reply_int(&r, "limit", p->semaphore->limit);
		reply_owner(&r, p->bid.owner);
		session_send(x->sessions, s, r.start, reply_end(&r));
		n++;
	}
	return n;
}

/* limits the time to repeat the request for one permit; does nothing if its client knows of it */
static void permit_bound(struct request_context *x, struct permit *p, struct instant until)
{
	if (!p->bid.not_notified || permit_is_adopting(p))
		return;
	if (!timer_is_set(&p->bid.timer) || instant_before(until, p->bid.timer.at))
		heap_set(&x->core->timers, &p->bid.timer, until);
}

void permits_bound(struct request_context *x, struct session *s, struct instant until)
{
	struct permit *p;

	PERMITS_FOREACH(p, s) {
		if (p->bid.not_notified && p->state == PERMIT_LOST) {
			p->bid.not_notified = false;
			permit_send_push(x, p, "! LOST", NULL);
		} else if (p->state == PERMIT_LOST && p->acknowledged) {
			heap_set(&x->core->timers, &p->bid.timer, until);
		} else {
			permit_bound(x, p, until);
		}
	}
}

/* How an ACQUIRE is answered: either the client gets the permit, or the permit is refused and freed. */

/* It has the mark and a slot. */
static void permit_win(struct request_context *x, struct permit *p)
{
	struct session *s = p->bid.session;
	bool tagged = bid_is_tagged(&p->bid);

	permit_keep_slot(x, p);
	heap_cancel(&x->core->timers, &p->bid.timer);
	permit_enter(x, p, PERMIT_HELD);
	p->granted_at = x->core->now;
	p->fence = p->slot.claim->token;
	record_permit(x, p);
	name_history_add(x, s, p->semaphore->name);
	if (!p->bid.not_notified) {
		permit_forget_losses(x, p);
		permit_send_granted(x, p, span_of(p->bid.tag));
	} else if (s->detached || s->resuming) {
		p->relied_until = INSTANT_PAST;
	} else {
		heap_set(&x->core->timers, &p->bid.timer, s->lasting->repeat_until);
	}
	permit_watch(x, p, WATCH_GRANTED);
	contended_send(x, p, CONTENDED_FIRST);
	permit_note_risk(x, p);
	session_answered(x->sessions, s, tagged);
	deadlock_note(x, s);
	semaphore_stir(x, p->semaphore);
}

/* Of those who have a permit here, returns the one that asked first. NULL: other daemons have all permits. */
static const struct permit *permit_in_the_way(const struct semaphore *m)
{
	const struct permit *p;

	TAILQ_FOREACH(p, &m->others, in_line)
		if (p->state == PERMIT_HELD)
			break;
	return p;
}

static void permit_send_full(struct request_context *x, const struct permit *p, const char *word)
{
	struct semaphore *m = p->semaphore;
	const struct permit *holder = permit_in_the_way(m);
	struct reply r;

	reply_begin(&r, session_line(x->sessions), span_of(p->bid.tag), word);
	reply_text(&r, "name", m->name);
	if (word[0] == 'T')
		reply_ms(&r, "waited_ms", instant_diff(x->core->now, p->bid.asked_at));
	reply_int(&r, "limit", m->limit);
	reply_int(&r, "free", 0); /* other daemons have those that seem to be free here */
	reply_int(&r, "waiters", m->waiters); /* it has left the line */
	if (holder)
		reply_who_holds(x, &r, report_of_permit(holder));
	send_line(x, p->bid.session, &r);
}

static void permit_send_in_use(struct request_context *x, const struct permit *p)
{
	if (p->other)
		send_error(x, p->bid.session, span_of(p->bid.tag), ERROR_LIMIT,
		           "limit=%u is that of this semaphore at present: ask with the same limit, or when nobody has a permit of it", p->other);
	else
		send_error(x, p->bid.session, span_of(p->bid.tag), ERROR_KIND,
		           "the name is in use by a lock: take another name, or ask when nobody holds the lock");
}

static void permit_send_refused(struct request_context *x, const struct permit *p, enum refusal why)
{
	int64_t waited = instant_diff(x->core->now, p->bid.asked_at);

	core_answers(x->core, VERB_ACQUIRE);
	metric_waited(&x->core->metrics, refusal_result(why), waited);
	core_name_waited(x->core, p->semaphore->name, refusal_result(why), waited);
	if (why == REFUSED_BUSY) {
		metric_add(&x->core->metrics, METRIC_REFUSALS, 1);
		permit_send_full(x, p, "BUSY");
	} else if (why == REFUSED_TIMEOUT) {
		metric_add(&x->core->metrics, METRIC_TIMEOUTS, 1);
		permit_send_full(x, p, "TIMEOUT");
	} else if (why == REFUSED_IN_USE) {
		permit_send_in_use(x, p);
	} else {
		deliver_refusal(x, p->bid.session, span_of(p->bid.tag), why);
	}
}

static void permit_refuse(struct request_context *x, struct permit *p, enum refusal why)
{
	struct session *s = p->bid.session;
	bool tagged = bid_is_tagged(&p->bid);

	if (why == REFUSED_BUSY && p->bid.patient)
		why = p->bid.leaving ? REFUSED_CANCELLED : REFUSED_TIMEOUT;
	permit_enter(x, p, PERMIT_REFUSED);
	if (!p->bid.not_notified && !p->bid.reason_sent && !s->over && !s->detached)
		permit_send_refused(x, p, why);
	metric_add(&x->core->metrics, METRIC_FAILURES, why == REFUSED_QUORUM || why == REFUSED_NOT_ADMITTED);
	permit_end(x, p);
	session_answered(x->sessions, s, tagged);
}

/* If it was lost before the client was told of it, nobody needs to know. */
static void drop_lost(struct request_context *x, struct seat *seat)
{
	if (!seat->claim || seat_is_asked(seat) || inner_session_has(x->engine, seat->claim))
		return;
	inner_session_drop(x->engine, &seat->claim);
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
	return inner_session_has(x->engine, p->mark.claim) && permit_has_slot(x, p);
}

/* Call in PERMIT_TRYING. */
static void permit_stall(struct permit *p, bool stalled)
{
	struct semaphore *m = p->semaphore;

	if (p->stalled == stalled)
		return;
	p->stalled = stalled;
	m->stalled += stalled ? 1 : -1U;
	TAILQ_REMOVE(&m->others, p, in_line);
	if (stalled)
		TAILQ_INSERT_HEAD(&m->others, p, in_line);
	else
		TAILQ_INSERT_TAIL(&m->others, p, in_line);
}

/* Returns the end of its wait, or of the time to repeat the ACQUIRE if its session was resumed while it was trying. */
static struct instant permit_wait_until(const struct permit *p)
{
	const struct session *s = p->bid.session;

	return p->bid.not_notified && !s->detached && !s->resuming ? instant_min(p->bid.wait_until, s->lasting->repeat_until) : p->bid.wait_until;
}

/* It cannot have a slot now. It gives everything back, and waits in line or is refused. */
static void permit_fails(struct request_context *x, struct permit *p, enum refusal why)
{
	bool may_wait = p->bid.patient && !p->bid.leaving && !x->engine->draining && instant_before(x->core->now, p->bid.wait_until);

	if (!may_wait || (why != REFUSED_BUSY && !refusal_is_trouble(why))) {
		permit_refuse(x, p, x->engine->draining ? REFUSED_DRAINING : why);
		return;
	}
	permit_drop_all(x, p);
	p->mark.why = NOT_REFUSED;
	permit_enter(x, p, PERMIT_WAITING);
	deadlock_note(x, p->bid.session);
	heap_set(&x->core->timers, &p->bid.timer, permit_wait_until(p));
	permit_watch(x, p, WATCH_WAITING);
	contended_send_all(x, p->semaphore);
	semaphore_stir(x, p->semaphore);
}

/* --- trying --- */

/* Whether there are slots that this permit has not tried, and that no permit of this daemon has or asks for. */
static bool slots_are_untried(const struct permit *p)
{
	return memchr(p->semaphore->used, 0, p->semaphore->limit);
}

#define STALLED_MOST 64 /* all of them are looked at when one that tries gives up */

/* Whether another permit that tries may give back slots. */
static bool others_try(const struct permit *p)
{
	const struct permit *q;

	TAILQ_FOREACH(q, &p->semaphore->others, in_line)
		if (q != p && q->state == PERMIT_TRYING && !q->stalled)
			return true;
	return false;
}

/* Asks for the next slots, twice as many each time. While a store is asked for a slot, it refuses the slot to others, so not all are asked for at once. */
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

/* The name is in use otherwise, or the stores have a problem. */
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
	} else if (!may_try && !p->bid.patient && !again && p->semaphore->stalled < STALLED_MOST && others_try(p)) {
		permit_stall(p, true);
	} else if (!may_try || instant_diff(x->core->now, p->bid.asked_at) >= WAITERS_HURRY_US) {
		permit_fails(x, p, REFUSED_BUSY);
	} else {
		if (!p->mark.claim)
			permit_ask_mark(x, p, false);
		if (!had)
			try_slots(x, p);
	}
}

/*
 * Those that wait in line are served first, unless this permit comes before them. The first of them waits in the queues of all slots, so there is no need to
 * try each slot.
 */
static void begin(struct request_context *x, struct permit *p)
{
	const struct permit *first = TAILQ_FIRST(&p->semaphore->line);

	if (p->step == 0 && first && !permit_comes_before(p, first))
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

/* It would wait in more queues than a step can leave when its session ends. */
static bool session_waits_in_enough_queues(const struct permit *p)
{
	return p->state != PERMIT_FIRST && p->bid.session->slots + p->semaphore->limit > SLOTS_OF_SESSION;
}

static void go_on_in_line(struct request_context *x, struct permit *p)
{
	bool first = TAILQ_FIRST(&p->semaphore->line) == p;

	if (first && session_waits_in_enough_queues(p)) {
		permit_refuse(x, p, REFUSED_SLOTS);
	} else if (first) {
		permit_enter(x, p, PERMIT_FIRST);
		go_on_as_first(x, p);
	} else if (p->state == PERMIT_FIRST) {
		permit_drop_all(x, p); /* another one has a higher priority, and comes before it */
		permit_enter(x, p, PERMIT_WAITING);
	}
}

/* --- */

/* One of its leases was lost, or adopted. If the client was not told of the permit, it has limited time to ask for it from now on. */
static void permit_look(struct request_context *x, struct permit *p)
{
	const struct seat *lost = permit_lost_seat(p);

	if (lost)
		permit_lose(x, p, lost->claim->loss);
	else if (!p->bid.session->detached && !p->bid.session->resuming)
		permit_bound(x, p, resume_repeat_until(x, p->bid.session));
}

void permit_step_next(struct request_context *x)
{
	struct permit *p = permit_of_bid(TAILQ_FIRST(&x->bids_due[BID_PERMIT]));

	bid_set_due(x, &p->bid, DUE_NOT);
	x->step_again = true;
	if (permit_is_asking(p))
		permit_drop_lost(x, p);
	if (p->bid.withdrawn) {
		permit_refuse(x, p, withdrawn_why(x, p->bid.denied));
		return;
	}
	switch (p->state) {
	case PERMIT_TRYING:
		begin(x, p);
		break;
	case PERMIT_WAITING:
	case PERMIT_FIRST:
		go_on_in_line(x, p);
		break;
	case PERMIT_HELD:
		permit_look(x, p);
		break;
	case PERMIT_REFUSED:
	case PERMIT_LOST:
		break;
	}
}

/* If a wait ends while too few stores may grant, the answer says so. */
static enum refusal timeout_why(const struct request_context *x)
{
	return members_that_may_grant(&x->engine->members) < engine_quorum(x->engine) ? REFUSED_QUORUM : REFUSED_TIMEOUT;
}

void permit_step_fired(struct request_context *x, struct permit *p)
{
	x->step_again = true;
	if (p->state == PERMIT_WAITING || p->state == PERMIT_FIRST)
		permit_refuse(x, p, timeout_why(x));
	else if ((p->bid.not_notified && p->state == PERMIT_HELD) || p->state == PERMIT_LOST)
		permit_end(x, p);
}
