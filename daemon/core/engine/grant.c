/* SPDX-License-Identifier: BSD-2-Clause */
/* How a hold begins: a round won, a hand-over, readers that join others; when an owner begins to share, and new tokens for a lease. */
#include "daemon/core/engine/holding.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/lock/lease.h"

#include <string.h>

#define AHEAD_US (10 * MSEC) /* the clocks of the daemons may differ: the others grant tokens by theirs */

/* A store refuses a floor that is too far ahead of its clock, and then it does not renew the key, either. */
static bool rebase_is_within(const struct engine *e, int64_t floor)
{
	unsigned able = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		able += member_usable(m) && m->clock.known &&
			floor <= member_server_ms_least(m, e->core->now) * MSEC + members_ahead_us(&e->members);
	}
	return able >= engine_quorum(e);
}

static int64_t rebase_least(const struct engine *e, const struct lease *x)
{
	return 1 + (e->tokens.seen > x->token_end ? e->tokens.seen : x->token_end);
}

/*
 * Stores may have given tokens to others after this daemon's last look, and may do so before the renewal arrives. A floor by the clock, like the proposals of
 * grants, exceeds those, too. If the fences are ahead of the clock, some tokens are left to the others.
 */
static int64_t rebase_token(const struct engine *e, const struct lease *x)
{
	int64_t least = rebase_least(e, x), by_clock = e->core->wall_us + AHEAD_US, ahead = least + TOKENS_AHEAD;

	ahead = by_clock > ahead ? by_clock : ahead;
	return rebase_is_within(e, ahead + TOKENS_AHEAD) ? ahead : least;
}

/* False: too few stores can be used, or the clocks of too many are too far behind their fences. */
static bool rebase_is_possible(const struct engine *e, const struct lease *x)
{
	return rebase_is_within(e, rebase_least(e, x) + TOKENS_AHEAD);
}

void rebase_begin(struct engine *e, struct round *r)
{
	struct lease *x = r->lease;

	if (!x->renewal->wants_token)
		return;
	x->renewal->wants_token = false;
	if (r->form == FORM_ALONE || !rebase_is_possible(e, x))
		return; /* it went to a writer meanwhile; or the clocks were set back, and another look follows this round */
	r->token = rebase_token(e, x);
	r->range = TOKENS_AHEAD;
	r->sure = x->placed.sure;
}

/* When this store was asked, no call that was sent earlier, over a former connection, could still set the value. */
static bool rebase_is_sure(const struct engine *e, const struct round *r, unsigned node)
{
	struct instant sent = r->calls.sent[node];

	return !instant_before(sent, calls_overtaken_until(&e->calls, node, r->lease->placed.since, sent));
}

/* If a store's fence was beyond the floor, it may have given the token to another value. */
void rebase_note(struct engine *e, struct round *r, const struct answer *a)
{
	if (a->code != 'E' && a->code != 'A')
		return;
	if (a->code == 'E' && r->token && nodeset_has(r->sure, a->node) && a->fence == round_floor(r))
		nodeset_add(&r->lifted, a->node);
	if (rebase_is_sure(e, r, a->node))
		nodeset_add(&r->lease->placed.sure, a->node);
}

#define HANDOFF_LEAST_US (50 * MSEC)
#define HANDOFF_TIME_US  (100 * MSEC)
#define HANDOFFS_MOST    64
#define LET_IN_AT_ONCE   128
#define WANT_LASTS_US    (TICKET_US + SEC)

/* For the statistics of hold times. */
void holders_count_hold(struct engine *e, const struct claim *c)
{
	int64_t held = instant_diff(e->core->now, c->granted_at);

	metric_add(&e->core->metrics, METRIC_HOLD_TOTAL, held);
	histogram_add(&e->core->metrics.hold, held);
	metric_peak(&e->core->metrics, METRIC_HOLD_LONGEST, held);
	if (c->limit == 0)
		core_name_held(e->core, lock_name(c->lock), held);
}

static inline void holders_begin(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;
	struct claim *old = c->not_notified ? NULL : lock_loss_of(l, c->session, claim_owner(c));
	int64_t waited = instant_diff(e->core->now, c->asking->asked_at);

	if (old) {
		lock_remove_loss(old); /* its client learns that it took the name again: the loss need not be remembered */
		notices_add(&e->notices, NOTICE_FORGOTTEN, old, NULL, NOT_REFUSED);
	}
	wait_leave(e, c);
	lock_add_holder(&e->table, l, c);
	c->count = 1;
	c->token = l->lease.token;
	c->granted_at = e->core->now;
	metric_add(&e->core->metrics, METRIC_GRANTS, 1);
	metric_add(&e->core->metrics, METRIC_WAIT_TOTAL, waited);
	histogram_add(&e->core->metrics.wait[RESULT_OK], waited);
	metric_peak(&e->core->metrics, METRIC_WAIT_LONGEST, waited);
	if (c->limit == 0)
		core_name_waited(e->core, lock_name(l), RESULT_OK, waited);
	notices_add(&e->notices, NOTICE_GRANTED, c, NULL, NOT_REFUSED);
}

/*
 * A LOCK whose connection was lost counts when it is repeated, not earlier: nobody waits for its answer. If the session does not know of the grant either,
 * the first repeated LOCK takes its place in the count. A LOCK with count= counts up to that.
 */
static unsigned holders_fold_twins(struct engine *e, struct claim *holder, struct claim *twin)
{
	bool notified = !holder->not_notified;
	struct claim *c, *next = twin;
	unsigned n = 0;

	while ((c = next)) {
		next = c->asking->twin_next;
		wait_leave(e, c);
		holder->count += notified && !c->not_notified && (c->asking->count == 0 || holder->count < c->asking->count);
		notified |= !c->not_notified;
		notices_add(&e->notices, NOTICE_REENTERED, c, NULL, NOT_REFUSED);
		n++;
	}
	return n;
}

static bool holders_may_fold(const struct claim *holder, const struct claim *c)
{
	return c->state == CLAIM_WAITING && c->lock == holder->lock && c->shared == holder->shared && claim_same_owner(c, holder);
}

/* Looks among the claims of its session: more of them may wait for the name. */
void holders_fold(struct engine *e, struct claim *holder)
{
	struct claim *c = TAILQ_PREV(holder, claims, in_session);

	while (c && !holders_may_fold(holder, c))
		c = TAILQ_PREV(c, claims, in_session);
	for (c = c ? c : TAILQ_NEXT(holder, in_session); c && !holders_may_fold(holder, c);)
		c = TAILQ_NEXT(c, in_session);
	while (c && c->asking->twin_before)
		c = c->asking->twin_before;
	holders_fold_twins(e, holder, c);
}

/*
 * The waiter holds the lock, with the last token that its lease has given out. Other waiting LOCKs of its owner are granted with it. Returns the number of
 * answers.
 */
static unsigned holders_add(struct engine *e, struct claim *c)
{
	unsigned n = 1;
	struct claim *before = c->asking->twin_before, *twin = c->asking->twin_next;

	while (before && before->asking->twin_before)
		before = before->asking->twin_before;
	holders_begin(e, c); /* it leaves the line, and so do those of its owner */
	if (TAILQ_EMPTY(&c->lock->contender->waiters))
		return n;
	n += holders_fold_twins(e, c, before ? before : twin);
	wait_announce(e, c->lock->contender);
	return n;
}

bool holders_are_many(const struct engine *e, const struct lock *l)
{
	return l->contender->handed_since.us && instant_diff(e->core->now, l->contender->handed_since) >= HANDOFF_TIME_US;
}

/*
 * Readers hold the lock, and for a while no daemon has reported that it waits: the one that did has given up. A daemon that waits reports that with each
 * question, every second.
 */
static bool holders_want_is_over(const struct engine *e, const struct lock *l)
{
	return l->lease.shared && l->share && instant_diff(e->core->now, l->share->want_at) > WANT_LASTS_US;
}

/* Enough of the lease is left. */
static bool holders_have_time(const struct engine *e, const struct lock *l)
{
	int64_t left = instant_diff(lock_deadline(&e->table, l), e->core->now), least = l->lease.ttl_us / 10;

	return left >= (least > HANDOFF_LEAST_US ? least : HANDOFF_LEAST_US);
}

/* And no client that polls has waited for long while the name passed from one holder to the next. */
static bool holders_may_go_on(const struct engine *e, const struct lock *l)
{
	return holders_have_time(e, l) && !(e->core->conf.foreign && holders_are_many(e, l));
}

/* Enough of the lease is left for another holder, and no other daemon has waited for it too long. */
static bool holders_may_follow(const struct engine *e, const struct lock *l)
{
	if (!holders_may_go_on(e, l))
		return false;
	return !l->contender->want_since.us || holders_want_is_over(e, l) ||
	       (l->contender->handoffs < HANDOFFS_MOST && instant_diff(e->core->now, l->contender->want_since) < HANDOFF_TIME_US);
}

static void holders_count_handoff(struct engine *e, struct lock *l)
{
	struct contender *k = lock_contend(&e->table, l);

	k->handoffs++;
	if (e->core->conf.foreign && !k->handed_since.us)
		k->handed_since = e->core->now;
	metric_add(&e->core->metrics, METRIC_HANDOFFS, 1);
}

/* A reader that joins, or would join. */
struct joiner {
	struct instant asked_at;
	int64_t priority;
};

static inline struct joiner joiner_of(const struct claim *c)
{
	return (struct joiner){c->asking->asked_at, c->priority};
}

/*
 * Where daemons share a name, a reader does not overtake a writer of another daemon that precedes it. This holds for a reader that asks now and for one that
 * waits.
 */
static bool holders_are_barred(const struct engine *e, const struct lock *l, struct joiner j)
{
	const struct contender *k = l->contender;

	if (!k->want_since.us || holders_want_is_over(e, l))
		return false;
	if (!l->share->want_us)
		return !instant_before(j.asked_at, k->want_since);
	if (j.priority == 0 && !instant_before(j.asked_at, e->core->now))
		return true; /* the report of the writer is older, whatever the clocks show */
	return ticket_place_since(e, j.asked_at, j.priority) >= l->share->want_us;
}

static bool holders_may_join(const struct engine *e, const struct lock *l, struct joiner j)
{
	const struct lease *x = &l->lease;

	if (e->draining || lock_holders(l) >= READERS_MOST)
		return false;
	if (l->lease.limit > 0) /* no hold of a mark is ever exclusive, nobody sees its token, and nobody polls for one */
		return l->share && x->state == LEASE_HELD && holders_have_time(e, l);
	if (!l->share || x->state != LEASE_HELD || x->token_is_old)
		return false;
	return x->shared ? holders_may_go_on(e, l) && !holders_are_barred(e, l, j) : holders_may_follow(e, l);
}

/* A reader that asks for a longer lease than the others gets it by the next renewal, which is due now. */
static void holders_lengthen(struct engine *e, struct lease *x, int64_t ttl_us)
{
	if (ttl_us <= x->renew_ttl_us)
		return;
	x->renew_ttl_us = ttl_us;
	x->renew_at = e->core->now;
	lease_schedule(e, x);
}

/* When the range of tokens is used up, readers share the last one: a later exclusive holder has a larger one. */
static unsigned holders_join(struct engine *e, struct lock *l, struct claim *c)
{
	unsigned n;

	if (l->lease.token < l->lease.token_end)
		l->lease.token++;
	holders_count_handoff(e, l);
	holders_lengthen(e, &l->lease, c->ttl_us);
	n = holders_add(e, c);
	if (l->lease.at_risk)
		notices_add(&e->notices, NOTICE_RISK, c, NULL, NOT_REFUSED); /* the others got it before */
	return n;
}

/*
 * Readers hold the lock: those at the head of the line join them, as long as that is allowed. A crowd joins in portions, so that nothing else waits for it.
 * False: the rest joins in the next step.
 */
static bool holders_let_in(struct engine *e, struct lock *l)
{
	struct claim *c;

	for (unsigned n = 0; (c = TAILQ_FIRST(&l->contender->waiters)) && c->shared && !c->ending && holders_may_join(e, l, joiner_of(c));) {
		if (n >= LET_IN_AT_ONCE && l->contender->state == CONTENDER_IDLE) {
			wait_look_soon(e, l->contender);
			return false;
		}
		n += holders_join(e, l, c);
	}
	return true;
}

void holders_answer(struct engine *e, struct lock *l)
{
	if (l->share && !holders_let_in(e, l))
		return;
	if (!wait_refuse_part(e, l->contender, REFUSED_BUSY, WAITERS_IMPATIENT))
		wait_look_soon(e, l->contender);
	else if (l->share)
		holders_let_in(e, l); /* those after a writer that does not wait */
}

bool holders_are_open(const struct engine *e, const struct lock *l, unsigned priority)
{
	const struct claim *first = TAILQ_FIRST(&l->contender->waiters);
	struct joiner now = {e->core->now, priority};

	return (!first || claim_yields_to(first, e->core->now, priority)) && holders_may_join(e, l, now);
}

bool holders_join_at_once(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (!holders_are_open(e, l, c->priority))
		return false;
	contender_enqueue(lock_contend(&e->table, l), c);
	metric_add(&e->core->metrics, METRIC_WAITERS, claim_queues(c));
	holders_let_in(e, l);
	return true;
}

/*
 * How a hold begins: a round won the lease for the first waiter, or a hold ends and its lease goes on to the next waiter here. hold.c has the end of a hold.
 */

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

/* A sole holder leaves the crowd, because the name counts for it now. Not if the name has losses that are remembered. */
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
		/* The round asked on the terms of a waiter that has left, or there is nobody any more whom the name may be granted to. */
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
static void adopted_rely(const struct engine *e, struct lock *l, struct claim *c)
{
	struct instant until = instant_add(e->core->now, l->lease.promised.ttl_us + drift_us(l->lease.promised.ttl_us));

	if (c->renew)
		c->relied_until = instant_max(c->relied_until, until);
	l->lease.relied_at_least = instant_max(l->lease.relied_at_least, c->relied_until);
}

void grant_adopted(struct engine *e, struct lock *l, const struct round *r)
{
	struct claim *c;

	lease_move(e, &l->lease, LEASE_HELD, CAUSE_CONFIRMED);
	adoption_over(&l->lease);
	l->lease.relied_at_least = INSTANT_PAST;
	l->lease.renew_at = l->lease.auto_renew ? adopted_renew_at(e, &l->lease, r) : INSTANT_NEVER;
	for (c = l->holder; c; c = lock_next_holder(l, c)) {
		adopted_rely(e, l, c);
		notices_add(&e->notices, NOTICE_ADOPTED, c, NULL, NOT_REFUSED);
		if (c->asked_again)
			holders_fold(e, c);
	}
	if (l->share)
		holders_answer(e, l);
	lease_schedule(e, &l->lease);
}

/*
 * Local hand-over: the next waiter gets the lease as it is, with the next token of its range, without a round. That needs the same terms and enough validity,
 * and it is bounded as soon as a daemon elsewhere wants the name. Source: lock cohorting, Dice, Marathe, Shavit 2012.
 * See ALGORITHMS.md, Hand-over.
 */
static bool lock_may_be_handed_on(const struct engine *e, const struct lock *l)
{
	const struct claim *next = TAILQ_FIRST(&l->contender->waiters);

	if (next && !next->shared && lock_is_haunted(l, e->core->now))
		return false;
	if (l->lease.shared)
		return false; /* readers elsewhere may have it, and a reader that waits here has not joined because it would overtake a writer */
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
	l->lease.token_is_old = false; /* this token belongs to no earlier hold */
	lease_safe(e, &l->lease);
	holders_add(e, TAILQ_FIRST(&l->contender->waiters));
	grant_alone(l);
	holders_let_in(e, l);
	/* The lease is renewed at once. If that fails, RISK is sent to the new holder, and the lease is in the list of those at risk again. */
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

/* A reader may be waiting, which may join if the stores share the lease. */
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

/* The token of the lease may be that of an exclusive hold. A reader that would join needs a token that no exclusive hold had. */
static bool lock_lacks_token(const struct lock *l)
{
	return l->share && l->lease.token_is_old;
}

/* The next renewal asks for a token, and is due now. */
static void convert_want_token(struct engine *e, struct lease *x)
{
	struct renewal *b = lease_renewal(&e->table, x);

	if (b->wants_token || b->round || !rebase_is_possible(e, x))
		return; /* each round that ends is followed by another look */
	b->wants_token = true;
	shared_lease_ask_again(e, x, e->core->now);
}

void convert_look(struct engine *e, struct lock *l)
{
	if (l->lease.shared)
		shared_lease_line_up(e, l);
	if (l->lease.state == LEASE_HELD && lock_lacks_token(l))
		convert_want_token(e, &l->lease);
	else if (l->share)
		holders_let_in(e, l);
}

void convert_to_shared(struct engine *e, struct claim *holder)
{
	struct lock *l = holder->lock;

	lock_remove_holder(l, holder);
	holder->shared = true;
	lock_add_holder(&e->table, l, holder);
	l->lease.token_is_old = true;
	convert_look(e, l);
}

/* A renewal shows whether a writer elsewhere waits. If no store of a quorum knows of one, that writer has given up. */
static void convert_see_writer(struct engine *e, struct lock *l, const struct round *r)
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
	bool idle;

	convert_see_writer(e, l, r);
	if (x->state == LEASE_HELD && l->share && !x->shared && l->contender->want_since.us)
		shared_lease_open(e, l);
	idle = TAILQ_EMPTY(&l->contender->waiters) && !r->token && !lock_lacks_token(l);
	if (idle || x->state != LEASE_HELD || x->value.number != r->value.number)
		return;
	if (r->token && nodeset_count(r->lifted) < engine_quorum(e))
		return;
	if (r->token > x->token_end) {
		x->token = r->token - 1;
		x->token_end = r->token + r->range;
		x->token_is_old = false;
	}
	if (l->share && !x->shared)
		shared_lease_open(e, l);
	convert_look(e, l);
}
