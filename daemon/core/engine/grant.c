/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a hold begins: a round won the lease for the first waiter, or a holder ends and its lease goes on to the next waiter here. How it ends is in hold.c.
 */
#include "daemon/core/engine/grant.h"

#include "daemon/core/engine/acquire.h"
#include "daemon/core/engine/adopted_lease.h"
#include "daemon/core/engine/holders.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/engine/release.h"
#include "daemon/core/engine/ticket.h"
#include "daemon/core/engine/shared_lease.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/engine/waiters.h"

#include <string.h>

/* The lock's lease has the value and the votes that the round has won. */
static void grant_take(struct engine *e, struct lock *l, const struct round *r, int64_t fence)
{
	struct lease *x = &l->lease;

	lock_begin_lease(l, &r->value, &r->placed);
	x->placed.sure = nodeset_or(x->placed.sure, r->granted);
	memcpy(x->votes, r->votes.until, e->core->conf.nodes * sizeof(x->votes[0]));
	x->ttl_us = x->renew_ttl_us = r->ttl_us;
	x->delay_us = r->delay_us;
	x->shared = r->form == FORM_SHARED;
	x->token = fence;
	x->token_end = fence + r->range;
	lease_promise(x, r->ttl_us, vote_until(calls_sent_last(&e->calls, &r->calls, r->calls.asked), r->ttl_us)); /* no late vote can be better */
}

/* Who holds the name alone, in place of all who were there before, takes what the name counts. Losses that are remembered are there. */
static void grant_alone(struct lock *l)
{
	if (!l->share && TAILQ_EMPTY(&l->contender->losses))
		claim_leave_crowd(l->holder);
}

/* Others held the name or asked for it before, or hold it as well. */
static void grant_won_beside(struct engine *e, struct lock *l, const struct round *r)
{
	grant_alone(l);
	if (!l->share)
		return;
	if (r->writer_us)
		grant_barred(e, l, r->writer_us);
}

void grant_won(struct engine *e, struct round *r, int64_t fence)
{
	struct lock *l = lock_of_name(r->calls.name);
	struct claim *c = TAILQ_FIRST(&l->contender->waiters);

	if (l->contender->ticket.us)
		ticket_spend(e, l->contender, r->granted);
	elsewhere_forget(&l->contender->elsewhere);
	if (!c || e->draining || c->ttl_us != r->ttl_us || c->delay_us != r->delay_us || contender_form(c) != r->form) {
		/* The round asked on the terms of a waiter that has left, or that nobody is to be granted any more. */
		release_round(e, r);
		contender_move(e, l->contender, CONTENDER_IDLE, CAUSE_WON_FOR_NOBODY);
		acquire_next(e, l);
		return;
	}
	contender_move(e, l->contender, CONTENDER_IDLE, CAUSE_WON);
	grant_take(e, l, r, fence);
	lease_move(e, &l->lease, LEASE_HELD, CAUSE_WON);
	holders_add(e, c);
	l->lease.auto_renew = c->renew;
	l->lease.renew_at = c->renew ? instant_add(r->calls.begun, l->lease.ttl_us / 3) : INSTANT_NEVER;
	if (c->shared || c->crowds)
		grant_won_beside(e, l, r);
	if (!TAILQ_EMPTY(&l->contender->waiters))
		holders_answer(e, l);
	lease_schedule(e, &l->lease);
	if (l->lease.shared)
		shared_lease_line_up(e, l);
}

/* Votes of earlier rounds may end sooner than those of this one: renews no later than half a ttl before D. Without a round D is that of the last renewal. */
static struct instant adopted_renew_at(const struct engine *e, const struct lease *x, const struct round *r)
{
	struct instant end = lease_deadline(x, e->core->conf.nodes);

	return r ? instant_min(instant_add(r->calls.begun, x->ttl_us / 3), instant_add(end, -x->ttl_us / 2)) : instant_add(end, -x->ttl_us * 2 / 3);
}

/* The previous run may have promised the client more than this run asks for. */
static void adopted_believe(const struct engine *e, struct lock *l, struct claim *c)
{
	struct instant until = instant_add(e->core->now, l->lease.promised.ttl_us + drift_us(l->lease.promised.ttl_us));

	if (c->renew)
		c->believed = instant_max(c->believed, until);
	l->lease.believed_until = instant_max(l->lease.believed_until, c->believed);
}

void grant_adopted(struct engine *e, struct lock *l, const struct round *r)
{
	struct claim *c;

	lease_move(e, &l->lease, LEASE_HELD, CAUSE_CONFIRMED);
	adoption_over(&l->lease);
	l->lease.believed_until = INSTANT_PAST;
	l->lease.renew_at = l->lease.auto_renew ? adopted_renew_at(e, &l->lease, r) : INSTANT_NEVER;
	for (c = l->holder; c; c = lock_next_holder(l, c)) {
		adopted_believe(e, l, c);
		notices_add(&e->notices, NOTICE_ADOPTED, c, NULL, NOT_REFUSED);
		if (c->asked_again)
			holders_fold(e, c);
	}
	if (l->share)
		holders_answer(e, l);
	lease_schedule(e, &l->lease);
}

/*
 * Local hand-over: the next waiter gets the lease as it stands, with the next token of its range, without a round. That takes the same terms and enough
 * validity, and it is bounded as soon as a daemon elsewhere wants the name. Source: lock cohorting, Dice, Marathe, Shavit 2012.
 * See ALGORITHMS.md, Hand-over.
 */
static bool lock_may_be_handed_on(const struct engine *e, const struct lock *l)
{
	const struct claim *next = TAILQ_FIRST(&l->contender->waiters);

	if (next && !next->shared && lock_is_haunted(l, e->core->now))
		return false;
	if (l->lease.shared)
		return false; /* readers elsewhere may have it, and a reader that waits here has not joined because it would pass a writer */
	if (!next || !next->renew || !l->holder->renew || next->ttl_us != l->lease.ttl_us || next->delay_us != l->lease.delay_us)
		return false;
	if (e->draining || l->lease.renew_ttl_us != l->lease.ttl_us)
		return false; /* an EXTEND to other terms is under way */
	/* If the journal cannot be written, the next run may adopt the lease for the former holder. */
	if (l->lease.recorded && e->core->journal_off)
		return false;
	if (l->lease.token >= l->lease.token_end)
		return false;
	return holders_may_follow(e, l);
}

bool grant_hand_on(struct engine *e, struct lock *l)
{
	bool at_risk = l->lease.at_risk;

	if (!lock_may_be_handed_on(e, l))
		return false;
	holders_count_hold(e, l->holder);
	lease_refuse_extends(e, &l->lease, REFUSED_CANCELLED);
	holders_count_handoff(e, l);
	lock_remove_holder(l, l->holder);
	if (l->share && !TAILQ_FIRST(&l->contender->waiters)->shared)
		lock_end_share(&e->table, l);
	l->lease.token++;
	l->lease.token_is_old = false; /* this one is of no hold before */
	lease_safe(e, &l->lease);
	holders_add(e, TAILQ_FIRST(&l->contender->waiters));
	grant_alone(l);
	holders_let_in(e, l);
	/* The lease is renewed at once. If that fails, the new holder is told RISK, and the lease is again in the list of those at risk. */
	if (at_risk)
		l->lease.renew_at = e->core->now;
	lease_schedule(e, &l->lease);
	if (l->share && l->contender->want_since.us)
		shared_lease_open(e, l);
	return true;
}

void grant_barred(struct engine *e, struct lock *l, int64_t writer_us)
{
	struct contender *k = lock_contend(&e->table, l);

	if (!k->want_since.us)
		k->want_since = e->core->now;
	l->share->want_at = e->core->now;
	l->share->want_us = writer_us;
}

/* It may be a reader that waits, which may join if the stores share the lease. */
static void grant_wanted_of_readers(struct engine *e, struct lock *l)
{
	if (holders_want_is_over(e, l)) {
		l->share->want_us = 0;
		lock_contend(&e->table, l)->want_since = e->core->now;
	}
	l->share->want_at = e->core->now;
	shared_lease_open(e, l);
}

void grant_wanted(struct engine *e, struct span name)
{
	struct lock *l = lock_find_text(&e->table, name);

	if (!l || l->lease.state != LEASE_HELD)
		return;
	if (l->share)
		grant_wanted_of_readers(e, l);
	if (!l->contender->want_since.us)
		lock_contend(&e->table, l)->want_since = e->core->now;
	l->contender->wanted_at = e->core->now;
	if (e->watched > 0)
		notices_add(&e->notices, NOTICE_WANTED, l->holder, NULL, NOT_REFUSED);
}
