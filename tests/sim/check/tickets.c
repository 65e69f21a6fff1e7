/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How daemons wait for each other (S20): the tickets that they show, the places that they have in the queue of each node, how long a node keeps a free key for
 * an older ticket, and which leases they may hand over.
 */
#include "tests/sim/world/world.h"

#define TICKET_MS    3000 /* a queue place lasts so long */
#define GRACE_MS     20   /* a node keeps a free lock at least so long for the first in its queue */
#define HANDOFF_US   (100 * MSEC)
#define HANDOFFS     64
#define WITHDRAWN_US SEC
#define HANDOFF_LEFT (50 * MSEC)
#define CLOCK_US     (3 * SEC)
#define AHEAD_US     (500 * MSEC)

static struct ticket *ticket_of(struct sim_daemon *d, int64_t name)
{
	return &d->world->checker.ticket[d->index][name];
}

static void text_keep(struct ticket *t, struct span ticket)
{
	t->n = ticket.n < sizeof(t->text) ? ticket.n : sizeof(t->text);
	memcpy(t->text, ticket.p, t->n);
}

static bool text_is(const struct ticket *t, struct span ticket)
{
	return span_equal(ticket, (struct span){t->text, t->n});
}

/* --- tickets --------------------------------------------------------------------------------------------------------- */

/* The daemon has waiters for the name, and nobody else. */
static bool all_wait(struct sim_daemon *d, int64_t name)
{
	const struct requests *waiters = &d->world->checker.waiters[d->index][name];
	const struct request_sim *q;

	if (d->world->checker.detached_until[d->index][name] > d->world->now)
		return false;
	TAILQ_FOREACH(q, waiters, in_waiters)
	{
		if (q->wait_ms == 0 || q->conn->going || track_awaits(q))
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
		if (q->wait_ms != 0 && !q->conn->going && !track_awaits(q) && q->begun_step + 1 < step)
			return true;
	}
	return false;
}

void tickets_run_begins(struct sim_daemon *d)
{
	memset(d->world->checker.ticket[d->index], 0, sizeof(d->world->checker.ticket[d->index]));
}

static int64_t ticket_us(struct span ticket)
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
		last = later(last, server_wall(&d->world->server[i]));
	return last;
}

/*
 * The first 16 digits of a ticket say when somebody began to wait, by the clocks of the stores. The daemon knows those clocks from its last answers, and a slow
 * answer tells little; it measures how long ago that was by its own clock, which drifts against theirs.
 */
static void ticket_check(struct sim_daemon *d, const struct call *call, int64_t name)
{
	const struct world *w = d->world;
	int64_t us = ticket_us(call->ticket), first = INT64_MAX, last = latest_wall(d), since = ticket_of(d, name)->waits_since, waited = w->now - since;
	int64_t slack = CLOCK_US + d->stopped_us / 100;

	if (since == 0 || w->checker.detached_until[d->index][name] > since)
		return;
	for (unsigned i = 0; i < d->conf.nodes; i++) {
		int64_t wall = server_wall(&w->server[i]);

		first = wall < first ? wall : first;
	}
	if (us > last + slack || us < first - waited - waited / 100 - slack)
		checker_fail(d->world, INVARIANT_S20, name,
			     "%s: daemon %u waits since %lld us, but its ticket is of %lld, while the stores show %lld", name_of(name),
			     d->index, (long long)since, (long long)us, (long long)last);
}

/* Just after a long stop a daemon knows the clocks of the stores badly: it corrects a ticket that is later than its waiter. */
static bool ticket_is_ahead(const struct sim_daemon *d, const struct ticket *t)
{
	return d->stopped_us > 0 && ticket_us((struct span){t->text, t->n}) > latest_wall(d) - (d->world->now - t->waits_since) + AHEAD_US;
}

/* A daemon with waiters shows its ticket in every request, and the same one as long as they wait. */
void tickets_call(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct ticket *t = ticket_of(d, name);

	if (call->ticket.n == 0) {
		if (all_wait(d, name) || one_waits_since(d, name, d->world->checker.step))
			checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u shows no ticket, though it has waiters",
				     name_of(name), d->index);
		return;
	}
	if (call->grace_ms < GRACE_MS)
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u asks nodes to keep a free lock for only %lld ms", name_of(name),
			     d->index, (long long)call->grace_ms);
	t->nodes |= (uint16_t)(1u << call->node);
	t->shown_at[call->node] = d->world->now;
	t->empty_since = 0;
	if (text_is(t, call->ticket)) {
		t->spent = false;
		return;
	}
	if (t->n > 0 && !t->spent && !ticket_is_ahead(d, t) && one_waits_since(d, name, t->step))
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u shows the ticket %.*s, but its waiters have %.*s",
			     name_of(name), d->index, (int)call->ticket.n, call->ticket.p, (int)t->n, t->text);
	ticket_check(d, call, name);
	text_keep(t, call->ticket);
	t->step = d->world->checker.step;
	t->spent = false;
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

/* The daemon lost its connection to the node and does not withdraw later: the place expires. */
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
	for (unsigned i = 0; i < d->conf.nodes; i++)
		if ((t->nodes >> i & 1) && !place_is_over(d, t, i) && w->now - WITHDRAWN_US - 2 * d->conf.timeout_us > reachable_since(d, t, i))
			checker_fail(d->world, INVARIANT_L3, name, "%s: daemon %u has no waiters since %lld us, but is still queued at node %u",
				     name_of(name), d->index, (long long)t->empty_since, i);
}

/* After each step of the daemon. */
void tickets_step(struct sim_daemon *d)
{
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		struct ticket *t = ticket_of(d, name);

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

/* --- queue places at the nodes ---------------------------------------------------------------------------------------- */

static int64_t wall_ms(const struct server *s)
{
	return server_wall(s) / MSEC;
}

void places_lost(struct server *s)
{
	memset(s->world->checker.place[s->index], 0, sizeof(s->world->checker.place[s->index]));
}

/* Tickets compare as strings; "" comes after all others. */
static bool comes_before(const struct place *p, struct span ticket)
{
	size_t n = p->ticket.n < ticket.n ? p->ticket.n : ticket.n;
	int order = memcmp(p->ticket.text, ticket.n ? ticket.p : "", n);

	return ticket.n == 0 || order < 0 || (order == 0 && p->ticket.n < ticket.n);
}

/*
 * S20: a node passes over an older place only when the key was free for the whole grace and that daemon did not ask for it. A daemon whose key already stands
 * there takes it from nobody: a renewal of a newer connection put it back before this call of an older one arrived.
 */
static void passing_check(struct server *s, const struct flight *f, const struct call *call, int64_t name)
{
	struct world *w = s->world;

	for (unsigned d = 0; d < w->plan->daemons && s->taken[name]; d++) {
		const struct place *p = &w->checker.place[s->index][d][name];

		if (d == f->daemon->index || p->until_ms <= wall_ms(s) + 1 || !comes_before(p, call->ticket) ||
		    (s->unused_ms[name] + 1 >= call->grace_ms && wall_ms(s) - p->asked_ms + 1 >= call->grace_ms))
			continue;
		checker_fail(w, INVARIANT_S20, name, "%s: node %u, free for %lld ms, grants daemon %u before the older ticket %.*s, which asked %lld ms ago",
			     name_of(name), s->index, (long long)s->unused_ms[name], f->daemon->index, (int)p->ticket.n,
			     p->ticket.text, (long long)(wall_ms(s) - p->asked_ms));
	}
}

static void key_note(struct server *s, int64_t name)
{
	struct span value;
	int64_t expires;

	if (!sim_node_get(s->node, name_span(name), server_wall(s), &value, &expires)) {
		if (s->free_from_ms[name] > wall_ms(s))
			s->free_from_ms[name] = wall_ms(s);
	} else if (value.n > 0 && memchr(value.p, ':', value.n)) {
		s->free_from_ms[name] = expires ? expires : INT64_MAX;
	}
}

/* A lock key was set or removed. */
void places_key(struct server *s, int64_t name, bool was, bool is)
{
	s->taken[name] |= !was && is;
	if (was && !is && s->free_from_ms[name] > wall_ms(s))
		s->free_from_ms[name] = wall_ms(s);
	if (!was && is)
		s->unused_ms[name] = wall_ms(s) - s->free_from_ms[name];
}

void places_ran(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	const struct answer *a = &f->answer[i];
	int64_t name = name_number(call->name), until;
	struct place *p;

	if (name < 0)
		return;
	p = &s->world->checker.place[s->index][f->daemon->index][name];
	if (call->kind == CALL_ACQUIRE && a->class == ANSWER_EXECUTED && a->code == 'G')
		passing_check(s, f, call, name);
	if (call->kind == CALL_ACQUIRE && (a->code == 'B' || a->code == 'K' || a->code == 'W') && call->ticket.n > 0 &&
	    sim_node_is_well(s->node) && /* else it answers the same, but stores nothing */
	    sim_node_place(s->node, call->name, call->ticket, &until) && until > wall_ms(s)) {
		text_keep(&p->ticket, call->ticket);
		p->asked_ms = wall_ms(s);
		p->until_ms = p->asked_ms + TICKET_MS;
	} else if ((a->code == 'G' || call->kind == CALL_WITHDRAW) && text_is(&p->ticket, call->ticket)) {
		p->until_ms = 0;
	}
	key_note(s, name);
}

/* --- hand-over ------------------------------------------------------------------------------------------------------- */

void handover_wanted(struct sim_daemon *d, struct span text)
{
	int64_t name = name_number(text);
	struct lease *l = name < 0 ? NULL : &d->world->checker.lease[d->index][name];

	if (l && l->held && l->wanted.us == 0)
		l->wanted = daemon_boot(d);
}

/* A lease is handed over only while enough of it is left (S9), and not for long once another daemon is known to want it (S20). */
void handover_granted(struct sim_daemon *d, const struct lease *l, const struct request_sim *q, struct instant deadline)
{
	int64_t left = instant_diff(deadline, daemon_boot(d)), least = q->ttl_ms * MSEC / 10;
	unsigned handoffs = l->grants - 1; /* the first grant came from the stores */

	d->world->tally.handed_on++;
	if (left < (least > HANDOFF_LEFT ? least : HANDOFF_LEFT))
		checker_fail(d->world, INVARIANT_S9, q->name, "%s: daemon %u hands over a lease that lasts only %lld us", name_of(q->name),
			     d->index, (long long)left);
	if (l->wanted.us != 0 && (handoffs > HANDOFFS || instant_diff(daemon_boot(d), l->wanted) >= HANDOFF_US))
		checker_fail(d->world, INVARIANT_S20, q->name,
			     "%s: daemon %u hands over for the %u. time what another daemon wants since %lld us", name_of(q->name), d->index,
			     handoffs, (long long)instant_diff(daemon_boot(d), l->wanted));
}
