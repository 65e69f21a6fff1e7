/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adoption: after a restart, a lock that a session of the previous run held is taken over under a new value. Every store is asked to put the new value in the
 * place of the old one. If a quorum does, the lock was held without a gap, and the old value is worth nothing any more, whoever else knows it. If a quorum
 * denies it, all is undone. If too few answer in time, what stands ends by itself. How much of the lease's range of tokens was used is not known, so the
 * lease is not handed on. Renewals and releases reckon with the old value at a store until the store has said that it is not there, and nothing that the
 * previous run sent can put it there any more. See ALGORITHMS.md, Adoption.
 */
#include "daemon/core/adopt.h"

#include "daemon/core/admit.h"
#include "daemon/core/adoption.h"
#include "daemon/core/ask.h"
#include "daemon/core/grant.h"
#include "daemon/core/hold.h"
#include "daemon/core/move.h"
#include "daemon/core/wait.h"
#include "daemon/core/waiters.h"

#define PAUSE_LEAST_US (20 * MSEC)

static struct lease_value value_of(struct span text)
{
	struct lease_value v = {.n = (uint8_t)text.n};

	memcpy(v.text, text.p, text.n);
	return v;
}

/* The previous run may have told its client that much before it renewed the lease for less. The end of a lease that nobody renews is known. */
static struct instant told_until(const struct engine *e, const struct claim *c, const struct prior_lease *from)
{
	struct instant by_ttl = instant_add(e->core->now, from->ttl_us);

	return c->renew ? instant_max(by_ttl, from->deadline) : instant_min(by_ttl, from->deadline);
}

void adopt_expect(struct engine *e, struct claim *c, const struct prior_lease *from)
{
	struct lock *l = lock_find_or_add(&e->table, from->name);
	struct instant told = told_until(e, c, from);
	int64_t told_us = from->ttl_us, px_us = told_us + c->delay_us;
	int64_t longest_us = (told_us > e->core->conf.max_lease_us ? told_us : e->core->conf.max_lease_us) + c->delay_us;

	l->lease.renew_ttl_us = c->ttl_us;
	l->lease.ttl_us = c->renew ? c->ttl_us : told_us; /* a lease that nobody renews ends as it was told */
	l->lease.delay_us = c->delay_us;
	lock_new_value(&e->table, l);
	l->lease.adoption = adoption_new(from, e->core->now);
	if (MUTATED(ADOPT_UNROTATED))
		l->lease.value = value_of(from->value);
	l->lease.adoption->stands = nodeset_all(e->core->conf.nodes);
	l->lease.adoption->until = instant_add(instant_max(instant_add(e->core->now, longest_us), instant_add(told, c->delay_us)), longest_us + longest_us / 25 + SEC);
	l->lease.adoption->hopeless = instant_add(e->core->now, px_us + px_us / 50 + SEC);
	l->lease.adoption->deadline = c->renew ? INSTANT_NEVER : from->deadline;
	l->lease.recorded = true;
	l->lease.fence = c->fence;
	l->lease.fence_end = c->fence + (MUTATED(ADOPTED_HANDED_ON) ? 100 : 0);
	lease_promise(&l->lease, told_us, from->deadline);
	if (c->fence > e->fence_seen)
		e->fence_seen = c->fence;
	c->lock = l;
	c->state = CLAIM_HELD;
	c->believed = instant_add(told, drift_us(told_us));
	l->holder = c;
	lease_move(e, l, LEASE_ADOPTING, CAUSE_RESTORED);
}

void adopt_start(struct engine *e, struct lock *l)
{
	heap_set(&e->core->timers, &l->timer, e->core->now);
}

void adopt_drop(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (c->state == CLAIM_LOST) {
		hold_forget(e, c);
		return;
	}
	l->holder = NULL;
	adoption_over(l);
	lease_move(e, l, LEASE_NONE, CAUSE_SUPERSEDED);
	claim_free(&e->table, c);
	lock_drop_if_unused(&e->table, l);
}

static void adopt_close(struct engine *e, struct lock *l)
{
	struct round *r = l->round;

	l->round = NULL;
	if (!r)
		return;
	r->decided = true;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

static void adopt_fail(struct engine *e, struct lock *l, enum loss why)
{
	metric_add(&e->core->metrics, METRIC_ADOPTIONS_FAILED, 1);
	adopt_close(e, l);
	hold_lose(e, l, why);
}

/* The other votes may be of earlier rounds, and end sooner. */
static struct instant adopt_renew_at(const struct engine *e, const struct lock *l, const struct round *r)
{
	struct instant half = instant_add(lock_deadline(&e->table, l), -l->lease.ttl_us / 2);

	return instant_min(instant_add(r->calls.begun, l->lease.ttl_us / 3), half);
}

/* A previous run may have promised more than this one asks for, and so may a run beside it on a copy of the journal, until now. */
static void adopt_believe(const struct engine *e, struct lock *l)
{
	struct claim *c = l->holder;
	struct instant until = instant_add(e->core->now, l->lease.promised.ttl_us + drift_us(l->lease.promised.ttl_us));

	if (c->renew)
		c->believed = instant_max(c->believed, until);
	l->told = c->believed;
}

static void adopt_win(struct engine *e, struct lock *l, const struct round *r)
{
	metric_add(&e->core->metrics, METRIC_ADOPTIONS, 1);
	adopt_close(e, l);
	lease_move(e, l, LEASE_HELD, CAUSE_CONFIRMED);
	adopt_believe(e, l);
	l->lease.renew_at = l->holder->renew ? adopt_renew_at(e, l, r) : INSTANT_NEVER;
	notices_add(&e->notices, NOTICE_ADOPTED, l->holder, NULL, REFUSED_NOT);
	grant_fold(e, l);
	wait_refuse_part(e, l, REFUSED_BUSY, WAITERS_IMPATIENT);
	lease_schedule(e, l);
}

static void adopt_pause(struct engine *e, struct lock *l)
{
	int64_t pause = l->lease.ttl_us / 20;

	adopt_close(e, l);
	pause = pause < PAUSE_LEAST_US ? PAUSE_LEAST_US : pause;
	heap_set(&e->core->timers, &l->timer, instant_min(instant_add(e->core->now, pause), adoption_end(l)));
}

static void adopt_ask(struct engine *e, struct round *r, unsigned node)
{
	struct lock *l = lock_of_lease(r->lease);
	struct span from;

	/* A lease that nobody renews is asked for a shorter rest each time, which counts from the moment when a store may have set it. */
	l->lease.votes.until[node] = instant_min(l->lease.votes.until[node], vote_until(e->core->now, r->ttl_us));
	if (adoption_is_left(l, node, &from))
		ask_adopt(&e->calls, r, node, l->lease.fence_end, from);
	else
		ask_extend(&e->calls, r, node, l->lease.fence_end, INSTANT_PAST);
	nodeset_add(&l->lease.unanswered, node);
	nodeset_add(&l->lease.renewed, node);
}

static struct nodeset adopt_whom_to_ask(const struct engine *e, const struct lock *l)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (member_usable(&e->members.node[i]) && !flow_is_full(&e->members.node[i].flow))
			nodeset_add(&nodes, i);
	nodes = nodeset_without(nodeset_and(nodes, adoption_possible(l)), l->lease.unanswered);
	return l->round ? nodeset_without(nodes, l->round->calls.asked) : nodes;
}

static void adopt_begin(struct engine *e, struct lock *l)
{
	struct round *r = round_new(&e->rounds, QUESTION_ADOPT, &l->name, &l->lease);

	l->round = r;
	if (!l->lease.adoption->asked) {
		l->lease.adoption->asked = true;
		notices_add(&e->notices, NOTICE_ADOPTING, l->holder, NULL, REFUSED_NOT);
	}
	if (!l->holder->renew) {
		r->ttl_us = adoption_rest_us(l, e->core->now);
		r->px_us = r->ttl_us + l->lease.delay_us;
	}
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* Asks all stores that can be asked and were not, in this round or a new one. A store that joins meanwhile is asked as well. */
void adopt_go_on(struct engine *e, struct lock *l)
{
	struct nodeset nodes = adopt_whom_to_ask(e, l);

	heap_set(&e->core->timers, &l->timer, adoption_end(l)); /* or when a node is back */
	if (members_usable(&e->members) < engine_quorum(e))
		return;
	if (!nodeset_any(nodes)) {
		if (!l->round)
			adopt_pause(e, l);
		return;
	}
	if (!l->round)
		adopt_begin(e, l);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			adopt_ask(e, l->round, i);
}

void adopt_fired(struct engine *e, struct lock *l)
{
	if (!instant_before(e->core->now, adoption_end(l)))
		adopt_fail(e, l, l->holder->renew ? LOSS_QUORUM : LOSS_EXPIRED);
	else if (!admit(e, &l->lease.entry, e->core->now))
		heap_set(&e->core->timers, &l->timer, adoption_end(l));
	else
		adopt_go_on(e, l);
}

void adopt_decide(struct engine *e, struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);
	int64_t left = instant_diff(lock_deadline(&e->table, l), e->core->now);

	/* Worth having: its loss would be told at once otherwise. */
	if (left > lead_us(l->lease.ttl_us) || (MUTATED(ADOPT_BY_MINORITY) && nodeset_any(r->granted)))
		adopt_win(e, l, r);
	else if (nodeset_count(adoption_possible(l)) < engine_quorum(e))
		adopt_fail(e, l, LOSS_EVICTED);
	else if (l->round == r && !nodeset_any(r->calls.open))
		adopt_pause(e, l);
}

void adopt_expired(struct engine *e, struct round *r)
{
	adopt_pause(e, lock_of_lease(r->lease));
	retire_round(e, r);
}
