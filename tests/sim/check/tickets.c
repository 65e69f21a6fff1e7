/* SPDX-License-Identifier: BSD-2-Clause */
/* The tickets by which daemons queue for a name: what each shows to the nodes, how long it keeps it, and that it withdraws (S20, L3). */
#include "tests/sim/world/world.h"

#define RESERVE_MS     20            /* nodes are asked to keep a free lock at least so long for the first in the queue */
#define WITHDRAWN_US SEC           /* a daemon without waiters withdraws within this time */
#define LEVEL_US     (60 * SEC)      /* of priority */
#define CLOCK_US     (3 * SEC)     /* how far a ticket may be off: the daemon knows the stores' clocks from its last answers */
#define AHEAD_US     (500 * MSEC)  /* a ticket that is later than its waiter by more was made just after a stop */

void ticket_set(struct ticket *t, struct span ticket)
{
	t->n = ticket.n < sizeof(t->text) ? ticket.n : sizeof(t->text);
	memcpy(t->text, ticket.p, t->n);
}

bool ticket_is(const struct ticket *t, struct span ticket)
{
	return span_equal(ticket, (struct span){t->text, t->n});
}

static struct ticket *ticket_of(struct sim_daemon *d, int64_t name)
{
	return &d->world->checker.ticket[d->index][name];
}

/* Every LOCK that has begun there waits, and no session without a connection does. */
static bool all_wait(struct sim_daemon *d, int64_t name)
{
	const struct requests *waiters = &d->world->checker.waiters[d->index][name];
	const struct request_sim *q;

	if (d->world->checker.detached_until[d->index][name] > d->world->now)
		return false;
	TAILQ_FOREACH(q, waiters, in_waiters)
	{
		if (q->wait_ms == 0 || q->conn->going || running_awaits(q))
			return false;
	}
	return !TAILQ_EMPTY(waiters);
}

/* Some waiter began before that step. A request is read in the step after the one in which it began, and a timer of that step runs before it is read. */
static bool one_waits_since(struct sim_daemon *d, int64_t name, uint64_t step)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &d->world->checker.waiters[d->index][name], in_waiters)
	{
		if (q->wait_ms != 0 && !q->conn->going && !running_awaits(q) && q->begun_step + 1 < step)
			return true;
	}
	return false;
}

void tickets_run_begins(struct sim_daemon *d)
{
	memset(d->world->checker.ticket[d->index], 0, sizeof(d->world->checker.ticket[d->index]));
}

int64_t ticket_us(struct span ticket)
{
	int64_t us = 0;

	for (size_t i = 0; i < 16 && i < ticket.n; i++)
		us = us * 10 + (ticket.p[i] - '0');
	return us;
}

static int64_t latest_wall(const struct sim_daemon *d)
{
	int64_t last = 0;

	for (unsigned i = 0; i < d->conf.nodes; i++)
		last = later(last, server_wall(&d->world->server[d->server_of[i]]));
	return last;
}

static int64_t most_urgent(struct sim_daemon *d, int64_t name)
{
	const struct request_sim *q;
	int64_t priority = 0;

	TAILQ_FOREACH(q, &d->world->checker.waiters[d->index][name], in_waiters)
	{
		if (q->wait_ms != 0 && q->priority > priority)
			priority = q->priority;
	}
	return priority;
}

int64_t ticket_place(const struct request_sim *q)
{
	bool waits = q->wait_ms != 0 && !q->conn->going && !q->conn->taken && !resumed_is_behind(q) && !running_awaits(q);

	return waits && q->begun_step + 1 < q->conn->world->checker.step ? q->begun_at - q->priority * LEVEL_US : INT64_MAX;
}

/* The place of the first waiter. The ticket may be no later. INT64_MAX: there is none. */
static int64_t latest_place(struct sim_daemon *d, int64_t name)
{
	const struct world *w = d->world;
	const struct request_sim *q;
	int64_t latest = INT64_MAX;

	TAILQ_FOREACH(q, &w->checker.waiters[d->index][name], in_waiters)
	{
		int64_t place = ticket_place(q);

		latest = place < latest ? place : latest;
	}
	return latest;
}

/*
 * The first 16 digits of a ticket say when somebody began to wait, by the clocks of the stores. The daemon knows those clocks from its last answers, and a slow
 * answer tells little; it measures how long ago that was by its own clock, which drifts against theirs.
 */
static void ticket_check(struct sim_daemon *d, const struct call *call, int64_t name)
{
	const struct world *w = d->world;
	int64_t us = ticket_us(call->ticket), first = INT64_MAX, last = latest_wall(d), since = ticket_of(d, name)->waits_since, waited = w->now - since;
	int64_t most = later(most_urgent(d, name), ticket_of(d, name)->priority);
	int64_t slack = CLOCK_US + d->stopped_us / 100;

	if (since == 0 || w->checker.detached_until[d->index][name] > since)
		return;
	for (unsigned i = 0; i < d->conf.nodes; i++) {
		int64_t wall = server_wall(&w->server[d->server_of[i]]);

		first = wall < first ? wall : first;
	}
	if (us > last + slack || us < first - most * LEVEL_US - waited - waited / 100 - slack)
		checker_fail(d->world, INVARIANT_S20, name,
			     "%s: daemon %u waits since %lld us, with a priority of at most %lld, but its ticket is of %lld, while the stores show %lld",
			     name_of(name), d->index, (long long)since, (long long)most, (long long)us, (long long)last);
}

void ticket_check_place(struct sim_daemon *d, int64_t shown_us, int64_t place, int64_t name, const char *word)
{
	int64_t waited = d->world->now - place, last = latest_wall(d);

	if (shown_us && place < INT64_MAX && shown_us > last - waited + waited / 50 + CLOCK_US + d->stopped_us / 100)
		checker_fail(d->world, INVARIANT_S20, name,
			     "%s: daemon %u has a waiter whose place is that of %lld us, but its ticket is of %lld, while the stores show %lld", word,
			     d->index, (long long)place, (long long)shown_us, (long long)last);
}

/* Just after a long stop a daemon knows the clocks of the stores badly: it corrects a ticket that is later than its waiter. */
static bool ticket_is_ahead(const struct sim_daemon *d, const struct ticket *t)
{
	return d->stopped_us > 0 && ticket_us((struct span){t->text, t->n}) > latest_wall(d) - (d->world->now - t->waits_since) + AHEAD_US;
}

/*
 * With priorities a daemon may show one ticket after the other: ticket_check() compares each with those who wait. The last ticket may have been that of a
 * session without a connection: without a priority it would be of a moment since somebody waits, and with one it is of a minute before now, or of more.
 */
static bool priorities_count(struct sim_daemon *d, const struct ticket *t, int64_t name)
{
	int64_t waited = t->waits_since ? d->world->now - t->waits_since : 0;

	return t->ranked || t->priority > 0 || most_urgent(d, name) > 0 ||
	       ticket_us((struct span){t->text, t->n}) < latest_wall(d) - waited - waited / 50 - later(0, LEVEL_US - waited) / 2;
}

/* Where a step has time for one piece of work, a request may be served after those before it have left: its ticket is new, and of the moment when it came. */
static bool is_of_the_first(struct sim_daemon *d, const struct call *call, int64_t name)
{
	int64_t place = latest_place(d, name), waited = d->world->now - place;

	return d->world->plan->slices && place < INT64_MAX && ticket_us(call->ticket) <= latest_wall(d) - waited + waited / 50 + 10 * MSEC;
}

/* A daemon with waiters shows its ticket in every request, and the same one as long as they wait. Alone at its own store it needs none. */
void tickets_call(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct ticket *t = ticket_of(d, name);

	if (call->ticket.n == 0) {
		if (!d->store && (all_wait(d, name) || one_waits_since(d, name, d->world->checker.step)))
			checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u shows no ticket, though it has waiters",
				     name_of(name), d->index);
		return;
	}
	if (call->reserve_ms < RESERVE_MS)
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u asks nodes to keep a free lock for only %lld ms", name_of(name),
			     d->index, (long long)call->reserve_ms);
	t->nodes |= (uint16_t)(1u << call->node);
	t->shown_at[call->node] = d->world->now;
	t->empty_since = 0;
	t->shown_us = ticket_us(call->ticket);
	if (priorities_count(d, t, name))
		ticket_check(d, call, name);
	if (ticket_is(t, call->ticket)) {
		t->spent = false;
		return;
	}
	if (t->n > 0 && !t->spent && !ticket_is_ahead(d, t) && one_waits_since(d, name, t->step) && !priorities_count(d, t, name) &&
	    !is_of_the_first(d, call, name))
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u shows the ticket %.*s, but its waiters have %.*s",
			     name_of(name), d->index, (int)call->ticket.n, call->ticket.p, (int)t->n, t->text);
	ticket_check(d, call, name);
	ticket_set(t, call->ticket);
	t->step = d->world->checker.step;
	t->spent = t->ranked = false;
}

void tickets_granted(struct sim_daemon *d, int64_t name, unsigned node)
{
	ticket_of(d, name)->spent = true;
	ticket_of(d, name)->nodes &= (uint16_t)~(1u << node);
}

/* The daemon won the name. A busy node may have been asked only in the step of the answer that decided. */
void tickets_won(struct sim_daemon *d, int64_t name)
{
	ticket_of(d, name)->spent = true;
}

void tickets_withdrawn(struct sim_daemon *d, const struct call *call, int64_t name)
{
	ticket_of(d, name)->nodes &= (uint16_t)~(1u << call->node);
}

/* The daemon lost its connection to the node, or finds none after a restart, and does not withdraw later: the place expires. */
void tickets_unlinked(struct sim_daemon *d, unsigned node)
{
	for (int64_t name = 0; name < d->world->plan->names; name++)
		ticket_of(d, name)->nodes &= (uint16_t)~(1u << node);
}

/* The place has expired. */
static bool place_is_over(const struct sim_daemon *d, const struct ticket *t, unsigned node)
{
	return d->world->now - t->shown_at[node] > TICKET_MS * MSEC + d->conf.timeout_us;
}

/* True time since when the daemon can withdraw from this node: it sends no more calls to a node whose answers are overdue. */
static int64_t reachable_since(const struct sim_daemon *d, const struct ticket *t, unsigned node)
{
	int64_t prompt = link_prompt_since(&d->link[node]);

	return prompt > t->empty_since ? prompt : t->empty_since;
}

/* L3: a daemon without waiters withdraws from the queue, at once or when its round ends: soon, if it can reach the node. */
static void empty_check(struct sim_daemon *d, int64_t name, struct ticket *t)
{
	const struct world *w = d->world;

	if (t->empty_since == 0)
		t->empty_since = w->now;
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if ((t->nodes >> i & 1) && !place_is_over(d, t, i) && w->now - WITHDRAWN_US - 2 * d->conf.timeout_us > reachable_since(d, t, i))
			checker_fail(d->world, INVARIANT_L3, name, "%s: daemon %u has no waiters since %lld us, but is still queued at node %u",
				     name_of(name), d->index, (long long)t->empty_since, i);
}

/* After each step of the daemon. */
void tickets_step(struct sim_daemon *d)
{
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		struct ticket *t = ticket_of(d, name);

		ticket_check_place(d, t->shown_us, latest_place(d, name), name, name_of(name));
		t->shown_us = 0;
		t->priority = most_urgent(d, name);
		t->ranked |= t->priority > 0;
		if (TAILQ_EMPTY(&d->world->checker.waiters[d->index][name]))
			t->waits_since = 0;
		else if (t->waits_since == 0)
			t->waits_since = d->world->now;
		if (t->nodes && TAILQ_EMPTY(&d->world->checker.waiters[d->index][name]) &&
		    d->world->checker.detached_until[d->index][name] <= d->world->now)
			empty_check(d, name, t);
		else
			t->empty_since = 0;
	}
}

/* While the daemon stood still it could not withdraw. */
void tickets_thawed(struct sim_daemon *d)
{
	for (int64_t name = 0; name < d->world->plan->names; name++)
		ticket_of(d, name)->empty_since = 0;
}
