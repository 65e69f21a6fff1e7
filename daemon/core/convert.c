/* SPDX-License-Identifier: BSD-2-Clause */
/* See convert.h. */
#include "daemon/core/convert.h"

#include "daemon/core/adoption.h"
#include "daemon/core/grant.h"
#include "daemon/core/holders.h"
#include "daemon/core/move.h"
#include "daemon/core/rebase.h"
#include "daemon/core/ticket.h"
#include "daemon/core/together.h"
#include "daemon/core/wait.h"

/* The hold that this waiting claim would convert; NULL: none. */
static struct claim *convert_hold(const struct lock *l, const struct claim *c)
{
	struct claim *holder = lock_holder_of(l, c->session, claim_owner(c));

	return holder && holder->shared != c->shared ? holder : NULL;
}

/* The hold has the other mode and a new token from now on. Its count and its terms stay. */
static void convert_done(struct engine *e, struct claim *holder, struct claim *c)
{
	struct lock *l = holder->lock;

	wait_leave(e, c);
	lock_remove_holder(l, holder);
	if (l->share)
		lock_end_share(&e->table, l);
	if (!c->shared)
		ticket_spend(e, l->contender, NODESET_NONE);
	holder->shared = c->shared;
	holder->token = ++l->lease.token;
	lock_add_holder(&e->table, l, holder);
	notices_add(&e->notices, NOTICE_REENTERED, c, NULL, NOT_REFUSED);
	if (e->watched > 0)
		notices_add(&e->notices, NOTICE_CONVERTED, holder, NULL, NOT_REFUSED);
	holders_fold(e, holder);
}

/* Whether the request at the head of the line may convert the hold of its owner now. One whose client is away waits until it is repeated. */
static struct claim *convert_ready(const struct engine *e, const struct lock *l)
{
	const struct claim *c = TAILQ_FIRST(&l->contender->waiters);

	if (!c || c->ending || c->not_notified || l->lease.state != LEASE_HELD || lock_holders(l) > 1 || lock_is_haunted(l, e->core->now))
		return NULL;
	return convert_hold(l, c);
}

/*
 * The next renewal asks for a token, and is due now. A hold that is to be shared is recorded so before the stores are asked, under a new value: a run that
 * works on an earlier record, in which it is exclusive, cannot adopt it.
 */
static void convert_want_token(struct engine *e, struct lock *l)
{
	struct lease *x = &l->lease;
	struct renewal *b = lease_renewal(&e->table, x);

	if (b->wants_token || b->round)
		return; /* a round that is under way is followed by another look */
	if (!rebase_is_possible(e, x))
		return;
	if (x->shared && convert_ready(e, l)) {
		together_ask_again(e, x, instant_max(e->core->now, b->upgrade_at)); /* that renewal asks for the token as well */
		return;
	}
	if (!l->share && x->recorded) {
		adoption_rotate(&e->table, x, members_one_clock_us(&e->members, l->holder->granted_at));
		notices_add(&e->notices, NOTICE_ADOPTING, l->holder, NULL, NOT_REFUSED);
	}
	b->wants_token = true;
	x->renew_at = e->core->now;
	lease_schedule(e, x);
}

/* Readers hold an adopted lease. One that would join needs a token that no exclusive hold had. */
static bool lock_lacks_token(const struct lock *l)
{
	return l->share && l->lease.token_is_old;
}

void convert_begin(struct engine *e, struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);
	struct renewal *b = r->lease->renewal;
	bool mends = b->mends;

	b->upgrade = NULL;
	b->mends = false;
	if (!r->lease->shared || mends || instant_before(e->core->now, b->upgrade_at) || !convert_ready(e, l) || !rebase_is_possible(e, r->lease))
		return;
	b->wants_token = true;
	together_upgrade(e, r);
}

/* Somebody waits until readers that have gone, or the holder of an adopted lease, must have ceased to believe. A look follows the renewal at that moment. */
static void convert_look_later(struct engine *e, struct lock *l)
{
	struct instant until = instant_max(lock_haunted_until(l), l->lease.believed_until);

	if (instant_before(e->core->now, until) && !TAILQ_EMPTY(&l->contender->waiters))
		together_ask_again(e, &l->lease, until);
}

void convert_look(struct engine *e, struct lock *l)
{
	if (l->share)
		convert_look_later(e, l);
	if (l->lease.shared)
		together_line_up(e, l);
	if (convert_ready(e, l) || (l->lease.state == LEASE_HELD && lock_lacks_token(l)))
		convert_want_token(e, l);
	else if (l->share)
		holders_let_in(e, l);
}

/* Somebody waits in front of this request, and longer than it would. */
static bool convert_has_turn(const struct engine *e, const struct lock *l)
{
	const struct claim *first = TAILQ_FIRST(&l->contender->waiters);

	return lock_holders(l) < 2 && !lock_is_haunted(l, e->core->now) && !(first && first->converts && first->patient);
}

void convert_ask(struct engine *e, struct claim *c, struct instant until)
{
	struct lock *l = c->lock;

	if (!c->patient && !convert_has_turn(e, l)) {
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_BUSY);
		return;
	}
	if (!c->patient && l->lease.renewal->upgrade_at.us)
		l->lease.renewal->upgrade_at = e->core->now; /* it cannot wait until the stores are asked for the others again */
	contender_enqueue_first(lock_contend(&e->table, l), c);
	metric_add(&e->core->metrics, METRIC_WAITERS, claim_queues(c));
	heap_set(&e->core->timers, &c->timer, until);
	convert_look(e, l);
	wait_announce(e, l->contender);
}

/*
 * A quorum has the value alone, or may yet say so, and lacks nothing but the token: grants have passed it on its way. What the stores answer is beyond those,
 * so the next try has a better one.
 */
static bool convert_is_outrun(const struct engine *e, const struct round *r)
{
	struct nodeset open = r->expired ? NODESET_NONE : r->calls.open, lifted = nodeset_or(r->lifted, open);

	return nodeset_count(lifted) < engine_quorum(e) && nodeset_count(nodeset_or(lifted, r->outrun)) >= engine_quorum(e) && !r->forestalled;
}

/*
 * Readers elsewhere have shares, too; or too few stores have answered. A renewal that had its quorum, but no sure token from it, is followed by another try
 * only after the next one: so a store that never becomes sure costs no more than every other renewal.
 */
static void convert_missed(struct engine *e, struct lock *l, struct round *r)
{
	struct claim *c = TAILQ_FIRST(&l->contender->waiters);
	bool over;

	if (l->lease.renewal->upgrade && l->lease.renewal->upgrade != r)
		return; /* the stores were asked again since */
	if (convert_ready(e, l) && !c->shared && convert_is_outrun(e, r)) {
		if (nodeset_count(nodeset_or(r->lifted, r->outrun)) >= engine_quorum(e))
			together_upgrade_again(e, &l->lease);
		return;
	}
	over = together_missed(e, r);
	if (!convert_ready(e, l) || c->shared)
		return;
	if (r->forestalled)
		wait_withdraw(e, c, REFUSED_DEADLOCK);
	else if (over && !c->patient)
		wait_withdraw(e, c, nodeset_any(nodeset_without(r->granted, r->alone)) ? REFUSED_BUSY : REFUSED_QUORUM);
	else
		return;
	convert_look(e, l);
}

/* A quorum has the value alone. If another renewal was sent since, it asked to share it again; and if the request was given up, nobody wants that any more. */
static bool convert_is_won(const struct engine *e, const struct lock *l, const struct round *r)
{
	return nodeset_count(r->lifted) >= engine_quorum(e) && l->lease.renewal->upgrade == r && convert_ready(e, l) && l->holder->shared;
}

/* A renewal tells whether a writer elsewhere waits. If no store of a quorum knows of one, whoever waited has given up. */
static void convert_hear_writer(struct engine *e, struct lock *l, const struct round *r)
{
	if (!l->lease.shared || !l->share || r->form != FORM_SHARED || l->lease.state != LEASE_HELD || l->lease.value.number != r->value.number)
		return;
	if (r->writer_us)
		grant_barred(e, l, r->writer_us);
	else if (l->contender->want_since.us && nodeset_count(r->granted) >= engine_quorum(e))
		l->contender->want_since.us = 0;
}

void convert_renewed(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;
	struct lock *l = lock_of_lease(x);
	struct claim *holder;
	bool idle;

	convert_hear_writer(e, l, r);
	if (x->state == LEASE_HELD && l->share && !x->shared && l->contender->want_since.us)
		together_open(e, l);
	idle = TAILQ_EMPTY(&l->contender->waiters) && !r->token && !lock_lacks_token(l);
	if (idle || x->state != LEASE_HELD || x->value.number != r->value.number)
		return;
	if (r->form == FORM_UPGRADE && x->shared && !convert_is_won(e, l, r)) {
		convert_missed(e, l, r);
		return;
	}
	if (r->token && nodeset_count(r->lifted) < engine_quorum(e))
		return;
	if (r->form == FORM_UPGRADE && x->shared)
		together_is_alone(e, r);
	if (r->token > x->token_end) {
		x->token = r->token - 1;
		x->token_end = r->token + r->range;
		x->token_is_old = false;
		holder = convert_ready(e, l);
		if (holder && !(holder->shared && x->shared))
			convert_done(e, holder, TAILQ_FIRST(&l->contender->waiters));
	}
	if (l->share && !x->shared)
		together_open(e, l);
	convert_look(e, l);
}

void convert_withdraw(struct engine *e, const struct claim *holder)
{
	struct lock *l = holder->lock;
	struct claim *c = TAILQ_FIRST(&l->contender->waiters), *next;

	for (; c && c->converts; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (convert_hold(l, c) == holder)
			wait_withdraw(e, c, REFUSED_CANCELLED);
	}
}

void convert_forfeit(struct engine *e, const struct claim *lost)
{
	struct contender *k = lost->lock->contender;
	struct claim *c = TAILQ_FIRST(&k->waiters), *next;

	for (; c && (c->converts || e->draining); c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (claim_same_owner(c, lost) && e->draining)
			wait_withdraw(e, c, REFUSED_DRAINING);
		else if (claim_same_owner(c, lost))
			contender_reorder(k, c);
	}
}

bool convert_is_asked(const struct claim *holder)
{
	const struct claim *c = TAILQ_FIRST(&holder->lock->contender->waiters);

	return c && c->shared && !holder->shared && claim_same_owner(c, holder);
}

const struct claim *convert_rival(const struct lock *l, const struct session *session, struct span owner)
{
	const struct claim *c = TAILQ_FIRST(&l->contender->waiters);

	for (; l->share && c && c->converts; c = TAILQ_NEXT(c, in_lock)) {
		if (c->patient && !c->shared && !claim_is_of(c, session, owner))
			return c;
	}
	return NULL;
}
