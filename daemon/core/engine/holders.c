/* SPDX-License-Identifier: BSD-2-Clause */
/* See holders.h. */
#include "daemon/core/engine/holders.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/engine/ticket.h"
#include "daemon/core/engine/wait.h"

#define HANDOFF_LEAST_US (50 * MSEC)
#define HANDOFF_TIME_US  (100 * MSEC)
#define HANDOFFS_MOST    64
#define LET_IN_AT_ONCE   128
#define WANT_LASTS_US    (TICKET_US + SEC)

/* For the figures of how long locks are held. */
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
		lock_remove_loss(old); /* its client hears that it took the name anew: the loss need not be remembered */
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
 * A LOCK whose connection was lost is counted when it is repeated, not before: nobody waits for its answer. If the session was not notified of the grant
 * either, the first repeated LOCK takes its place in the count. One with count= counts up to that.
 */
static unsigned holders_fold_twins(struct engine *e, struct claim *holder, struct claim *twin)
{
	bool heard = !holder->not_notified;
	struct claim *c, *next = twin;
	unsigned n = 0;

	while ((c = next)) {
		next = c->asking->twin_next;
		wait_leave(e, c);
		holder->count += heard && !c->not_notified && (c->asking->count == 0 || holder->count < c->asking->count);
		heard |= !c->not_notified;
		notices_add(&e->notices, NOTICE_REENTERED, c, NULL, NOT_REFUSED);
		n++;
	}
	return n;
}

static bool holders_may_fold(const struct claim *holder, const struct claim *c)
{
	return c->state == CLAIM_WAITING && c->lock == holder->lock && c->shared == holder->shared && claim_same_owner(c, holder);
}

/* Looks among the claims of its session: more may wait for the name. */
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

unsigned holders_add(struct engine *e, struct claim *c)
{
	unsigned n = 1;
	struct claim *before = c->asking->twin_before, *twin = c->asking->twin_next;

	while (before && before->asking->twin_before)
		before = before->asking->twin_before;
	holders_begin(e, c); /* it leaves the line, and those of its owner */
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

/* A daemon that waits says so with each question, every second. */
bool holders_want_is_over(const struct engine *e, const struct lock *l)
{
	return l->lease.shared && l->share && instant_diff(e->core->now, l->share->want_at) > WANT_LASTS_US;
}

/* Enough of the lease is left. */
static bool holders_have_time(const struct engine *e, const struct lock *l)
{
	int64_t left = instant_diff(lock_deadline(&e->table, l), e->core->now), least = l->lease.ttl_us / 10;

	return left >= (least > HANDOFF_LEAST_US ? least : HANDOFF_LEAST_US);
}

/* And no client that polls has waited for long while the name went from one to the next. */
static bool holders_may_go_on(const struct engine *e, const struct lock *l)
{
	return holders_have_time(e, l) && !(e->core->conf.foreign && holders_are_many(e, l));
}

bool holders_may_follow(const struct engine *e, const struct lock *l)
{
	if (!holders_may_go_on(e, l))
		return false;
	return !l->contender->want_since.us || holders_want_is_over(e, l) ||
	       (l->contender->handoffs < HANDOFFS_MOST && instant_diff(e->core->now, l->contender->want_since) < HANDOFF_TIME_US);
}

void holders_count_handoff(struct engine *e, struct lock *l)
{
	struct contender *k = lock_contend(&e->table, l);

	k->handoffs++;
	if (e->core->conf.foreign && !k->handed_since.us)
		k->handed_since = e->core->now;
	metric_add(&e->core->metrics, METRIC_HANDOFFS, 1);
}

/* A reader that joins, or would. */
struct joiner {
	struct instant asked_at;
	int64_t priority;
};

static inline struct joiner joiner_of(const struct claim *c)
{
	return (struct joiner){c->asking->asked_at, c->priority};
}

/* Where daemons share a name, a reader does not pass a writer of another daemon that stands before it, be it that the reader comes now or waits here. */
static bool holders_are_barred(const struct engine *e, const struct lock *l, struct joiner j)
{
	const struct contender *k = l->contender;

	if (!k->want_since.us || holders_want_is_over(e, l))
		return false;
	if (!l->share->want_us)
		return !instant_before(j.asked_at, k->want_since);
	if (j.priority == 0 && !instant_before(j.asked_at, e->core->now))
		return true; /* what was heard of the writer comes from before, whatever the clocks say */
	return ticket_place_since(e, j.asked_at, j.priority) >= l->share->want_us;
}

static bool holders_may_join(const struct engine *e, const struct lock *l, struct joiner j)
{
	const struct lease *x = &l->lease;

	if (e->draining || lock_holders(l) >= READERS_MOST)
		return false;
	if (l->lease.limit > 0) /* no hold of a mark is ever exclusive, nobody is told its token, and nobody polls for one */
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

/* When the range of tokens is used up, readers share the last one: whoever is exclusive after them has a larger one. */
static unsigned holders_join(struct engine *e, struct lock *l, struct claim *c)
{
	unsigned n;

	if (l->lease.token < l->lease.token_end)
		l->lease.token++;
	holders_count_handoff(e, l);
	holders_lengthen(e, &l->lease, c->ttl_us);
	n = holders_add(e, c);
	if (l->lease.at_risk)
		notices_add(&e->notices, NOTICE_RISK, c, NULL, NOT_REFUSED); /* the others were told before */
	return n;
}

bool holders_let_in(struct engine *e, struct lock *l)
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
		holders_let_in(e, l); /* those behind a writer that does not wait */
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
