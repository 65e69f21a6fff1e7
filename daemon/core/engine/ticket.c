/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting across hosts. Each daemon has one ticket per name in the queues of the stores, and orders its own waiters. It takes the ticket from their clock,
 * so all stores have the same order. The ticket does not change unless that clock is set back, or was not well known, or priorities make another waiter the
 * first. The stores wake the daemon of the first ticket when the lock is freed, and tell the holder's daemon that the lock is wanted. Both messages may be
 * lost, so timers stand behind them.
 * See ALGORITHMS.md, Tickets.
 */
#include "daemon/core/engine/ticket.h"

#include "daemon/core/engine/admission_wait.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/engine/release.h"

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
 * The clocks of the stores were set back since the ticket was taken: until they have caught up, all new tickets would be older. A step that is no larger than
 * the clocks may differ does not count, since the Q-th may be another store now; nor does drift, nor that answers which lay unread tell little of a clock.
 */
static bool ticket_is_ahead(const struct engine *e, const struct contender *k)
{
	int64_t slack = 2 * e->core->conf.clock_tol_us + AHEAD_LEAST_US + drift_us(instant_diff(e->core->now, k->ticket_since));

	return members_clock_most_us(&e->members, k->ticket_since) - k->ticket_priority * PRIORITY_US + slack < k->ticket.us;
}

/* A ticket of a reader tells where the first writer behind it stands: readers elsewhere that came later are not to pass that writer. */
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
 * The ticket of a waiter that has left serves the next one, unless its priority was higher: that would put a place before others which nobody has asked for.
 * A waiter of a higher priority may have come since, and stands before that ticket.
 */
static bool ticket_suits(const struct contender *k, const struct claim *c)
{
	int64_t later_us = instant_diff(c->asking->asked_at, k->ticket_since);

	return c->priority >= k->ticket_priority && later_us >= (c->priority - k->ticket_priority) * PRIORITY_US;
}

/* It tells what this waiter is, and whether a writer stands behind a reader. */
static bool ticket_tells(const struct contender *k, const struct claim *c)
{
	return k->ticket.kind == ticket_kind(c) && (!c->shared || !k->ticket.writer_us == !ticket_writer(k));
}

bool ticket_is_outdated(const struct contender *k)
{
	const struct claim *c = k->ticket.us ? ticket_waiter(k) : NULL;

	return c && !(ticket_suits(k, c) && ticket_tells(k, c));
}

/*
 * The ticket is the moment when the first waiter asked: the longest wait is first, on whatever host, where a priority counts as waiting. A request that does
 * not wait may stand before that waiter. The round for that request shows the waiter's ticket all the same, or nobody would wake this daemon.
 */
void ticket_take(struct engine *e, struct contender *k)
{
	const struct claim *c;

	if (!e->core->conf.shared || !k->patient)
		return;
	c = ticket_waiter(k);
	if (k->ticket.us && ticket_suits(k, c) && ticket_tells(k, c) && !ticket_is_ahead(e, k))
		return;
	ticket_withdraw(e, k);
	if (!k->ticket.us || !ticket_suits(k, c) || !ticket_tells(k, c)) {
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
 * Nobody waits for the answers. A busy store is told a little later, as long as the ticket may stand there, since the ticket keeps others out. When the daemon
 * stops, there is no later: it tells busy stores, too.
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

void ticket_withdraw(struct engine *e, struct contender *k)
{
	struct nodeset nodes = k->ticket_at;

	k->ticket_at = NODESET_NONE;
	ticket_withdraw_at(e, k->name, &k->ticket, nodes);
}

/* The ticket is over. The stores that granted took it out themselves; the others are told. */
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
