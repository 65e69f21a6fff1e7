/* SPDX-License-Identifier: BSD-2-Clause */
/* The waiters of a name here, its ticket in the queue among daemons, tickets of writers after readers, and waits that end without a grant. */
#include "daemon/core/engine/asking.h"

#include "daemon/core/engine/move.h"

#include <limits.h>

static void ticket_withdraw(struct engine *e, struct contender *k);

/* By when the claim is to be answered, unless a round under way answers it before. NEVER: it keeps waiting, and has a timer of its own. */
static struct instant claim_due(const struct claim *c)
{
	if (c->overdue)
		return INSTANT_PAST;
	return c->patient ? INSTANT_NEVER : instant_add(c->asking->asked_at, WAITERS_HURRY_US);
}

/* When the first of them is overdue; NEVER: each has a timer of its own. */
static struct instant waiters_due(const struct contender *k)
{
	struct instant due = INSTANT_NEVER;
	unsigned left = contender_hurried(k);

	for (const struct claim *c = TAILQ_FIRST(&k->waiters); c && left > 0; c = TAILQ_NEXT(c, in_lock)) {
		left -= !c->patient || c->overdue;
		due = instant_min(due, claim_due(c));
	}
	return due;
}

static bool waiters_include(const struct claim *c, enum waiters_part part, struct instant now)
{
	return part == WAITERS_ALL || (part == WAITERS_IMPATIENT && !c->patient) || !instant_before(now, claim_due(c));
}

/* No holder is known: the stores were not asked, or did not grant. */
static enum refusal waiters_trouble(const struct contender *k)
{
	return k->entry.waits ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM;
}

enum refusal waiters_overdue_why(const struct contender *k)
{
	bool taken = k->elsewhere.known && !k->elsewhere.outdated;

	return taken || (k->elsewhere.split && !k->entry.waits) ? REFUSED_BUSY : waiters_trouble(k);
}

/* For a claim whose wait is over. */
static enum refusal waiters_timeout_why(const struct contender *k)
{
	return k->state == CONTENDER_YIELDING || k->elsewhere.known || k->elsewhere.split ? REFUSED_TIMEOUT : waiters_trouble(k);
}

/*
 * Waiting across hosts. Each daemon has one ticket per name in the queues of the stores, and orders its own waiters. It takes the ticket from their clock, so
 * all stores have the same order. The ticket does not change unless that clock is set back, or was not well known, or priorities make another waiter the
 * first. The stores wake the daemon of the first ticket when the lock is freed, and notify the holder's daemon that the lock is wanted. Both messages may be
 * lost, so timers back them up.
 * See ALGORITHMS.md, Tickets.
 */

#define AHEAD_LEAST_US SEC

/* When its waiter asked, by the clock of the stores; earlier by its priority. */
static int64_t ticket_us(const struct engine *e, const struct contender *k)
{
	return members_clock_us(&e->members, k->ticket_since) - k->ticket_priority * PRIORITY_US;
}

int64_t ticket_place_since(const struct engine *e, struct instant asked_at, int64_t priority)
{
	return members_clock_us(&e->members, asked_at) - priority * PRIORITY_US;
}

int64_t ticket_place_us(const struct engine *e, const struct claim *c)
{
	return ticket_place_since(e, c->asking->asked_at, c->priority);
}

/*
 * The clocks of the stores were set back after the ticket was taken: until they have caught up, all new tickets would be older. A step that is no larger than
 * the tolerance of the clocks does not count, since the Q-th may be another store now. Nor does drift, nor the inexactness of answers that lay unread.
 */
static bool ticket_is_ahead(const struct engine *e, const struct contender *k)
{
	int64_t slack = 2 * e->core->conf.clock_tol_us + AHEAD_LEAST_US + drift_us(instant_diff(e->core->now, k->ticket_since));

	return members_clock_most_us(&e->members, k->ticket_since) - k->ticket_priority * PRIORITY_US + slack < k->ticket.us;
}

/* A ticket of a reader contains the place of the first writer after it: readers elsewhere that came later must not overtake that writer. */
static const struct claim *ticket_writer(const struct contender *k)
{
	const struct claim *c;

	TAILQ_FOREACH(c, &k->waiters, in_lock)
		if (c->patient && !c->shared)
			break;
	return c;
}

static enum stamp_kind ticket_kind(const struct claim *c)
{
	return c->shared ? STAMP_READER : STAMP_WRITER;
}

static void ticket_begin(struct engine *e, struct contender *k, const struct claim *c)
{
	const struct claim *writer = c->shared ? ticket_writer(k) : NULL;

	k->ticket.us = ticket_us(e, k);
	k->ticket.sequence = ++e->tickets;
	k->ticket.kind = ticket_kind(c);
	k->ticket.writer_us = writer ? ticket_place_us(e, writer) : 0;
}

static const struct claim *ticket_waiter(const struct contender *k)
{
	const struct claim *c = TAILQ_FIRST(&k->waiters);

	while (!c->patient)
		c = TAILQ_NEXT(c, in_lock);
	return c;
}

/*
 * The ticket of a waiter that has left serves the next one, unless its priority was higher: that would give the next one a place that nobody has asked for. A
 * waiter of a higher priority may have come since, and precedes that ticket.
 */
static bool ticket_suits(const struct contender *k, const struct claim *c)
{
	int64_t later_us = instant_diff(c->asking->asked_at, k->ticket_since);

	return c->priority >= k->ticket_priority && later_us >= (c->priority - k->ticket_priority) * PRIORITY_US;
}

/* The ticket has the kind of this waiter, and says whether a writer follows a reader. */
static bool ticket_matches(const struct contender *k, const struct claim *c)
{
	return k->ticket.kind == ticket_kind(c) && (!c->shared || !k->ticket.writer_us == !ticket_writer(k));
}

bool ticket_is_outdated(const struct contender *k)
{
	const struct claim *c = k->ticket.us ? ticket_waiter(k) : NULL;

	return c && !(ticket_suits(k, c) && ticket_matches(k, c));
}

/*
 * The ticket is the moment when the first waiter asked: the longest wait is first, on whatever host, and a priority counts as waiting. A request that does
 * not wait may precede that waiter. The round for that request still shows the waiter's ticket, or nobody would wake this daemon.
 */
void ticket_take(struct engine *e, struct contender *k)
{
	const struct claim *c;

	if (!e->core->conf.shared || !k->patient)
		return;
	c = ticket_waiter(k);
	if (k->ticket.us && ticket_suits(k, c) && ticket_matches(k, c) && !ticket_is_ahead(e, k))
		return;
	ticket_withdraw(e, k);
	if (!k->ticket.us || !ticket_suits(k, c) || !ticket_matches(k, c)) {
		k->ticket_since = c->asking->asked_at;
		k->ticket_priority = c->priority;
	}
	ticket_begin(e, k, c);
}

struct span ticket_text(const struct engine *e, const struct contender *k)
{
	return k->ticket.us ? stamp_in_text(e->core, &k->ticket) : SPAN("");
}

bool ticket_is_unseen(const struct engine *e, const struct contender *k)
{
	return e->core->conf.shared && k->patient && (nodeset_count(k->ticket_at) < engine_quorum(e) || ticket_is_outdated(k));
}

/* The stores where a later round queued this ticket again. */
static struct nodeset ticket_is_wanted(const struct release *r)
{
	const struct contender *k = contender_of_name(r->calls.name);

	return stamp_equal(&k->ticket, &r->ticket) ? k->ticket_at : NODESET_NONE;
}

/*
 * Nobody waits for the answers. A busy store gets the withdrawal a little later, while it may have the ticket, since the ticket excludes others. When the
 * daemon stops, there is no later: busy stores get it, too.
 */
void ticket_send(struct engine *e, struct release *r)
{
	struct nodeset nodes = NODESET_NONE;
	struct span text = SPAN("");

	if (instant_before(e->core->now, r->until))
		nodes = nodeset_without(r->unsent, ticket_is_wanted(r));
	r->unsent = NODESET_NONE;
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (!nodeset_has(nodes, i) || !m->connected)
			continue;
		if (flow_is_overdrawn(&m->flow) && !e->stopping) {
			nodeset_add(&r->unsent, i);
			continue;
		}
		text = text.n > 0 ? text : release_text(&e->releases, r);
		release_send_to(&e->releases, r, i, text);
	}
	if (nodeset_any(r->unsent))
		heap_set(&e->core->timers, &r->timer, release_retry_at(e));
	else
		retire_release(e, r);
}

void ticket_withdraw_at(struct engine *e, struct name *name, const struct stamp *ticket, struct nodeset nodes)
{
	struct release *r;

	if (!ticket->us || !nodeset_any(nodes))
		return;
	r = release_new(&e->releases, RELEASE_TICKET, name);
	r->unsent = nodes;
	r->until = instant_add(e->core->now, e->core->conf.timeout_us + TICKET_US); /* an ACQUIRE may be carried out that late, and queue it again */
	r->ticket = *ticket;
	if (e->stopping || !release_waits(e, r))
		ticket_send(e, r);
}

void ticket_hurry_all(struct engine *e)
{
	for (uint32_t i = 0; i < e->calls.slots; i++) {
		struct calls *c = e->calls.slot[i];
		struct release *r;

		if (!c || c->owner != CALLS_OF_RELEASE || !nodeset_any(release_of_calls(c)->unsent))
			continue;
		r = release_of_calls(c);
		release_waits_no_more(e, r);
		ticket_send(e, r);
	}
}

/* Removes the ticket from the queues; the name keeps it for later. */
static void ticket_withdraw(struct engine *e, struct contender *k)
{
	struct nodeset nodes = k->ticket_at;

	k->ticket_at = NODESET_NONE;
	ticket_withdraw_at(e, k->name, &k->ticket, nodes);
}

/* The ticket is over. The stores that granted removed it themselves; it is withdrawn from the others. */
void ticket_spend(struct engine *e, struct contender *k, struct nodeset granted)
{
	k->ticket_at = nodeset_without(k->ticket_at, granted);
	ticket_withdraw(e, k);
	k->ticket.us = 0;
}

void ticket_end(struct engine *e, struct contender *k)
{
	if (k->ticket.us && !k->ticket_returns)
		ticket_spend(e, k, NODESET_NONE);
}

#define POLL_US SEC /* a ticket that renewals show lasts for TICKET_US, and messages may be lost */

void shared_lease_ask_again(struct engine *e, struct lease *x, struct instant at)
{
	if (x->state != LEASE_HELD)
		return;
	if (!instant_before(at, x->renew_at))
		return;
	x->renew_at = at;
	lease_schedule(e, x);
}

void shared_lease_begin(struct round *r)
{
	struct lease *x = r->lease;

	if (!lock_of_lease(x)->share)
		return;
	x->shared = true;
	r->form = FORM_SHARED;
}

void shared_lease_open(struct engine *e, struct lock *l)
{
	if (l->lease.shared)
		return;
	shared_lease_ask_again(e, &l->lease, e->core->now);
}

void shared_lease_refused(struct engine *e, struct lock *l)
{
	if (l->lease.shared && l->share && l->contender->want_since.us)
		shared_lease_ask_again(e, &l->lease, instant_max(e->core->now, instant_add(l->share->want_at, POLL_US)));
}

/* Somebody waits here for an exclusive hold of what readers share, or of what a reader that is gone may rely on. */
static bool shared_lease_has_writer(const struct lock *l)
{
	return l->contender->writers > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_CLOSING) && l->lease.shared;
}

void shared_lease_line_up(struct engine *e, struct lock *l)
{
	struct contender *k = l->contender;

	if (k->state != CONTENDER_IDLE)
		return;
	if (!shared_lease_has_writer(l)) {
		ticket_end(e, k);
	} else if (e->core->conf.shared && (!k->ticket.us || ticket_is_outdated(k))) {
		shared_lease_ask_again(e, &l->lease, e->core->now);
	}
	if (k->patient && e->core->conf.shared) /* the memory store has one daemon */
		shared_lease_ask_again(e, &l->lease, instant_add(e->core->now, POLL_US));
}

struct span shared_lease_ticket(struct engine *e, const struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);

	if (r->form == FORM_ALONE || !shared_lease_has_writer(l))
		return SPAN("");
	ticket_take(e, l->contender);
	return ticket_text(e, l->contender);
}

void shared_lease_show(struct engine *e, struct lease *x, struct call *call, struct span ticket)
{
	(void)e;
	call->ticket = ticket;
	call->ticket_ms = TICKET_US / MSEC;
	nodeset_add(&lock_of_lease(x)->contender->ticket_at, call->node);
}

#define HURRY_APART_US (5 * MSEC) /* claims that are due within this time are answered in one pass over the waiters */
#define ANSWERED_AT_ONCE 768     /* claims of one name in a step, so that nothing else waits for a crowd */
#define ANSWERED_A_GROUP 16      /* a part counts as so many: its group may give back 63 other names in the same step */

void wait_leave(struct engine *e, struct claim *c)
{
	metric_add(&e->core->metrics, METRIC_WAITERS, -claim_queues(c));
	heap_cancel(&e->core->timers, &c->timer);
	contender_dequeue(contender_of_claim(c), c);
}

/* Nobody here waits any more: the ticket is withdrawn, and the name asks for nothing. */
static void wait_over(struct engine *e, struct contender *k, enum cause why)
{
	ticket_end(e, k);
	if (k->state != CONTENDER_IDLE)
		contender_move(e, k, CONTENDER_IDLE, why);
}

/* The place ends with the last waiter, even if a round that has shown it is under way: a later waiter must not get a place from before it came. */
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

/* Removes the claim, with an answer. A claim that waited is answered TIMEOUT where others are answered BUSY. */
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
		return UINT_MAX; /* in the last step nothing waits */
	return core_portion(e->core, ANSWERED_AT_ONCE);
}

bool wait_refuse_part(struct engine *e, struct contender *k, enum refusal why, enum waiters_part part)
{
	unsigned left = part == WAITERS_ALL ? UINT_MAX : contender_hurried(k), most = answered_at_once(e), done = 0;
	struct claim *c, *next;

	for (c = TAILQ_FIRST(&k->waiters); c && left > 0; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		left -= !c->patient || c->overdue;
		if (!waiters_include(c, part, e->core->now))
			continue;
		if (done >= most)
			return false;
		done += c->let_in ? ANSWERED_A_GROUP : 1;
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

	/* From the end, where most of the new waiters are. */
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

/* A round under way may still grant the lock, or show who holds it: it decides, within the timeout of a command. */
void wait_fired(struct engine *e, struct claim *c)
{
	struct contender *k = contender_of_claim(c);

	if (k->state == CONTENDER_ACQUIRING && !k->elsewhere.known)
		contender_set_overdue(k, c, true);
	else if (c->patient)
		wait_refuse(e, c, waiters_timeout_why(k));
	/* Otherwise it waited for an adoption, which is over: the next round answers it. */
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
	ticket_withdraw(e, k); /* without a quorum the ticket would only exclude others */
}
