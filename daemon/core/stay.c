/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/stay.h"

#include "daemon/core/move.h"
#include "daemon/core/wait.h"
#include "daemon/core/waiters.h"

#define ASK_APART_US (20 * MSEC) /* a renewal that failed is not followed by another at once */

struct instant stay_tell_at(const struct claim *c)
{
	return claim_has_end(c) ? instant_add(c->ends, -loss_lead_us(c->ends_ttl_us)) : INSTANT_NEVER;
}

/* It ends a ttl after that moment. */
static void stay_reckon(struct claim *c, struct instant from, int64_t ttl_us)
{
	c->ends_ttl_us = ttl_us;
	c->ends = vote_until(from, ttl_us);
}

/* A timer that fires too soon finds nobody whose time is over, and is set anew. */
static void stay_watch(struct engine *e, const struct claim *c)
{
	struct timer *t = &c->lock->share->timer;

	if (!timer_is_set(t) || instant_before(stay_tell_at(c), t->at))
		heap_set(&e->core->timers, t, stay_tell_at(c));
}

void stay_begin(struct engine *e, struct claim *c)
{
	stay_reckon(c, e->core->now, c->ttl_us);
	stay_watch(e, c);
}

void stay_cap(struct engine *e, struct claim *c, struct instant until)
{
	if (instant_before(until, c->ends))
		c->ends_ttl_us = c->ttl_us;
	c->ends = instant_min(c->ends, until);
	stay_watch(e, c);
}

static void stay_renew_at(struct engine *e, struct lease *x, struct instant at)
{
	if (!instant_before(at, x->renew_at))
		return;
	x->renew_at = at;
	lease_schedule(e, x);
}

/* Whether somebody holds it for longer than its votes last. */
static bool stay_is_wanted(const struct engine *e, const struct lock *l)
{
	struct instant end = lock_deadline(&e->table, l);

	if (l->share->renewed > 0)
		return true;
	for (const struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		if (instant_before(end, c->ends))
			return true;
	return false;
}

/* Nothing but the watchdog wants to renew it. */
static bool stay_is_quiet(const struct lock *l)
{
	const struct renewal *b = l->lease.renewal;

	return TAILQ_EMPTY(&l->contender->waiters) && TAILQ_EMPTY(&b->extends) && !b->wants_token && !b->mends;
}

void stay_keep(struct engine *e, struct lock *l)
{
	struct lease *x = &l->lease;
	bool wanted;

	if (!l->share || x->limit > 0 || x->state != LEASE_HELD)
		return;
	wanted = stay_is_wanted(e, l);
	if (wanted == x->auto_renew)
		return;
	x->auto_renew = wanted;
	if (wanted) {
		stay_renew_at(e, x, instant_max(e->core->now, instant_add(lock_deadline(&e->table, l), -2 * x->ttl_us / 3)));
		return;
	}
	lease_safe(e, x);
	if (stay_is_quiet(l))
		x->renew_at = INSTANT_NEVER;
	lease_schedule(e, x);
}

struct terms {
	int64_t ttl_us, delay_us;
};

static void terms_add(struct terms *t, const struct claim *c)
{
	t->ttl_us = c->ttl_us > t->ttl_us ? c->ttl_us : t->ttl_us;
	t->delay_us = c->delay_us > t->delay_us ? c->delay_us : t->delay_us;
}

/* What those who hold the lock ask of its lease, and those who are about to join. Notes whether there are any. */
static struct terms stay_terms(const struct lock *l)
{
	struct terms t = {.ttl_us = l->lease.ttl_us};

	for (const struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		terms_add(&t, c);
	if (!l->share->joining)
		return t;
	l->share->joining = false;
	for (const struct claim *c = TAILQ_FIRST(&l->contender->waiters); c; c = TAILQ_NEXT(c, in_lock)) {
		if (!c->joins)
			continue;
		l->share->joining = true;
		terms_add(&t, c);
	}
	return t;
}

/* The lease has no lock-delay that nobody asks for any more. Its keys may allow for more, until they are renewed. */
static void stay_lower_delay(struct lock *l, int64_t most_us)
{
	l->lease.delay_us = l->lease.delay_us < most_us ? l->lease.delay_us : most_us;
	l->share->delay_us = l->share->delay_us < most_us ? l->share->delay_us : most_us;
}

/* The records of those who hold it say what they and the others keep from writers. Those that end in this step are no more when notices are told. */
static void stay_record(struct engine *e, const struct lock *l)
{
	for (struct claim *c = l->holder; c; c = lock_next_holder(l, c))
		if (!c->ending)
			notices_add(&e->notices, NOTICE_LENGTHENS, c, NULL, NOT_REFUSED);
}

void stay_parted(struct engine *e, struct lock *l)
{
	if (l->lease.delay_us > 0 || instant_before(e->core->now, l->share->kept_until))
		stay_record(e, l);
	if (l->lease.delay_us > 0)
		stay_lower_delay(l, stay_terms(l).delay_us);
	stay_keep(e, l);
}

/* Renewals ask for less again, unless the lease would then end before the moment that its holders may have been told of. */
void stay_settle(const struct engine *e, struct lock *l)
{
	struct lease *x = &l->lease;
	struct terms t;

	if (!l->share->joining)
		return;
	t = stay_terms(l);
	stay_lower_delay(l, t.delay_us);
	if (t.ttl_us < x->renew_ttl_us && !instant_before(vote_until(e->core->now, t.ttl_us), lock_deadline(&e->table, l)))
		x->renew_ttl_us = t.ttl_us;
}

bool stay_lacks(const struct engine *e, const struct lock *l, const struct claim *c)
{
	int64_t left = instant_diff(lock_deadline(&e->table, l), e->core->now);

	if (l->lease.limit > 0)
		return false;
	return c->delay_us > l->share->delay_us || (claim_has_end(c) && 2 * left < c->ttl_us);
}

void stay_await(struct engine *e, struct claim *c)
{
	int64_t us = 3 * e->core->conf.timeout_us;

	c->joins = c->lock->share->joining = true;
	if (!c->patient && !timer_is_set(&c->timer))
		heap_set(&e->core->timers, &c->timer, instant_add(c->asking->asked_at, us < WAITERS_HURRY_US ? us : WAITERS_HURRY_US));
}

bool stay_is_joining(const struct claim *c)
{
	const struct lock *l = c->lock;
	const struct claim *at = c->joins && l->share && l->lease.state == LEASE_HELD ? TAILQ_FIRST(&l->contender->waiters) : NULL;

	while (at && at->joins && at != c)
		at = TAILQ_NEXT(at, in_lock);
	return at && at->joins;
}

/* Without a quorum of usable stores each renewal is missed as soon as it begins. */
static int64_t stay_apart_us(const struct engine *e, const struct lease *x)
{
	int64_t us = x->ttl_us / 20;

	return members_usable(&e->members) < engine_quorum(e) && us > ASK_APART_US ? us : ASK_APART_US;
}

void stay_ask(struct engine *e, struct lock *l)
{
	struct lease *x = &l->lease;
	struct claim *c = TAILQ_FIRST(&l->contender->waiters);
	struct instant at = instant_max(e->core->now, instant_add(l->share->asked_at, stay_apart_us(e, x)));

	stay_settle(e, l);
	if (c->delay_us > x->delay_us) {
		x->delay_us = c->delay_us;
		stay_record(e, l);
	}
	x->renew_ttl_us = c->ttl_us > x->renew_ttl_us ? c->ttl_us : x->renew_ttl_us;
	for (; c && c->shared; c = TAILQ_NEXT(c, in_lock))
		stay_await(e, c);
	lease_renewal(&e->table, x)->wanted = true;
	if (x->renewal->round || !instant_before(at, x->renew_at))
		return; /* a round that is under way is followed by another look */
	l->share->asked_at = at;
	stay_renew_at(e, x, at);
}

void stay_turn_away(struct engine *e, struct lock *l)
{
	struct claim *c = l->share->joining ? TAILQ_FIRST(&l->contender->waiters) : NULL, *next;

	for (; c; c = next) {
		next = TAILQ_NEXT(c, in_lock);
		if (!c->joins)
			continue;
		c->joins = false;
		if (!c->patient)
			wait_withdraw(e, c, REFUSED_BUSY);
	}
	stay_settle(e, l);
}

void stay_renewed(struct engine *e, struct lock *l, const struct round *r)
{
	struct pending *p = TAILQ_FIRST(&l->lease.renewal->extends);

	if (!l->share)
		return;
	stay_settle(e, l);
	l->share->delay_us = r->delay_us < l->lease.delay_us ? r->delay_us : l->lease.delay_us;
	for (unsigned i = 0; i < r->extends && p; i++, p = TAILQ_NEXT(p, in_lease)) {
		if (!claim_has_end(p->claim))
			continue;
		stay_reckon(p->claim, p->asked_at, p->claim->ttl_us < r->ttl_us ? p->claim->ttl_us : r->ttl_us);
		stay_watch(e, p->claim);
	}
	stay_keep(e, l);
}
