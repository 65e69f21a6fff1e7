/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adoption: after a restart, a lock that a session of the former life held is taken over under a new value. Every store is asked to put the new one in
 * the place of the old; a quorum that does proves that the lock was held without a gap, and the old value is worth nothing from then on, to whoever
 * else knows it. Where a quorum denies it, all is undone; where too few answer in time, what stands ends by itself. How much of the lease's range of
 * tokens was used is not known, so it is handed to nobody. Until a store has said that the old value is not there, and nothing that the former
 * life sent can put it there any more, renewals and releases reckon with it. See ALGORITHMS.md, Adoption.
 *
 * A life may end within that round trip, and the next before it knows more. So the journal has the new value and all those that it may take the place
 * of before any store is asked, and the next life accepts whichever it finds: each store holds one of them as long as the lock was held there without a
 * gap. Of more than JOURNAL_PRIORS + 1 the oldest is forgotten: then the lock may be lost, and is said to be.
 */
#include "daemon/core/admit.h"
#include "daemon/core/move.h"
#include "daemon/core/engine_part.h"

#include "daemon/base/mem.h"
#include "daemon/core/journal.h"

#include <stdlib.h>

#define PAUSE_LEAST_US (20 * MSEC)

struct heritage {
	bool asked;              /* some store was: the new value may stand there, too */
	struct nodeset stands; /* nodes where one of the values may stand */
	struct nodeset late; /* nodes that had none, but what the former life sent could still put one there */
	struct nodeset occupied; /* nodes where another does: somebody else's, or one of ours that nobody here knows */
	struct instant until;    /* they stand nowhere beyond: an EXTEND to the ttl that the record has may have left a longer key, and one that hung renewed it */
	struct instant hopeless; /* nobody believes in the lease beyond: it is not adopted any more */
	struct instant prior_until; /* all but the first */
	struct instant deadline; /* of a lease that nobody renews; NEVER */
	size_t n, first;         /* bytes: of all, of the first */
	char values[];           /* newest first, separated by blanks */
};

static struct heritage *heritage_new(const struct inheritance *from, struct instant now)
{
	size_t prior = instant_before(now, from->prior_until) ? from->prior.n : 0;
	struct heritage *h = mem_alloc(sizeof(*h) + from->value.n + 1 + prior);

	h->first = h->n = from->value.n;
	memcpy(h->values, from->value.p, h->n);
	if (prior > 0) {
		h->values[h->n++] = ' ';
		memcpy(h->values + h->n, from->prior.p, prior);
		h->n += prior;
	}
	h->prior_until = from->prior_until;
	return h;
}

static struct span heritage_values(const struct heritage *h)
{
	return (struct span){h->values, h->n};
}

/* As many as a record has room for. */
static struct span values_newest(struct span values)
{
	struct span rest = values, value;

	for (unsigned n = 0; n < JOURNAL_PRIORS && span_word(&rest, &value); n++)
		;
	return (struct span){values.p, values.n - rest.n};
}

static struct lock_value value_of(struct span text)
{
	struct lock_value v = {.n = (uint8_t)text.n};

	memcpy(v.text, text.p, text.n);
	return v;
}

/* The former life could say so, which perhaps had it from one before, and then renewed it for less. Of what nobody renews the end is known. */
static struct instant told_until(const struct engine *e, const struct claim *c, const struct inheritance *from)
{
	struct instant by_ttl = instant_add(e->core->now, from->ttl_us);

	return c->renew ? instant_max(by_ttl, from->deadline) : instant_min(by_ttl, from->deadline);
}

void adopt_expect(struct engine *e, struct claim *c, const struct inheritance *from)
{
	struct lock *l = lock_find_or_add(&e->table, from->name);
	struct instant told = told_until(e, c, from);
	int64_t told_us = from->ttl_us, px_us = told_us + c->delay_us;
	int64_t longest_us = (told_us > e->core->conf.max_lease_us ? told_us : e->core->conf.max_lease_us) + c->delay_us;

	l->renew_ttl_us = c->ttl_us;
	l->ttl_us = c->renew ? c->ttl_us : told_us; /* what nobody renews ends as it was told */
	l->delay_us = c->delay_us;
	lock_new_value(&e->table, l);
	l->heritage = heritage_new(from, e->core->now);
	if (MUTATED(ADOPT_UNROTATED))
		l->value = value_of(from->value);
	l->heritage->stands = nodeset_all(e->core->conf.nodes);
	l->heritage->until = instant_add(instant_max(instant_add(e->core->now, longest_us), instant_add(told, c->delay_us)), longest_us + longest_us / 25 + SEC);
	l->heritage->hopeless = instant_add(e->core->now, px_us + px_us / 50 + SEC);
	l->heritage->deadline = c->renew ? INSTANT_NEVER : from->deadline;
	l->recorded = true;
	l->fence = c->fence;
	l->fence_end = c->fence + (MUTATED(ADOPTED_HANDED_ON) ? 100 : 0);
	lock_promise(l, told_us, from->deadline);
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

void adopt_disown(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (c->state == CLAIM_LOST) {
		engine_forget(e, c);
		return;
	}
	l->holder = NULL;
	free(l->heritage);
	l->heritage = NULL;
	lease_move(e, l, LEASE_NONE, CAUSE_SUPERSEDED);
	claim_free(&e->table, c);
	lock_drop_if_unused(&e->table, l);
}

struct inheritance adopt_bequest(const struct lock_table *t, const struct lock *l)
{
	const struct heritage *h = l->heritage;
	struct inheritance left = {.name = lock_name(l), .value = {l->value.text, l->value.n}, .ttl_us = l->promised.ttl_us,
	                           .deadline = instant_max(lock_deadline(t, l), l->promised.until)};

	if (l->holder && l->holder->renew)
		left.deadline = instant_max(left.deadline, l->told);
	if (h && h->asked && nodeset_any(nodeset_or(h->stands, h->late)) && instant_before(t->core->now, h->until)) {
		left.prior = values_newest(heritage_values(h));
		left.prior_until = h->until;
	} else if (h && !h->asked) {
		left.value = (struct span){h->values, h->first};
		left.prior = h->n > h->first ? (struct span){h->values + h->first + 1, h->n - h->first - 1} : SPAN("");
		left.prior_until = h->prior_until;
	}
	return left;
}

bool adopt_is_left(const struct lock *l, unsigned node, struct span *ret_values)
{
	const struct heritage *h = l->heritage;

	if (!h || !nodeset_has(nodeset_or(h->stands, h->late), node))
		return false;
	*ret_values = heritage_values(h);
	return true;
}

void adopt_note(struct lock *l, unsigned node)
{
	if (!l->heritage)
		return;
	nodeset_remove(&l->heritage->stands, node);
	nodeset_remove(&l->heritage->late, node);
}

/* Until when what the former life sent to it may be carried out, and put back what has been replaced. */
static struct instant adopt_astray_until(const struct engine *e, const struct lock *l, unsigned node)
{
	return op_astray_until(&e->ops, node, INSTANT_PAST, l->value_since);
}

void adopt_note_none(const struct engine *e, const struct op *op, unsigned node)
{
	struct lock *l = op->lock;

	adopt_note(l, node);
	if (l->heritage && !MUTATED(FORMER_STRAYS) && instant_before(op->sent[node], adopt_astray_until(e, l, node)))
		nodeset_add(&l->heritage->late, node);
}

static struct nodeset adopt_astray(const struct engine *e, const struct lock *l)
{
	struct nodeset nodes = l->heritage->late;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (instant_before(e->core->now, adopt_astray_until(e, l, i)))
			nodeset_add(&nodes, i);
	return nodes;
}

struct span adopt_left(const struct engine *e, const struct lock *l, struct nodeset *nodes, struct instant *until)
{
	const struct heritage *h = l->heritage;
	struct nodeset stands = !h ? NODESET_NONE : MUTATED(FORMER_STRAYS) ? h->stands : nodeset_or(h->stands, adopt_astray(e, l));

	if (!nodeset_any(stands) || !instant_before(e->core->now, h->until))
		return SPAN("");
	*nodes = nodeset_or(*nodes, stands);
	*until = instant_max(*until, h->until);
	return heritage_values(h);
}

void adopt_note_other(struct lock *l, unsigned node)
{
	if (l->heritage)
		nodeset_add(&l->heritage->occupied, node);
}

void adopt_leave(struct lock *l)
{
	adopt_over(l);
	l->placed = NODESET_NONE;
}

void adopt_over(struct lock *l)
{
	free(l->heritage);
	l->heritage = NULL;
}

/* --- the round --- */

/* Nodes that have not said for certain that neither value stands there. */
static struct nodeset adopt_possible(const struct lock *l)
{
	return nodeset_or(l->heritage->stands, l->placed);
}

/* Even if what stands elsewhere is ours. */
bool adopt_is_denied(const struct engine *e, const struct lock *l)
{
	return nodeset_count(nodeset_or(adopt_possible(l), l->heritage->occupied)) < engine_quorum(e);
}

/* It is given up then. What nobody renews is told lost as long before its end as any other lease. */
static struct instant adopt_end(const struct lock *l)
{
	struct instant end = instant_min(l->heritage->hopeless, l->heritage->deadline);

	return l->holder->renew || MUTATED(ADOPTION_ENDS_LATE) ? end : instant_add(end, -lead_us(l->ttl_us));
}

static void adopt_close(struct engine *e, struct lock *l)
{
	struct op *op = l->round;

	l->round = NULL;
	if (!op)
		return;
	op->decided = true;
	if (!nodeset_any(op->open))
		heap_cancel(&e->core->timers, &op->timer);
}

static void adopt_fail(struct engine *e, struct lock *l, enum loss why)
{
	metric_add(&e->core->metrics, METRIC_ADOPTIONS_FAILED, 1);
	adopt_close(e, l);
	engine_lose(e, l, why);
}

/* Other votes may be of earlier rounds, and end sooner. */
static struct instant adopt_renew_at(const struct engine *e, const struct lock *l, const struct op *op)
{
	struct instant half = instant_add(lock_deadline(&e->table, l), -l->ttl_us / 2);

	return instant_min(instant_add(op->begun, l->ttl_us / 3), half);
}

/* Former lives could promise more than this one asks for, and one that runs beside it on a copy of the journal could until now. */
static void adopt_believe(const struct engine *e, struct lock *l)
{
	struct claim *c = l->holder;
	struct instant until = instant_add(e->core->now, l->promised.ttl_us + drift_us(l->promised.ttl_us));

	if (c->renew)
		c->believed = instant_max(c->believed, until);
	l->told = c->believed;
}

static void adopt_win(struct engine *e, struct lock *l, const struct op *op)
{
	metric_add(&e->core->metrics, METRIC_ADOPTIONS, 1);
	adopt_close(e, l);
	lease_move(e, l, LEASE_HELD, CAUSE_CONFIRMED);
	adopt_believe(e, l);
	l->renew_at = l->holder->renew ? adopt_renew_at(e, l, op) : INSTANT_NEVER;
	notices_add(&e->notices, NOTICE_ADOPTED, l->holder, NULL, REFUSED_NOT);
	grant_fold(e, l);
	wait_refuse_part(e, l, REFUSED_BUSY, WAITERS_IMPATIENT);
	lease_schedule(e, l);
}

static void adopt_pause(struct engine *e, struct lock *l)
{
	int64_t pause = l->ttl_us / 20;

	adopt_close(e, l);
	pause = pause < PAUSE_LEAST_US ? PAUSE_LEAST_US : pause;
	heap_set(&e->core->timers, &l->timer, instant_min(instant_add(e->core->now, pause), adopt_end(l)));
}

static void adopt_ask(struct engine *e, struct op *op, unsigned node)
{
	struct lock *l = op->lock;
	struct span from;

	/* What is left of a lease that nobody renews is less each time: it counts from the moment it may have been set. */
	l->votes.until[node] = instant_min(l->votes.until[node], vote_until(e->core->now, op->ttl_us));
	if (adopt_is_left(l, node, &from))
		op_send_adopt(&e->ops, op, node, l->fence_end, from);
	else
		op_send_extend(&e->ops, op, node, l->fence_end, INSTANT_PAST);
	nodeset_add(&l->unanswered, node);
	nodeset_add(&l->renewed, node);
}

static struct nodeset adopt_whom_to_ask(const struct engine *e, const struct lock *l)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (member_usable(&e->members.node[i]) && !flow_is_full(&e->members.node[i].flow))
			nodeset_add(&nodes, i);
	nodes = nodeset_without(nodeset_and(nodes, adopt_possible(l)), l->unanswered);
	return l->round ? nodeset_without(nodes, l->round->asked) : nodes;
}

/* Of a lease that nobody renews: what is asked for now vouches until D again, not for less. */
static int64_t adopt_rest_us(const struct engine *e, const struct lock *l)
{
	int64_t left = instant_diff(l->heritage->deadline, e->core->now) + DRIFT_SLACK_US;

	return left + drift_us(left + drift_us(left));
}

static void adopt_begin(struct engine *e, struct lock *l)
{
	struct op *op = op_new(&e->ops, OP_ADOPT, l);

	l->round = op;
	if (!l->heritage->asked) {
		l->heritage->asked = true;
		notices_add(&e->notices, NOTICE_ADOPTING, l->holder, NULL, REFUSED_NOT);
	}
	if (!l->holder->renew) {
		op->ttl_us = adopt_rest_us(e, l);
		op->px_us = op->ttl_us + op->delay_us;
	}
	heap_set(&e->core->timers, &op->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* All that can be asked and were not, in this round or a new one; who joins while it is under way is asked as well. */
void adopt_go_on(struct engine *e, struct lock *l)
{
	struct nodeset nodes = adopt_whom_to_ask(e, l);

	heap_set(&e->core->timers, &l->timer, adopt_end(l)); /* or when a node is back */
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
	if (!instant_before(e->core->now, adopt_end(l)))
		adopt_fail(e, l, l->holder->renew ? LOSS_QUORUM : LOSS_EXPIRED);
	else if (!admit(e, &l->keeps, e->core->now))
		heap_set(&e->core->timers, &l->timer, adopt_end(l));
	else
		adopt_go_on(e, l);
}

void adopt_decide(struct engine *e, struct op *op)
{
	struct lock *l = op->lock;
	int64_t left = instant_diff(lock_deadline(&e->table, l), e->core->now);

	/* Worth having: its loss would be told at once otherwise. */
	if (left > lead_us(l->ttl_us) || (MUTATED(ADOPT_BY_MINORITY) && nodeset_any(op->yes)))
		adopt_win(e, l, op);
	else if (nodeset_count(adopt_possible(l)) < engine_quorum(e))
		adopt_fail(e, l, LOSS_EVICTED);
	else if (l->round == op && !nodeset_any(op->open))
		adopt_pause(e, l);
}

void adopt_expired(struct engine *e, struct op *op)
{
	adopt_pause(e, op->lock);
	retire(e, op);
}
