/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting across daemons, reckoned a second time (S20): the tickets that daemons show, the places that they have in line at each node, how long a
 * free key was left unused, and what a lease may be handed on to.
 */
#include "tests/sim/world/world.h"

#define TICKET_MS    3000 /* a place in line lasts so long */
#define GRACE_MS     20   /* the least that a free lock is kept for the first in line */
#define HANDOFF_US   (100 * MSEC)
#define HANDOFFS     64
#define WITHDRAWN_US SEC
#define HANDOFF_LEFT (50 * MSEC)
#define CLOCK_US     (3 * SEC)
#define AHEAD_US     (500 * MSEC)

static struct turn *turn_of(struct sim_daemon *d, int64_t name)
{
	return &d->world->checker.turn[d->index][name];
}

static void text_keep(struct turn *t, struct span ticket)
{
	t->n = ticket.n < sizeof(t->text) ? ticket.n : sizeof(t->text);
	memcpy(t->text, ticket.p, t->n);
}

static bool text_is(const struct turn *t, struct span ticket)
{
	return span_equal(ticket, (struct span){t->text, t->n});
}

/* --- tickets --------------------------------------------------------------------------------------------------------- */

/* Everybody in line there waits; some since before that step. */
static bool all_wait(struct sim_daemon *d, int64_t name)
{
	const struct requests *line = &d->world->checker.line[d->index][name];
	const struct request_sim *q;

	if (d->world->checker.orphans_until[d->index][name] > d->world->now)
		return false;
	TAILQ_FOREACH(q, line, in_line)
	{
		if (q->wait_ms == 0 || q->conn->going || ledger_awaits(q))
			return false;
	}
	return !TAILQ_EMPTY(line);
}

/* A request comes with the step after that in which it began, and what falls due in that step is done before it is read. */
static bool one_waits_since(struct sim_daemon *d, int64_t name, uint64_t step)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &d->world->checker.line[d->index][name], in_line)
	{
		if (q->wait_ms != 0 && !q->conn->going && !ledger_awaits(q) && q->begun_step + 1 < step)
			return true;
	}
	return false;
}

void turns_life(struct sim_daemon *d)
{
	memset(d->world->checker.turn[d->index], 0, sizeof(d->world->checker.turn[d->index]));
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
 * Its first 16 digits say when somebody began to wait, by the clocks of the stores. What a daemon knows of those may be as old as it has heard nothing of
 * them, and an answer that was long in coming says little. How long ago it was the daemon tells by its own clock, which drifts against theirs.
 */
static void ticket_look(struct sim_daemon *d, const struct call *call, int64_t name)
{
	const struct world *w = d->world;
	int64_t us = ticket_us(call->ticket), first = INT64_MAX, last = latest_wall(d), since = turn_of(d, name)->waits_since, waited = w->now - since;
	int64_t slack = CLOCK_US + d->stopped_us / 100;

	if (since == 0 || w->checker.orphans_until[d->index][name] > since)
		return;
	for (unsigned i = 0; i < d->conf.nodes; i++) {
		int64_t wall = server_wall(&w->server[i]);

		first = wall < first ? wall : first;
	}
	if (us > last + slack || us < first - waited - waited / 100 - slack)
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u waits since %lld us, and its ticket is of %lld, when it is %lld at the stores", name_of(name),
			     d->index, (long long)since, (long long)us, (long long)last);
}

/* Just after a long stop a daemon does not know the clocks of the stores well: it corrects a ticket that is later than its waiter. */
static bool ticket_is_ahead(const struct sim_daemon *d, const struct turn *t)
{
	return d->stopped_us > 0 && ticket_us((struct span){t->text, t->n}) > latest_wall(d) - (d->world->now - t->waits_since) + AHEAD_US;
}

/* A daemon whose clients wait shows its ticket whenever it asks, and the same one as long as somebody waits. */
void turns_call(struct sim_daemon *d, const struct call *call, int64_t name)
{
	struct turn *t = turn_of(d, name);

	if (call->ticket.n == 0) {
		if (all_wait(d, name) || one_waits_since(d, name, d->world->checker.step))
			checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u asks without a ticket, and somebody waits there",
				     name_of(name), d->index);
		return;
	}
	if (call->grace_ms < GRACE_MS)
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u leaves the first in line %lld ms", name_of(name),
			     d->index, (long long)call->grace_ms);
	t->nodes |= (uint16_t)(1u << call->node);
	t->shown_at[call->node] = d->world->now;
	t->alone_since = 0;
	if (text_is(t, call->ticket)) {
		t->spent = false;
		return;
	}
	if (t->n > 0 && !t->spent && !ticket_is_ahead(d, t) && one_waits_since(d, name, t->step))
		checker_fail(d->world, INVARIANT_S20, name, "%s: daemon %u shows the ticket %.*s, but waits with %.*s",
			     name_of(name), d->index, (int)call->ticket.n, call->ticket.p, (int)t->n, t->text);
	ticket_look(d, call, name);
	text_keep(t, call->ticket);
	t->step = d->world->checker.step;
	t->spent = false;
}

void turns_granted(struct sim_daemon *d, int64_t name, unsigned node)
{
	turn_of(d, name)->spent = true;
	turn_of(d, name)->nodes &= (uint16_t)~(1u << node);
}

/* Its turn has come. A node that was too busy before may have been asked in the very step in which the answer that decided came. */
void turns_won(struct sim_daemon *d, int64_t name)
{
	turn_of(d, name)->spent = true;
}

void turns_withdrawn(struct sim_daemon *d, const struct call *call, int64_t name)
{
	turn_of(d, name)->nodes &= (uint16_t)~(1u << call->node);
}

/* A node that cannot be told is not told later either: the place ends by itself. */
void turns_unlinked(struct sim_daemon *d, unsigned node)
{
	for (int64_t name = 0; name < d->world->plan->names; name++)
		turn_of(d, name)->nodes &= (uint16_t)~(1u << node);
}

/* A place that was last asked for so long ago has ended. */
static bool place_is_over(const struct sim_daemon *d, const struct turn *t, unsigned node)
{
	return d->world->now - t->shown_at[node] > TICKET_MS * MSEC + d->conf.timeout_us;
}

/* The moment from which the daemon can tell this node that it does not wait: one that owes it answers is not asked for more. */
static int64_t told_from(const struct sim_daemon *d, const struct turn *t, unsigned node)
{
	int64_t prompt = link_prompt_since(&d->link[node]);

	return prompt > t->alone_since ? prompt : t->alone_since;
}

/* Where nobody waits any more the place in line is given back, at once or when the round under way is over: before long, where the node can be told. */
static void alone_look(struct sim_daemon *d, int64_t name, struct turn *t)
{
	const struct world *w = d->world;

	if (t->alone_since == 0)
		t->alone_since = w->now;
	for (unsigned i = 0; i < d->conf.nodes; i++)
		if ((t->nodes >> i & 1) && !place_is_over(d, t, i) && w->now - WITHDRAWN_US - 2 * d->conf.timeout_us > told_from(d, t, i))
			checker_fail(d->world, INVARIANT_L3, name, "%s: nobody waits at daemon %u since %lld us, but it stands in line at node %u",
				     name_of(name), d->index, (long long)t->alone_since, i);
}

/* After each step. */
void turns_step(struct sim_daemon *d)
{
	for (int64_t name = 0; name < d->world->plan->names; name++) {
		struct turn *t = turn_of(d, name);

		if (TAILQ_EMPTY(&d->world->checker.line[d->index][name]))
			t->waits_since = 0;
		else if (t->waits_since == 0)
			t->waits_since = d->world->now;
		if (t->nodes && TAILQ_EMPTY(&d->world->checker.line[d->index][name]) &&
		    d->world->checker.orphans_until[d->index][name] <= d->world->now)
			alone_look(d, name, t);
		else
			t->alone_since = 0;
	}
}

/* While it stood still it could tell nobody. */
void turns_thawed(struct sim_daemon *d)
{
	for (int64_t name = 0; name < d->world->plan->names; name++)
		turn_of(d, name)->alone_since = 0;
}

/* --- places in line -------------------------------------------------------------------------------------------------- */

static int64_t wall_ms(const struct server *s)
{
	return server_wall(s) / MSEC;
}

void turns_lost(struct server *s)
{
	memset(s->world->checker.place[s->index], 0, sizeof(s->world->checker.place[s->index]));
}

/* As strings: "" is after all. */
static bool comes_before(const struct place *p, struct span ticket)
{
	size_t n = p->turn.n < ticket.n ? p->turn.n : ticket.n;
	int order = memcmp(p->turn.text, ticket.n ? ticket.p : "", n);

	return ticket.n == 0 || order < 0 || (order == 0 && p->turn.n < ticket.n);
}

/*
 * Who has an older place is passed over only when the key was free for all of the grace, and it did not ask for it. Whose key stands there already takes it
 * from nobody: a renewal of a newer connection has put it back before this call of an older one arrived.
 */
static void passing_look(struct server *s, const struct flight *f, const struct call *call, int64_t name)
{
	struct world *w = s->world;

	for (unsigned d = 0; d < w->plan->daemons && s->taken[name]; d++) {
		const struct place *p = &w->checker.place[s->index][d][name];

		if (d == f->daemon->index || p->until_ms <= wall_ms(s) + 1 || !comes_before(p, call->ticket) ||
		    (s->unused_ms[name] + 1 >= call->grace_ms && wall_ms(s) - p->asked_ms + 1 >= call->grace_ms))
			continue;
		checker_fail(w, INVARIANT_S20, name, "%s: node %u, free for %lld ms, grants daemon %u before %.*s, which is older and asked %lld ms ago",
			     name_of(name), s->index, (long long)s->unused_ms[name], f->daemon->index, (int)p->turn.n,
			     p->turn.text, (long long)(wall_ms(s) - p->asked_ms));
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

/* A key of ours has come or gone. */
void turns_key(struct server *s, int64_t name, bool was, bool is)
{
	s->taken[name] |= !was && is;
	if (was && !is && s->free_from_ms[name] > wall_ms(s))
		s->free_from_ms[name] = wall_ms(s);
	if (!was && is)
		s->unused_ms[name] = wall_ms(s) - s->free_from_ms[name];
}

void turns_ran(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	const struct answer *a = &f->answer[i];
	int64_t name = name_number(call->name), until;
	struct place *p;

	if (name < 0)
		return;
	p = &s->world->checker.place[s->index][f->daemon->index][name];
	if (call->kind == CALL_ACQUIRE && a->class == ANSWER_EXECUTED && a->code == 'G')
		passing_look(s, f, call, name);
	if (call->kind == CALL_ACQUIRE && (a->code == 'B' || a->code == 'K' || a->code == 'W') && call->ticket.n > 0 &&
	    sim_node_is_well(s->node) && /* else it answers as before, but notes nothing */
	    sim_node_place(s->node, call->name, call->ticket, &until) && until > wall_ms(s)) {
		text_keep(&p->turn, call->ticket);
		p->asked_ms = wall_ms(s);
		p->until_ms = p->asked_ms + TICKET_MS;
	} else if ((a->code == 'G' || call->kind == CALL_WITHDRAW) && text_is(&p->turn, call->ticket)) {
		p->until_ms = 0;
	}
	key_note(s, name);
}

/* --- hand-over ------------------------------------------------------------------------------------------------------- */

void turns_wanted(struct sim_daemon *d, struct span text)
{
	int64_t name = name_number(text);
	struct lease *l = name < 0 ? NULL : &d->world->checker.lease[d->index][name];

	if (l && l->held && l->wanted.us == 0)
		l->wanted = daemon_boot(d);
}

/* A lease is handed on only while it is worth having, and not for long once somebody elsewhere is known to want it. */
void turns_handed_on(struct sim_daemon *d, const struct lease *l, const struct request_sim *q, struct instant deadline)
{
	int64_t left = instant_diff(deadline, daemon_boot(d)), least = q->ttl_ms * MSEC / 10;
	unsigned handoffs = l->grants - 1; /* the first was granted by the stores */

	d->world->tally.handed_on++;
	if (left < (least > HANDOFF_LEFT ? least : HANDOFF_LEFT))
		checker_fail(d->world, INVARIANT_S9, q->name, "%s: daemon %u hands on a lease that lasts %lld us", name_of(q->name),
			     d->index, (long long)left);
	if (l->wanted.us != 0 && (handoffs > HANDOFFS || instant_diff(daemon_boot(d), l->wanted) >= HANDOFF_US))
		checker_fail(d->world, INVARIANT_S20, q->name,
			     "%s: daemon %u hands on for the %u. time what another wants since %lld us", name_of(q->name), d->index,
			     handoffs, (long long)instant_diff(daemon_boot(d), l->wanted));
}
