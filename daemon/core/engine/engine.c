/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each event goes to those whom it concerns: an answer to its round, a timer to its owner, a store that came back to those that wait for one. The outcome of a
 * round is a value, on which round_done.c acts. No file of the core that stands before engine in tests/order.sh calls this one.
 */
#include "daemon/core/engine/engine.h"

#include "daemon/core/engine/acquire.h"
#include "daemon/core/engine/admission_wait.h"
#include "daemon/core/engine/adopt.h"
#include "daemon/core/engine/round_done.h"
#include "daemon/core/engine/convert.h"
#include "daemon/core/engine/hold.h"
#include "daemon/core/engine/holders.h"
#include "daemon/core/engine/lease_owner.h"
#include "daemon/core/engine/votes_fall.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/engine/release.h"
#include "daemon/core/engine/renew.h"
#include "daemon/core/engine/retry.h"
#include "daemon/core/engine/ticket.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/engine/waiters.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/member.h"
#include "daemon/core/round/home.h"
#include "daemon/core/round/round.h"

bool engine_may_extend(const struct lock *l)
{
	const struct pendings *extends = &l->lease.renewal->extends;

	return TAILQ_EMPTY(extends) || TAILQ_LAST(extends, pendings)->nth - TAILQ_FIRST(extends)->nth < EXTENDS_MOST - 1;
}

void engine_extend(struct engine *e, struct claim *c, struct pending *p)
{
	struct lock *l = c->lock;
	struct pendings *extends = &lease_renewal(&e->table, &l->lease)->extends;

	p->nth = TAILQ_EMPTY(extends) ? 0 : TAILQ_LAST(extends, pendings)->nth + 1;
	p->asked_at = e->core->now;
	p->claim = c;
	TAILQ_INSERT_TAIL(extends, p, in_lease);
	l->lease.renew_ttl_us = lock_extended_ttl(l);
	if (!l->lease.renewal->round)
		renew_due(e, &l->lease);
}

/* More are to be let in, or to be refused, than one step answers. */
static void contender_answer_crowd(struct engine *e, struct contender *k, struct lock *l)
{
	convert_look(e, l);
	if (contender_hurried(k) > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_CLOSING))
		holders_answer(e, l);
}

/* It is time to ask again. Before that, overdue claims are refused, but for what is left of a crowd: the next round says why. */
static void contender_fired(struct engine *e, struct contender *k)
{
	bool crowd = k->crowd;

	k->crowd = false;
	if (contender_is_between_rounds(k) && (crowd || wait_continue(e, k, waiters_overdue_why(k), WAITERS_OVERDUE)))
		acquire_begin(e, k, CAUSE_TIMER);
	else if (k->state == CONTENDER_IDLE)
		contender_answer_crowd(e, k, lock_of_contender(k));
}

static void lease_held_fired(struct engine *e, struct lease *x)
{
	if (lease_loss_is_due(x, e->core->conf.nodes, e->core->now))
		lease_owner_expire(e, x);
	else if (!x->renewal->round)
		renew_due(e, x);
	else
		x->renew_at = INSTANT_NEVER, lease_schedule(e, x); /* the round under way sets it */
}

static void lease_fired(struct engine *e, struct lease *x)
{
	switch (x->state) {
	case LEASE_HELD:
		lease_held_fired(e, x);
		break;
	case LEASE_ADOPTING:
		round_done_adoption(e, x, NULL, adopt_fired(e, x));
		break;
	case LEASE_CLOSING:
		hold_belief_over(e, lock_of_lease(x));
		break;
	case LEASE_NONE:
	case LEASE_N:
		break;
	}
}

/* The claim waits for a name that this daemon has, or may have from the previous run. An impatient claim is here for the adoption. */
static void claim_waited_for_own(struct engine *e, struct claim *c, const struct lease *x)
{
	if (c->patient)
		wait_withdraw(e, c, REFUSED_TIMEOUT);
	else if (x->state != LEASE_CLOSING)
		wait_withdraw(e, c, x->renewal->entry.waits ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM);
}

/* The claim has waited long enough. Or it was granted while its session was away, and the client has not asked for it. */
static void claim_fired(struct engine *e, struct claim *c)
{
	struct lock *l = c->lock;

	if (c->state == CLAIM_HELD) {
		hold_lapse(e, c);
	} else if (c->state == CLAIM_LOST) {
		hold_forget_late(e, c);
	} else if (l->lease.state != LEASE_NONE) {
		claim_waited_for_own(e, c, &l->lease);
		convert_look(e, l);
	} else {
		wait_fired(e, c);
	}
}

static void engine_release_fired(struct engine *e, struct release *r)
{
	if (r->kind == RELEASE_TICKET)
		ticket_send(e, r);
	else
		release_fired(e, r);
}

static void engine_release_admitted(struct engine *e, struct release *r)
{
	release_admitted(e, r);
	if (r->kind == RELEASE_TICKET)
		ticket_send(e, r);
	else
		release_go_on(e, r);
}

/* If this process was stopped for long, the lease may be over, though its timer has not fired yet. */
static void lease_admitted(struct engine *e, struct lease *x)
{
	if (x->state == LEASE_ADOPTING)
		adopt_go_on(e, x);
	else if (lease_loss_is_due(x, e->core->conf.nodes, e->core->now))
		lease_owner_expire(e, x);
	else if (!x->renewal->round)
		renew_begin(e, x);
}

/* Not inlined: engine_admit mostly finds that nobody waits. */
static void __attribute__((noinline)) engine_admitted(struct engine *e, struct admission_entry *x)
{
	switch ((enum admission_owner)x->owner) {
	case OWNER_CONTENDER:
		if (!acquire_admitted(e, container_of(x, struct contender, entry)))
			return;
		break;
	case OWNER_LEASE:
		lease_admitted(e, container_of(x, struct renewal, entry)->lease);
		break;
	case OWNER_RELEASE:
		engine_release_admitted(e, container_of(x, struct release, entry));
		break;
	}
	e->admitted++;
}

/* Begins all for whom there is room now. */
static void engine_admit(struct engine *e)
{
	struct admission_entry *x;

	if (admission_is_idle(&e->admission))
		return;
	while ((x = admission_wait_next(e)))
		engine_admitted(e, x);
	admission_wait_watch(e);
}

/* A store that owes answers and was silent for the timeout counts as slow from now on, so that nobody waits for it. */
static void engine_admission_fired(struct engine *e)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (flow_is_stuck(&e->members.node[i].flow, e->core->now, e->core->conf.timeout_us))
			member_stall(&e->members, i);
	engine_admit(e);
}

static void engine_let_votes_fall(struct engine *e)
{
	if (!e->members.votes_fall)
		return;
	votes_fall(e);
	votes_fall_lose_over(e);
}

void engine_fired(struct engine *e, struct timer *t)
{
	switch ((enum timer_kind)t->kind) {
	case TIMER_CONTENDER:
		contender_fired(e, container_of(t, struct contender, timer));
		break;
	case TIMER_LEASE:
		lease_fired(e, container_of(t, struct lease, timer));
		break;
	case TIMER_CLAIM:
		claim_fired(e, container_of(t, struct claim, timer));
		break;
	case TIMER_ROUND:
		round_done_fired(e, container_of(t, struct round, timer));
		break;
	case TIMER_RELEASE:
		engine_release_fired(e, container_of(t, struct release, timer));
		break;
	case TIMER_MEMBER:
		member_fired(&e->members, container_of(t, struct member, timer));
		engine_let_votes_fall(e);
		break;
	case TIMER_ADMISSION:
		engine_admission_fired(e);
		break;
	case TIMER_BACK:
		e->back.due = true;
		break;
	case TIMER_HOME:
		home_fired(e, t);
		break;
	case TIMER_SESSION:
	case TIMER_GRACE:
	case TIMER_HANDED:
	case TIMER_LISTS:
	case TIMER_WAITS:
	case TIMER_LAPSE:
	case TIMER_NOTES:
	case TIMER_AGAIN:
	case TIMER_ASK_DAEMON:
	case TIMER_AUTH:
	case TIMER_PERMIT:
	case TIMER_JOB:
	case TIMER_QUEUE:
	case TIMER_TAKE:
	case TIMER_ORDER:
	case TIMER_RATE_LINE:
	case TIMER_RATE_TURN:
	case TIMER_DRAIN:
	case TIMER_ALARM:
	case TIMER_FAILURES:
		break;
	}
}

/* A fence may be beyond the limit of all others for years, if its store has another configuration, or its clock is off, or no redlockd wrote the fence. */
static bool engine_trusts_fence(const struct engine *e, const struct answer *a)
{
	const struct member *m = &e->members.node[a->node];

	return m->ours && !m->clock_is_off && a->fence <= FENCE_MOST;
}

static void engine_release_answered(struct engine *e, struct release *r, const struct answer *a)
{
	if (r->kind != RELEASE_TICKET)
		release_answered(e, r, a);
	retire_release(e, r);
}

/* Tracks and counts the answer, and returns the calls that it belongs to; NULL: no such call is open. */
static struct calls *engine_note_answer(struct engine *e, const struct answer *a)
{
	struct calls *c = calls_answered(&e->calls, a);

	if (!c || c->owner != CALLS_OF_ROUND)
		return c;
	round_count(round_of_calls(c), a, e->members.node[a->node].state == MEMBER_JOINED);
	if (nodeset_has(round_of_calls(c)->granted, a->node))
		health_note_served(&e->members, a->node, name_text(c->name), false);
	return c;
}

/* A store that granted answers the first token; its fence is the last of the range. */
static int64_t engine_last_token(struct calls *c, const struct answer *a)
{
	return c && c->owner == CALLS_OF_ROUND && a->code == 'G' ? a->fence + round_of_calls(c)->range : a->fence;
}

bool engine_answer(struct engine *e, const struct answer *a)
{
	bool probe = member_owns_call(a->call);
	struct calls *c = probe ? NULL : engine_note_answer(e, a);
	bool known = probe ? member_answered(&e->members, a) : c != NULL, fell = false;

	if (known && a->fence > 0 && engine_trusts_fence(e, a))
		tokens_saw(&e->tokens, engine_last_token(c, a));
	if (e->members.votes_fall) {
		votes_fall(e); /* after the vote was counted, and before anything is made of it */
		fell = true;
	}
	if (c && c->owner == CALLS_OF_ROUND)
		round_done_answered(e, round_of_calls(c), a);
	else if (c && c->owner == CALLS_OF_RELEASE)
		engine_release_answered(e, release_of_calls(c), a);
	else if (c && c->owner == CALLS_OF_HOME)
		home_answered(e, c, a);
	if (fell)
		votes_fall_lose_over(e); /* not before: the answer may have renewed a lease */
	return known;
}

/* A store that comes back again and again keeps no ASK waiting for longer than one look at each release takes. */
static void engine_back(struct engine *e)
{
	e->back.count++;
	if (!e->admission.asks_later)
		e->back.asks = e->back.count;
	e->admission.asks_later = e->back.releases = e->back.due = true;
}

void engine_node_up(struct engine *e, unsigned node, struct span address)
{
	member_up(&e->members, node, address);
	engine_let_votes_fall(e);
	engine_back(e);
}

void engine_node_down(struct engine *e, unsigned node, enum defect defect, struct span reason, struct span address)
{
	member_down(&e->members, node, defect, reason);
	if (address.n == 0)
		return;
	member_replaced(&e->members, node);
	e->members.node[node].address[0] = '\0'; /* the next process does not go on with it */
	engine_let_votes_fall(e);
}

static void engine_gained(struct engine *e)
{
	e->members.gained = false;
	engine_back(e);
	e->back.leases = e->back.names = true;
}

/* What lacks a quorum goes on, if there is one. A name is asked for once all releases were looked at: one of them may be of this name. */
static void engine_go_on(struct engine *e)
{
	bool quorum = members_usable(&e->members) >= engine_quorum(e);

	e->back.leases = e->back.leases && quorum && !renew_make_due(e);
	e->back.names = e->back.names && quorum && (e->admission.asks_later || !retry_quorum_back(e));
	e->back.due = false;
	if (e->falls)
		votes_fall_schedule(e);
	if (e->back.releases || e->back.leases || e->back.names)
		heap_set(&e->core->timers, &e->back.timer, e->core->now);
}

static void engine_ask_homes(struct engine *e)
{
	if (e->homes.waiting_n > 0)
		home_settle(e);
}

/* As many as clients like may wait for a store that comes back: some go on in each step. */
static void __attribute__((noinline, cold)) engine_settle_back(struct engine *e)
{
	if (e->members.gained)
		engine_gained(e);
	if (e->back.releases)
		e->back.releases = !release_resume_some(e);
	e->admission.asks_later &= e->back.releases && release_waits_since(e, e->back.asks);
	engine_admit(e);
	engine_ask_homes(e);
	engine_go_on(e);
}

void engine_settle(struct engine *e)
{
	if (e->members.gained || e->back.due) {
		engine_settle_back(e);
		return;
	}
	engine_admit(e);
	engine_ask_homes(e);
}

void engine_stop(struct engine *e)
{
	struct map_node *at = NULL;

	e->draining = e->stopping = true;
	release_hurry_all(e);
	ticket_hurry_all(e);
	while ((at = map_next(&e->table.map, at))) {
		struct lock *l = container_of(at, struct lock, name.node);

		wait_refuse_part(e, l->contender, REFUSED_DRAINING, WAITERS_ALL);
		wait_left(e, l->contender);
	}
}
