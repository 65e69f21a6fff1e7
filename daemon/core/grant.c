/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a hold begins: a round won the lease for the first waiter, or a holder ends and its lease goes on to the next waiter here. How it ends is in hold.c.
 */
#include "daemon/core/grant.h"

#include "daemon/core/acquire.h"
#include "daemon/core/release.h"
#include "daemon/core/move.h"
#include "daemon/core/ticket.h"
#include "daemon/core/wait.h"
#include "daemon/core/waiters.h"

#include <string.h>

#define HANDOFF_LEAST_US (50 * MSEC)
#define HANDOFF_TIME_US  (100 * MSEC)
#define HANDOFFS_MOST    64

/* For the figures of how long locks are held. */
void grant_count_hold(struct engine *e, const struct claim *c)
{
	int64_t held = instant_diff(e->core->now, c->granted_at);

	metric_add(&e->core->metrics, METRIC_HOLD_TOTAL, held);
	metric_peak(&e->core->metrics, METRIC_HOLD_LONGEST, held);
}

static void claim_hold(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;
	struct claim *old = c->not_notified ? NULL : lock_loss_of(l, c->session, claim_owner(c));
	int64_t waited = instant_diff(e->core->now, c->asking->asked_at);

	if (old) {
		TAILQ_REMOVE(&l->losses, old, in_lock); /* its client hears that it took the name anew: the loss need not be remembered */
		notices_add(&e->notices, NOTICE_FORGOTTEN, old, NULL, NOT_REFUSED);
	}
	wait_leave(e, c);
	c->state = CLAIM_HELD;
	c->count = 1;
	c->token = l->lease.token;
	c->granted_at = e->core->now;
	l->holder = c;
	metric_add(&e->core->metrics, METRIC_GRANTS, 1);
	metric_add(&e->core->metrics, METRIC_WAIT_TOTAL, waited);
	metric_peak(&e->core->metrics, METRIC_WAIT_LONGEST, waited);
	notices_add(&e->notices, NOTICE_GRANTED, c, NULL, NOT_REFUSED);
}

/*
 * The other waiting LOCKs of the same owner are granted together with the first, as reentrant. A LOCK whose connection was lost is counted when it is repeated,
 * not before: nobody waits for its answer. If the session was not notified of the grant either, the first repeated LOCK takes its place in the count.
 */
static void grant_fold(struct engine *e, struct lock *l)
{
	struct claim *c, *next;
	bool heard = !l->holder->not_notified;

	for (c = TAILQ_FIRST(&l->contender->waiters); c; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (!claim_same_owner(c, l->holder))
			continue;
		wait_leave(e, c);
		l->holder->count += heard && !c->not_notified;
		heard |= !c->not_notified;
		notices_add(&e->notices, NOTICE_REENTERED, c, NULL, NOT_REFUSED);
	}
}

static void grant_to(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	claim_hold(e, c);
	grant_fold(e, l);
	wait_announce(e, l->contender);
}

/* The lock's lease has the value and the votes that the round has won. */
static void grant_take(struct engine *e, struct lock *l, const struct round *r, int64_t fence)
{
	struct lease *x = &l->lease;

	lock_begin_lease(l, &r->value, &r->placed);
	memcpy(x->votes, r->votes.until, e->core->conf.nodes * sizeof(x->votes[0]));
	x->ttl_us = x->renew_ttl_us = r->ttl_us;
	x->delay_us = r->delay_us;
	x->token = fence;
	x->token_end = fence + r->range;
	lease_promise(x, r->ttl_us, vote_until(calls_sent_last(&e->calls, &r->calls, r->calls.asked), r->ttl_us)); /* no late vote can be better */
}

void grant_won(struct engine *e, struct round *r, int64_t fence)
{
	struct lock *l = lock_of_name(r->calls.name);
	struct claim *c = TAILQ_FIRST(&l->contender->waiters);

	if (l->contender->ticket.us)
		ticket_spend(e, l->contender, r->granted);
	elsewhere_forget(&l->contender->elsewhere);
	if (!c || c->ttl_us != r->ttl_us || c->delay_us != r->delay_us) {
		/* The round asked on the terms of a waiter that has left. */
		release_round(e, r);
		contender_move(e, l->contender, CONTENDER_IDLE, CAUSE_WON_FOR_NOBODY);
		acquire_next(e, l);
		return;
	}
	contender_move(e, l->contender, CONTENDER_IDLE, CAUSE_WON);
	grant_take(e, l, r, fence);
	lease_move(e, &l->lease, LEASE_HELD, CAUSE_WON);
	grant_to(e, c);
	l->lease.auto_renew = c->renew;
	l->lease.renew_at = c->renew ? instant_add(r->calls.begun, l->lease.ttl_us / 3) : INSTANT_NEVER;
	wait_refuse_part(e, l->contender, REFUSED_BUSY, WAITERS_IMPATIENT);
	lease_schedule(e, &l->lease);
}

/* Votes of earlier rounds may end sooner than those of this one: renews no later than half a ttl before D. */
static struct instant adopted_renew_at(const struct engine *e, const struct lease *x, const struct round *r)
{
	struct instant half = instant_add(lease_deadline(x, e->core->conf.nodes), -x->ttl_us / 2);

	return instant_min(instant_add(r->calls.begun, x->ttl_us / 3), half);
}

/* A previous run, and until now another run on a copy of the journal, may have promised the client more than this run asks for. */
static void adopted_believe(const struct engine *e, struct lock *l)
{
	struct claim *c = l->holder;
	struct instant until = instant_add(e->core->now, l->lease.promised.ttl_us + drift_us(l->lease.promised.ttl_us));

	if (c->renew)
		c->believed = instant_max(c->believed, until);
	l->lease.believed_until = c->believed;
}

void grant_adopted(struct engine *e, struct lock *l, const struct round *r)
{
	lease_move(e, &l->lease, LEASE_HELD, CAUSE_CONFIRMED);
	adopted_believe(e, l);
	l->lease.renew_at = l->holder->renew ? adopted_renew_at(e, &l->lease, r) : INSTANT_NEVER;
	notices_add(&e->notices, NOTICE_ADOPTED, l->holder, NULL, NOT_REFUSED);
	grant_fold(e, l);
	wait_refuse_part(e, l->contender, REFUSED_BUSY, WAITERS_IMPATIENT);
	lease_schedule(e, &l->lease);
}

bool grant_is_due_elsewhere(const struct engine *e, const struct lock *l)
{
	return l->contender->handed_since.us && instant_diff(e->core->now, l->contender->handed_since) >= HANDOFF_TIME_US;
}

/*
 * Local hand-over: the next waiter gets the lease as it stands, with the next token of its range, without a round. That takes the same terms and enough
 * validity, and it is bounded as soon as a daemon elsewhere wants the name. Source: lock cohorting, Dice, Marathe, Shavit 2012.
 * See ALGORITHMS.md, Hand-over.
 */
static bool lock_may_be_handed_on(const struct engine *e, const struct lock *l)
{
	const struct claim *next = TAILQ_FIRST(&l->contender->waiters);
	int64_t left, least = l->lease.ttl_us / 10;

	if (!next || !next->renew || !l->holder->renew || next->ttl_us != l->lease.ttl_us || next->delay_us != l->lease.delay_us)
		return false;
	/* An EXTEND to other terms is under way. */
	if (l->lease.renew_ttl_us != l->lease.ttl_us)
		return false;
	/* If the journal cannot be written, the next run may adopt the lease for the former holder. */
	if (l->lease.recorded && e->core->journal_off)
		return false;
	if (l->lease.token >= l->lease.token_end)
		return false;
	left = instant_diff(lock_deadline(&e->table, l), e->core->now);
	if (left < (least > HANDOFF_LEAST_US ? least : HANDOFF_LEAST_US))
		return false;
	if (e->core->conf.foreign && grant_is_due_elsewhere(e, l))
		return false;
	return !l->contender->want_since.us ||
	       (l->contender->handoffs < HANDOFFS_MOST && instant_diff(e->core->now, l->contender->want_since) < HANDOFF_TIME_US);
}

bool grant_hand_on(struct engine *e, struct lock *l)
{
	bool at_risk = l->lease.at_risk;

	if (!lock_may_be_handed_on(e, l))
		return false;
	grant_count_hold(e, l->holder);
	lease_refuse_extends(e, &l->lease, REFUSED_CANCELLED);
	l->contender->handoffs++;
	if (e->core->conf.foreign && !l->contender->handed_since.us)
		l->contender->handed_since = e->core->now;
	l->holder = NULL;
	l->lease.token++;
	lease_safe(e, &l->lease);
	metric_add(&e->core->metrics, METRIC_HANDOFFS, 1);
	grant_to(e, TAILQ_FIRST(&l->contender->waiters));
	/* The lease is renewed at once. If that fails, the new holder is told RISK, and the lease is again in the list of those at risk. */
	if (at_risk)
		l->lease.renew_at = e->core->now;
	lease_schedule(e, &l->lease);
	return true;
}

void grant_wanted(struct engine *e, struct span name)
{
	struct lock *l = lock_find(&e->table, name);

	if (!l || l->lease.state != LEASE_HELD)
		return;
	if (!l->contender->want_since.us)
		lock_contend(&e->table, l)->want_since = e->core->now;
	if (e->watched > 0)
		notices_add(&e->notices, NOTICE_WANTED, l->holder, NULL, NOT_REFUSED);
}
