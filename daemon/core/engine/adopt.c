/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adoption: after a restart, the daemon takes over a lock that a session of the previous run held, by a renewal of its value at every store. If a quorum has
 * it, the lock was held without a gap. If so many stores deny it that no quorum is left, or if too few answer in time, the lock is lost. It is not known how
 * much of the lease's range of tokens was used, so the lease is not handed on.
 * See ALGORITHMS.md, Adoption.
 */
#include "daemon/core/engine/holding.h"

#include "daemon/base/mem.h"
#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/lock/lease.h"
#include "daemon/core/round/round.h"

#define PAUSE_LEAST_US (20 * MSEC)

/*
 * Until when the client may rely on the lock, after what was sent to it. The deadline may be later than the ttl from now: it was sent before a renewal for
 * less. The end of a lease that nobody renews is known.
 */
static struct instant relies_until(const struct engine *e, const struct claim *c, const struct prior_lease *from)
{
	struct instant by_ttl = instant_add(e->core->now, from->ttl_us);

	return c->renew ? instant_max(by_ttl, from->deadline) : instant_min(by_ttl, from->deadline);
}

/* Sets the terms of the lease as in the journal, and allows for longer terms that the previous run may have asked for. */
static void adopt_expect_lease(struct engine *e, struct lease *x, const struct claim *c, const struct prior_lease *from, struct instant until)
{
	int64_t ttl_us = from->ttl_us, px_us = ttl_us + c->delay_us;
	int64_t longest_us = (ttl_us > e->core->conf.max_lease_us ? ttl_us : e->core->conf.max_lease_us) + c->delay_us;

	x->renewal->adoption = adoption_new(from->value, e->core->conf.nodes);
	/* Calls of the previous run may still arrive, and set or renew the key, as if this run had sent them before it was connected to any store. */
	x->placed.nodes = nodeset_all(e->core->conf.nodes);
	x->placed.until = instant_max(x->placed.until, instant_add(instant_max(instant_add(e->core->now, longest_us), instant_add(until, c->delay_us)),
	                                                           longest_us + longest_us / 25 + SEC));
	x->renewal->adoption->hopeless = instant_add(e->core->now, px_us + px_us / 50 + SEC);
	x->renewal->adoption->deadline = c->renew ? from->end : instant_min(from->end, from->deadline);
	x->auto_renew = c->renew;
	x->recorded = true;
	x->token = c->token;
	x->token_end = c->token;
	x->token_is_old = true;
	lease_promise(x, ttl_us, from->deadline);
	tokens_saw(&e->tokens, c->token);
}

/* Takes the votes of the previous process, if it has handed them over. */
static void adopt_take_votes(struct engine *e, struct lease *x, const struct prior_lease *from)
{
	if (from->votes.n != e->core->conf.nodes * sizeof(x->votes[0]))
		return;
	memcpy(x->votes, from->votes.p, from->votes.n);
	x->renewal->adoption->vouched = true;
	vote_gaps_handed_over(e, x, from->gaps);
}

/* One more reader of a lease that is to be adopted: each bound is the largest among the readers. */
static void adopt_expect_more(struct engine *e, struct lock *l, struct claim *c, const struct prior_lease *from)
{
	struct lease *x = &l->lease;
	struct adoption *was = x->renewal->adoption;
	int64_t token = x->token;

	adopt_expect_lease(e, x, c, from, relies_until(e, c, from));
	x->renewal->adoption->hopeless = instant_max(x->renewal->adoption->hopeless, was->hopeless);
	x->token = x->token_end = token > c->token ? token : c->token;
	mem_free(was);
	if (c->ttl_us > x->ttl_us)
		x->ttl_us = x->renew_ttl_us = c->ttl_us;
}

static void adopt_expect_first(struct engine *e, struct lock *l, struct claim *c, const struct prior_lease *from)
{
	struct placed nowhere = placed_nowhere(e->core->now);

	(void)lease_renewal(&e->table, &l->lease);
	l->lease.renew_ttl_us = c->ttl_us;
	l->lease.ttl_us = c->renew ? c->ttl_us : from->ttl_us; /* a lease that nobody renews ends as its client knows */
	l->lease.delay_us = c->delay_us;
	lock_begin_lease(l, &(struct lease_value){0}, &nowhere);
	votes_clear(l->lease.votes, e->core->conf.nodes);
	adopt_expect_lease(e, &l->lease, c, from, relies_until(e, c, from));
	adopt_take_votes(e, &l->lease, from);
	lease_move(e, &l->lease, LEASE_ADOPTING, CAUSE_RESTORED);
}

void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from)
{
	struct lock *l = lock_find_or_add_text(&e->table, from->name);
	struct instant ghost;

	if (l->holder)
		adopt_expect_more(e, l, c, from);
	else
		adopt_expect_first(e, l, c, from);
	c->lock = l;
	c->relied_until = instant_add(relies_until(e, c, from), drift_us(from->ttl_us));
	lock_add_holder(&e->table, l, c);
	if (!l->share)
		return;
	lock_order_reader(l, c);
	/* Readers without grace have no record. They may rely on the lock for as long as on a renewed lease, whatever the readers with grace rely on. */
	ghost = instant_max(instant_add(e->core->now, from->ttl_us), from->deadline);
	l->share->ghost_until = instant_max(l->share->ghost_until, instant_add(ghost, drift_us(from->ttl_us)));
}

void adopt_start(struct engine *e, struct lease *x)
{
	struct adoption *h = x->renewal->adoption;

	if (!value_read(e->core, (struct span){h->value, h->n}, &x->value))
		h->hopeless = e->core->now;
	heap_set(&e->core->timers, &x->timer, e->core->now);
}

void adopt_drop(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (c->state == CLAIM_LOST) {
		hold_forget(e, c);
		return;
	}
	lock_remove_holder(l, c);
	if (!l->holder) {
		lock_end_share(&e->table, l);
		adoption_over(&l->lease);
		lease_move(e, &l->lease, LEASE_NONE, CAUSE_SUPERSEDED);
	}
	claim_free(&e->table, c);
	lock_drop_if_unused(&e->table, l);
}

static void adopt_close(struct engine *e, struct lease *x)
{
	struct round *r = x->renewal->round;

	if (!r)
		return;
	x->renewal->round = NULL;
	r->decided = true;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

static enum adopt_outcome adopt_fail(struct engine *e, struct lease *x, enum adopt_outcome why)
{
	metric_add(&e->core->metrics, METRIC_ADOPTIONS_FAILED, 1);
	adopt_close(e, x);
	return why;
}

static enum adopt_outcome adopt_win(struct engine *e, struct lease *x)
{
	metric_add(&e->core->metrics, METRIC_ADOPTIONS, 1);
	adopt_close(e, x);
	return ADOPT_WON;
}

static void adopt_pause(struct engine *e, struct lease *x)
{
	int64_t pause = x->ttl_us / 20;

	adopt_close(e, x);
	pause = pause < PAUSE_LEAST_US ? PAUSE_LEAST_US : pause;
	heap_set(&e->core->timers, &x->timer, instant_min(instant_add(e->core->now, pause), adoption_end(x)));
}

static void adopt_ask(struct engine *e, struct round *r, unsigned node, struct span value)
{
	struct lease *x = r->lease;

	/* For a lease that nobody renews each round asks for less time. That counts as soon as the store may have set it. */
	x->votes[node] = instant_min(x->votes[node], vote_until(e->core->now, r->ttl_us));
	(void)ask_extend(&e->calls, r, node, value, x->token_end, INSTANT_PAST);
	nodeset_add(&x->placed.unanswered, node);
	nodeset_add(&x->placed.renewal_sent, node);
}

static struct nodeset adopt_whom_to_ask(const struct engine *e, const struct lease *x)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (member_usable(&e->members.node[i]) && !flow_is_overdrawn(&e->members.node[i].flow))
			nodeset_add(&nodes, i);
	nodes = nodeset_without(nodeset_and(nodes, x->renewal->adoption->left), x->placed.unanswered);
	return x->renewal->round ? nodeset_without(nodes, x->renewal->round->calls.asked) : nodes;
}

static void adopt_begin(struct engine *e, struct lease *x)
{
	struct round *r = round_new(&e->rounds, QUESTION_ADOPT, x->name, x);

	x->renewal->round = r;
	shared_lease_begin(r);
	if (!x->auto_renew)
		r->ttl_us = adoption_rest_us(x, e->core->now);
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* Asks all stores that can be asked and were not, in this round or a new one. A store that joins meanwhile is asked as well. */
void adopt_go_on(struct engine *e, struct lease *x)
{
	struct nodeset nodes = adopt_whom_to_ask(e, x);
	struct span value;

	heap_set(&e->core->timers, &x->timer, adoption_end(x)); /* or when a node is back */
	if (members_usable(&e->members) < engine_quorum(e))
		return;
	if (!nodeset_any(nodes)) {
		if (!x->renewal->round)
			adopt_pause(e, x);
		return;
	}
	if (!x->renewal->round)
		adopt_begin(e, x);
	value = value_in_text(e->core, &x->value);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			adopt_ask(e, x->renewal->round, i, value);
}

/* A lease whose votes were handed over goes on at once: no store is asked before its next renewal. */
enum adopt_outcome adopt_fired(struct engine *e, struct lease *x)
{
	if (!instant_before(e->core->now, adoption_end(x)))
		return adopt_fail(e, x, ADOPT_OVER);
	if (x->renewal->adoption->vouched)
		return lease_loss_is_due(x, e->core->conf.nodes, e->core->now) ? adopt_fail(e, x, ADOPT_OVER) : adopt_win(e, x);
	if (!admit(e, &x->renewal->entry, e->core->now, NULL))
		heap_set(&e->core->timers, &x->timer, adoption_end(x));
	else
		adopt_go_on(e, x);
	return ADOPT_GOES_ON;
}

enum adopt_outcome adopt_decide(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	int64_t left = instant_diff(lease_deadline(x, e->core->conf.nodes), e->core->now);

	/* With less time left, the lease would be lost at once. */
	if (left > loss_lead_us(x->ttl_us))
		return adopt_win(e, x);
	if (nodeset_count(x->renewal->adoption->left) < engine_quorum(e))
		return adopt_fail(e, x, ADOPT_DENIED);
	if (x->renewal->round == r && !nodeset_any(r->calls.open))
		adopt_pause(e, x);
	return ADOPT_GOES_ON;
}

void adopt_expired(struct engine *e, struct round *r)
{
	adopt_pause(e, r->lease);
	retire_round(e, r);
}
