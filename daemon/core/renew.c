/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog's round: every usable node renews the key, with the token as the floor of its fence. Where the key is missing it is put back, but only
 * while a quorum of the other votes still stands: what comes later is refused, or the next run of the daemon would take it for a proof that the lock was
 * held all the time. When so many stores had lost it that somebody else may have held the lock, the lock is lost. At most one EXTEND of a value is in flight
 * to a store, so answers come in order.
 * See ALGORITHMS.md, Renewal.
 */
#include "daemon/core/renew.h"

#include "daemon/core/admit.h"
#include "daemon/core/adoption.h"
#include "daemon/core/ask.h"
#include "daemon/core/hold.h"
#include "daemon/core/move.h"

#include <string.h>

#define RETRY_LEAST_US (20 * MSEC)

/* Until when the votes of the other stores are a quorum without this one. */
static struct instant others_hold(const struct engine *e, const struct lock *l, unsigned node)
{
	struct votes others = l->lease.votes;

	others.until[node] = INSTANT_PAST;
	return votes_deadline(&others, e->core->conf.nodes);
}

static void renew_ask(struct engine *e, struct round *r, unsigned node)
{
	struct lock *l = lock_of_lease(r->lease);
	struct instant vote = vote_until(e->core->now, r->ttl_us);
	bool alive = instant_before(e->core->now, l->lease.votes.until[node]);
	struct instant put_back = others_hold(e, l, node);
	struct span from;

	if (!alive && !instant_before(e->core->now, put_back))
		return;
	/* The stores keep a key no shorter than before. But a shorter lease that is asked for counts from now on. */
	if (!MUTATED(SHORTER_TTL_LATE))
		l->lease.votes.until[node] = instant_min(l->lease.votes.until[node], vote);
	if (adoption_is_left(l, node, &from))
		ask_adopt(&e->calls, r, node, l->lease.fence_end, from);
	else
		ask_extend(&e->calls, r, node, l->lease.fence_end + (MUTATED(RANGE_EXTENDED) ? l->waiting : 0), put_back);
	nodeset_add(&l->lease.unanswered, node);
	nodeset_add(&l->lease.renewed, node);
}

static void renew_close(struct engine *e, struct round *r, enum refusal why)
{
	struct lock *l = lock_of_lease(r->lease);

	lease_end_round(l);
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
	notices_extended(&e->notices, l, r->extends, why);
	lease_schedule(e, l);
	if (!TAILQ_EMPTY(&l->extends)) {
		l->lease.renew_at = e->core->now; /* an EXTEND came while the round was under way */
		lease_schedule(e, l);
	}
}

/* No renewal is worth more than the present terms: a late one may have been asked for on longer terms. */
static int64_t renew_worth_us(const struct lock *l, const struct round *r)
{
	int64_t most_us = l->lease.ttl_us > l->lease.renew_ttl_us ? l->lease.ttl_us : l->lease.renew_ttl_us;

	return r->ttl_us < most_us ? r->ttl_us : most_us;
}

static void renew_succeeded(struct engine *e, struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);
	int64_t worth_us = renew_worth_us(l, r), stands_us = instant_diff(lock_deadline(&e->table, l), r->calls.begun);

	/* While answers came, EXTENDs may have asked for a shorter lease and then for a longer one: votes from between count for less. */
	if (2 * stands_us < worth_us)
		worth_us = stands_us;
	metric_add(&e->core->metrics, METRIC_RENEWALS, 1);
	l->lease.promised.ttl_us = r->ttl_us; /* no vote is worth more from now on: see renew_vote */
	l->lease.promised.until = lock_deadline(&e->table, l);
	l->lease.ttl_us = MUTATED(SHORTER_LOST) ? r->ttl_us : worth_us;
	if (MUTATED(RANGE_EXTENDED))
		l->lease.fence_end += l->waiting;
	l->lease.renew_at = l->holder->renew ? instant_add(r->calls.begun, worth_us / 3) : INSTANT_NEVER;
	if (l->lease.at_risk)
		notices_add(&e->notices, NOTICE_SAFE, l->holder, NULL, REFUSED_NOT);
	lease_safe(e, l);
	renew_close(e, r, REFUSED_NOT);
}

static void renew_risk(struct engine *e, struct lock *l)
{
	if (l->lease.at_risk)
		return;
	metric_add(&e->core->metrics, METRIC_RISKS, 1);
	notices_add(&e->notices, NOTICE_RISK, l->holder, NULL, REFUSED_NOT);
	lease_at_risk(e, l);
}

static void renew_missed(struct engine *e, struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);
	int64_t pause = l->lease.ttl_us / 20;
	/* Without a quorum renew_overdue does it, when there is one. */
	bool again = l->holder->renew && members_usable(&e->members) >= engine_quorum(e);

	metric_add(&e->core->metrics, METRIC_RENEWALS_MISSED, 1);
	l->lease.renew_at = again ? instant_add(e->core->now, pause < RETRY_LEAST_US ? RETRY_LEAST_US : pause) : INSTANT_NEVER;
	if (l->holder->renew)
		renew_risk(e, l);
	renew_close(e, r, REFUSED_QUORUM);
}

static void renew_decide(struct engine *e, struct round *r)
{
	struct nodeset open = r->expired ? NODESET_NONE : r->calls.open;

	if (nodeset_count(r->granted) >= engine_quorum(e))
		renew_succeeded(e, r);
	else if (nodeset_count(nodeset_or(r->granted, open)) < engine_quorum(e))
		renew_missed(e, r);
	else
		lease_schedule(e, lock_of_lease(r->lease)); /* a store that denies the key has brought the deadline nearer */
}

static bool renew_may_ask(const struct member *m)
{
	return (member_usable(m) && !flow_is_full(&m->flow)) || (MUTATED(GUARD_SKIPS_RENEWALS) && m->state == MEMBER_QUARANTINED);
}

/* It may be admitted too late. Tells the holder RISK, or returns until when that is not necessary. */
static struct instant renew_warn(struct engine *e, struct lock *l)
{
	struct instant low = instant_add(lock_deadline(&e->table, l), -l->lease.ttl_us / 3);

	if (!l->holder->renew || l->lease.at_risk || MUTATED(RISK_UNADMITTED))
		return INSTANT_NEVER;
	if (instant_before(e->core->now, low))
		return low;
	renew_risk(e, l);
	return INSTANT_NEVER;
}

void renew_due(struct engine *e, struct lock *l)
{
	struct instant half = instant_add(lock_deadline(&e->table, l), -l->lease.ttl_us / 2);

	if (admit(e, &l->lease.entry, half)) {
		renew_begin(e, l);
		return;
	}
	l->lease.renew_at = renew_warn(e, l);
	lease_schedule(e, l);
}

/*
 * A longer lease is in the journal before the stores are asked for it: they may grant it, and CHECK, SAFE or RESUME tell of it, although EXTEND was
 * answered ERR.
 */
static void renew_promise(struct engine *e, const struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);
	struct instant until = vote_until(e->core->now, r->ttl_us);
	bool later = !l->holder->renew && instant_before(l->lease.promised.until, until);

	if (r->ttl_us <= l->lease.promised.ttl_us && !later)
		return;
	lease_promise(&l->lease, r->ttl_us, until);
	if (!MUTATED(PROMISE_UNRECORDED))
		notices_add(&e->notices, NOTICE_LENGTHENS, l->holder, NULL, REFUSED_NOT);
}

void renew_begin(struct engine *e, struct lock *l)
{
	struct round *r = round_new(&e->rounds, QUESTION_RENEW, &l->name, &l->lease);
	struct pending *p;

	admission_leave(&e->admission, &l->lease.entry);
	l->round = r;
	r->ttl_us = l->lease.renew_ttl_us;
	r->px_us = r->ttl_us + l->lease.delay_us;
	l->lease.ttl_us = r->ttl_us < l->lease.ttl_us ? r->ttl_us : l->lease.ttl_us;
	TAILQ_FOREACH(p, &l->extends, in_lock)
		r->extends++;
	renew_promise(e, r);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (renew_may_ask(&e->members.node[i]) && !nodeset_has(l->lease.unanswered, i))
			renew_ask(e, r, i);
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
	l->lease.renew_at = INSTANT_NEVER;
	lease_schedule(e, l);
	if (nodeset_count(r->calls.asked) < engine_quorum(e)) {
		/* Not enough nodes to ask: missed before it began. Those asked may still answer. */
		renew_missed(e, r);
		retire_round(e, r);
	}
}

/* The key was there when this store was asked, after the last missing key had been put back: so the two were not missing at the same time. */
static void renew_confirm(const struct engine *e, struct lock *l, const struct round *r, unsigned node)
{
	struct nodeset standing = NODESET_NONE;

	if (!nodeset_any(l->lease.denied) || instant_before(r->calls.sent[node], l->lease.denied_at))
		return;
	nodeset_add(&l->lease.confirmed, node);
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (instant_before(e->core->now, l->lease.votes.until[i]))
			nodeset_add(&standing, i);
	if (!nodeset_any(nodeset_without(standing, l->lease.confirmed)))
		l->lease.denied = NODESET_NONE;
}

/*
 * The key was missing, or another's, although the vote of this store stands even now: somebody deleted it. If the vote is over by now, the key may just have
 * expired.
 */
static void renew_deny(struct engine *e, struct lock *l, const struct answer *a)
{
	if (!instant_before(e->core->now, l->lease.votes.until[a->node]))
		return;
	nodeset_add(&l->lease.denied, a->node);
	l->lease.denied_at = e->core->now;
	l->lease.confirmed = NODESET_NONE;
	if (a->code != 'A')
		return;
	metric_add(&e->core->metrics, METRIC_REASSERTIONS, 1);
	if (core_may_log(e->core, BURST_REASSERTED))
		core_log(e->core, LOG_NOTICE, "reasserted", "name=%s node=%s", core_quoted(e->core, lock_name(l)), e->core->conf.label[a->node]);
}

/*
 * Whether somebody else may have held it: the key may have been missing at so many nodes at once that the others are no quorum. That it was put back
 * there since changes nothing.
 */
static bool renew_is_evicted(const struct engine *e, const struct lock *l, const struct answer *a)
{
	struct votes truthful = l->lease.votes;
	bool tells = nodeset_any(l->lease.denied) && a->class == ANSWER_EXECUTED && a->code && strchr("ABKM", a->code);

	if (!tells)
		return false;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(l->lease.denied, i))
			truthful.until[i] = INSTANT_PAST;
	return !instant_before(e->core->now, votes_deadline(&truthful, e->core->conf.nodes));
}

/* No vote gets lower: the key stands, and a renewal never shortens it. */
static struct instant renew_vote(const struct lock *l, const struct round *r, unsigned node)
{
	return instant_max(l->lease.votes.until[node], vote_until(r->calls.sent[node], renew_worth_us(l, r)));
}

/* A store lets no key end sooner than before, so it may stand for longer than this run has asked for. */
static void renew_note_end(const struct engine *e, struct lock *l, const struct answer *a)
{
	int64_t left = a->pttl_ms * MSEC;

	l->lease.px_until = instant_max(l->lease.px_until, instant_add(e->core->now, left + left / 50));
}

/* The key is not there, but a command that was sent over an earlier connection may still set it. An adoption sets nothing where nothing is. */
static bool renew_may_yet_be_placed(const struct engine *e, const struct lock *l, unsigned node)
{
	return l->lease.state != LEASE_ADOPTING && instant_before(e->core->now, calls_astray_until(&e->calls, node, l->lease.value_since, e->core->now));
}

/* What an executed renewal says of the key: its vote, or that the key is not ours. */
static void renew_note_vote(struct engine *e, struct lock *l, const struct round *r, const struct answer *a)
{
	switch (a->code) {
	case 'E':
		renew_confirm(e, l, r, a->node);
		renew_note_end(e, l, a);
		adoption_note(l, a->node);
		l->lease.votes.until[a->node] = renew_vote(l, r, a->node);
		break;
	case 'A':
		renew_deny(e, l, a);
		adoption_note(l, a->node);
		l->lease.votes.until[a->node] = nodeset_has(r->granted, a->node) ? renew_vote(l, r, a->node) : INSTANT_PAST;
		break;
	case 'B':
	case 'K':
	case 'M':
		if (MUTATED(VOTE_KEPT))
			break;
		if (a->code == 'B')
			hold_contested(e, l);
		renew_deny(e, l, a);
		adoption_note_none(&e->calls, l, a->node, r->calls.sent[a->node]);
		if (a->code != 'M')
			adoption_note_other(l, a->node);
		l->lease.votes.until[a->node] = INSTANT_PAST;
		if (!renew_may_yet_be_placed(e, l, a->node))
			nodeset_remove(&l->lease.placed, a->node);
		break;
	default: /* Q, F: nothing was changed */
		break;
	}
}

/* A quorum has renewed it after all: the stores were slow. They need no second question, unless an EXTEND waits for its answer. */
static void renew_came_late(struct engine *e, struct round *r)
{
	struct lock *l = lock_of_lease(r->lease);

	if (!l->holder->renew)
		return;
	l->lease.ttl_us = renew_worth_us(l, r);
	if (TAILQ_EMPTY(&l->extends)) {
		admission_leave(&e->admission, &l->lease.entry);
		l->lease.renew_at = instant_max(e->core->now, instant_add(r->calls.begun, l->lease.ttl_us / 3));
	}
	notices_add(&e->notices, NOTICE_SAFE, l->holder, NULL, REFUSED_NOT);
	lease_safe(e, l);
	lease_schedule(e, l);
}

enum renew_outcome renew_answered(struct engine *e, struct round *r, const struct answer *a)
{
	struct lock *l = lock_of_lease(r->lease);

	if (l->lease.value.ticket != r->value.ticket)
		return RENEW_GOES_ON;
	lease_note_answer(&l->lease, a);
	if (l->lease.state != LEASE_HELD && l->lease.state != LEASE_ADOPTING)
		return RENEW_GOES_ON;
	if (a->class == ANSWER_EXECUTED)
		renew_note_vote(e, l, r, a);
	else if (MUTATED(UNKNOWN_COUNTED) && a->class == ANSWER_UNKNOWN)
		l->lease.votes.until[a->node] = vote_until(r->calls.sent[a->node], r->ttl_us);
	if (l->lease.state == LEASE_ADOPTING)
		return RENEW_ADOPTS;
	if (renew_is_evicted(e, l, a))
		return RENEW_EVICTED;
	if (lock_is_over(&e->table, l))
		return RENEW_OVER;
	if (!r->decided)
		renew_decide(e, r);
	else if (l->lease.at_risk && !l->round && nodeset_count(r->granted) == engine_quorum(e) && nodeset_has(r->granted, a->node))
		renew_came_late(e, r);
	else
		lease_schedule(e, l);
	return RENEW_GOES_ON;
}

enum renew_outcome renew_expired(struct engine *e, struct round *r)
{
	/* If this process was stopped for long, the lease may be over: that comes first. */
	if (lock_is_over(&e->table, lock_of_lease(r->lease)))
		return RENEW_OVER;
	renew_decide(e, r);
	return RENEW_GOES_ON;
}

void renew_overdue(struct engine *e)
{
	struct lock *l;

	/* By their timers, once the lists are not being walked. */
	TAILQ_FOREACH(l, &e->adopting, in_risk)
		heap_set(&e->core->timers, &l->timer, e->core->now);
	TAILQ_FOREACH(l, &e->risks, in_risk) {
		if (l->round)
			continue;
		l->lease.renew_at = e->core->now;
		lease_schedule(e, l);
	}
}
