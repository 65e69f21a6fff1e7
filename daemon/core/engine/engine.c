/* SPDX-License-Identifier: BSD-2-Clause */
/* See engine.h. */
#include "daemon/core/engine/engine.h"

#include "daemon/core/engine/asking.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/member/health.h"
#include "daemon/core/member/membership.h"
#include "daemon/core/round/engine_data.h"
#include "daemon/core/round/home.h"
#include "daemon/core/round/round.h"

/* What follows from the outcome of a round: a grant, another try, a hold that goes on or is lost. */

/* Acts on the result of an adoption. r: the round whose answer decides; NULL: the timer of the lease decides. */
static void round_done_adoption(struct engine *e, struct lease *x, const struct round *r, enum adopt_outcome outcome)
{
	switch (outcome) {
	case ADOPT_GOES_ON:
		break;
	case ADOPT_WON:
		grant_adopted(e, lock_of_lease(x), r);
		convert_look(e, lock_of_lease(x));
		break;
	case ADOPT_DENIED:
		lease_owner_evicted(e, x);
		break;
	case ADOPT_OVER:
		lease_owner_expire(e, x);
		break;
	}
}

static void round_done_acquire(struct engine *e, struct round *r, enum round_outcome outcome, int64_t token)
{
	if (outcome == ROUND_WON)
		grant_won(e, r, token);
	else if (outcome != ROUND_PENDING)
		retry_after(e, r, outcome);
}

static void round_done_acquire_expired(struct engine *e, struct round *r)
{
	int64_t token = 0;
	enum round_outcome outcome = acquire_expired(e, r, &token);

	round_done_acquire(e, r, outcome, token);
	retire_round(e, r);
}

static void round_done_acquire_answered(struct engine *e, struct round *r, const struct answer *a)
{
	int64_t token = 0;
	enum round_outcome outcome = acquire_answered(e, r, a, &token);

	round_done_acquire(e, r, outcome, token);
}

static void round_done_renewal(struct engine *e, struct round *r, enum renew_outcome outcome)
{
	switch (outcome) {
	case RENEW_GOES_ON:
		convert_renewed(e, r);
		break;
	case RENEW_IS_ADOPTION:
		round_done_adoption(e, r->lease, r, adopt_decide(e, r));
		break;
	case RENEW_EVICTED:
		lease_owner_evicted(e, r->lease);
		break;
	case RENEW_LEASE_OVER:
		lease_owner_expire(e, r->lease);
		break;
	}
}

static void round_done_renewal_expired(struct engine *e, struct round *r)
{
	round_done_renewal(e, r, renew_expired(e, r));
	retire_round(e, r);
}

static void round_done_expired(struct engine *e, struct round *r)
{
	switch (r->question) {
	case QUESTION_ACQUIRE:
	case QUESTION_RAISE:
		round_done_acquire_expired(e, r);
		break;
	case QUESTION_RENEW:
		round_done_renewal_expired(e, r);
		break;
	case QUESTION_ADOPT:
		adopt_expired(e, r);
		break;
	case QUESTION_LOOK:
		ask_holder_expired(e, r);
		break;
	case QUESTION_HOLDER:
	case QUESTION_BREAK:
		break_expired(e, r);
		break;
	}
}

/* The timer of a round has fired. */
static void round_done_fired(struct engine *e, struct round *r)
{
	struct instant slow_at;

	if (r->question == QUESTION_ACQUIRE && !r->decided && acquire_ask_more(e, r))
		return;
	r->expired = true;
	calls_stall(&e->calls, &r->calls);
	slow_at = calls_slow_at(&e->calls, &r->calls);
	if (instant_before(e->core->now, slow_at))
		heap_set(&e->core->timers, &r->timer, slow_at); /* the round was decided early: the stores that have not answered have time until then */
	if (!r->decided)
		round_done_expired(e, r);
}

/* The answer is counted already. The round may be freed here. */
static void round_done_answered(struct engine *e, struct round *r, const struct answer *a)
{
	switch (r->question) {
	case QUESTION_ACQUIRE:
	case QUESTION_RAISE:
		round_done_acquire_answered(e, r, a);
		break;
	case QUESTION_RENEW:
	case QUESTION_ADOPT: /* sends EXTENDs as well: renew_answered() counts their votes, adopt_decide() concludes */
		round_done_renewal(e, r, renew_answered(e, r, a));
		break;
	case QUESTION_LOOK:
		ask_holder_answered(e, r, a);
		break;
	case QUESTION_HOLDER:
	case QUESTION_BREAK:
		break_answered(e, r, a);
		break;
	}
	retire_round(e, r);
}

#define ADOPTION_ROUNDS 3

/* How long a LOCK that does not wait is kept while a lock that its owner may already hold is being adopted. */
static int64_t adoption_us(const struct engine *e)
{
	int64_t rounds = ADOPTION_ROUNDS * e->core->conf.timeout_us;

	return rounds < WAITERS_HURRY_US ? rounds : WAITERS_HURRY_US;
}

static void lock_request_again(struct engine *e, struct claim *holder, struct claim *c)
{
	bool more = holder->count < HOLDS_MOST;

	holder->count += more;
	notices_add(&e->notices, more ? NOTICE_REENTERED : NOTICE_REFUSED, c, NULL, more ? NOT_REFUSED : REFUSED_COUNT);
}

/* Its owner holds the name, or may hold it from the previous run. False: the adoption decides. */
static bool lock_request_held(struct engine *e, struct lock *l, struct claim *c, struct claim *holder)
{
	if (holder->shared && !c->shared)
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_SHARED);
	else if (l->lease.state != LEASE_HELD)
		return false;
	else
		lock_request_again(e, holder, c);
	return true;
}

/* It would remain in addition to others, and not only until the stores have answered for an owner that is there already. */
static bool lock_request_adds(const struct lock *l, const struct claim *c)
{
	const struct claim *own = lock_claim_of(l, c->session, claim_owner(c));

	if (own)
		return c->patient && !(own->state == CLAIM_HELD && l->lease.state == LEASE_HELD);
	return c->patient || c->shared || !lock_is_taken(l);
}

/* The name counts for a peer already, so the claim itself counts. True: there is no room for it, and it is refused. */
static bool lock_request_crowd(struct engine *e, struct lock *l, struct claim *c)
{
	if (!c->let_in && origin_is_crowded(c->origin, e->core->conf.limits.waiting) && lock_request_adds(l, c)) {
		if (l->lease.state == LEASE_CLOSING)
			hold_ask_again(l, c->session, claim_owner(c));
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_CROWD);
		return true;
	}
	claim_crowd(c);
	return false;
}

/* The claim waits, and the stores are asked if its arrival makes that worthwhile. */
static void lock_request_queue(struct engine *e, struct lock *l, struct claim *c)
{
	struct contender *k = lock_contend(&e->table, l);

	if (lock_is_idle(l))
		elsewhere_forget(&k->elsewhere); /* the stores' answers to earlier waiters are old */
	if (c->patient && l->lease.state == LEASE_HELD)
		tokens_expect(&e->tokens, e->core, &l->name);
	contender_enqueue(k, c);
	metric_add(&e->core->metrics, METRIC_WAITERS, claim_queues(c));
	if (c->patient)
		heap_set(&e->core->timers, &c->timer, c->asking->wait_until);
	else if (l->lease.state == LEASE_ADOPTING)
		heap_set(&e->core->timers, &c->timer, instant_add(e->core->now, adoption_us(e)));
	if (lock_is_idle(l) || k->state == CONTENDER_NO_QUORUM || k->state == CONTENDER_QUEUED)
		acquire_begin(e, k, CAUSE_REQUEST);
	else if (k->state == CONTENDER_HELD_ELSEWHERE && c->patient && (c->priority > 0 || k->ticket.kind == STAMP_READER) && ticket_is_outdated(k))
		acquire_begin(e, k, CAUSE_UNSEEN); /* the stores get its ticket now, not at the next poll */
	else if (contender_is_between_rounds(k) && !contender_is_kept_off(k) && !c->patient)
		split_hurry(e, k);
	if (lock_is_taken(l))
		wait_announce(e, k);
	if (l->lease.shared && c->patient)
		shared_lease_line_up(e, l);
}

void lock_request_ask(struct engine *e, struct claim *c, struct span name, struct instant wait_until)
{
	struct lock *l = c->limit == SLOT_OF_SEMAPHORE ? lock_find_or_add_text(&e->table, name) : lock_find_or_add(&e->table, name);
	struct claim *holder;

	c->lock = l;
	c->asking->wait_until = wait_until;
	if (!lock_charge(l, c->origin) && lock_request_crowd(e, l, c))
		return;
	if (l->lease.limit != c->limit && !lock_use_as(l, c->limit)) {
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_IN_USE);
		return;
	}
	holder = lock_holder_of(l, c->session, claim_owner(c));
	if (holder && lock_request_held(e, l, c, holder))
		return;
	if (l->lease.state == LEASE_CLOSING)
		hold_ask_again(l, c->session, claim_owner(c));
	if (holder)
		holder->asked_again = true; /* it may be lost before the adoption is decided */
	if (c->shared) {
		if (holders_join_at_once(e, c))
			return;
		if (c->limit == 0)
			tokens_expect(&e->tokens, e->core, &l->name); /* each reader that joins later gets a token of its own, as long as the range lasts */
	}
	/* If the same owner may hold the lock from the previous run, the adoption decides. */
	if (!c->patient && lock_is_taken(l) && !holder) {
		notices_add(&e->notices, NOTICE_REFUSED, c, NULL, REFUSED_BUSY);
		if (c->shared)
			shared_lease_refused(e, l);
		return;
	}
	lock_request_queue(e, l, c);
}

/*
 * Each event goes to those whom it concerns: an answer to its round, a timer to its owner, a store that came back to those that wait for one. The outcome of
 * a round is a value, on which this file acts. No file of the core that precedes engine in tests/order.sh calls this one.
 */

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

/* More are to be admitted, or refused, than one step answers. */
static void contender_answer_crowd(struct engine *e, struct contender *k, struct lock *l)
{
	convert_look(e, l);
	if (contender_hurried(k) > 0 && (l->lease.state == LEASE_HELD || l->lease.state == LEASE_CLOSING))
		holders_answer(e, l);
}

/* It is time to ask again. Before that, overdue claims are refused, except the rest of a crowd: those are answered after the next round. */
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
		hold_closing_over(e, lock_of_lease(x));
		break;
	case LEASE_NONE:
	case LEASE_N:
		break;
	}
}

/* The claim waits for a name that this daemon has, or may have from the previous run. An impatient claim waits for the adoption. */
static void claim_waited_for_own(struct engine *e, struct claim *c, const struct lease *x)
{
	if (c->patient)
		wait_withdraw(e, c, REFUSED_TIMEOUT);
	else if (x->state != LEASE_CLOSING)
		wait_withdraw(e, c, x->renewal->entry.waits ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM);
}

/* The wait of the claim is over. Or it was granted while its session was away, and the client has not asked for it. */
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

/* Begins everything that has room now. */
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
	case TIMER_HISTORY:
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

/* A fence may exceed the limit of all others for years, if its store has another configuration, or its clock is wrong, or no redlockd wrote the fence. */
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
		votes_fall(e); /* after the vote was counted, and before anything is concluded from it */
		fell = true;
	}
	if (c && c->owner == CALLS_OF_ROUND)
		round_done_answered(e, round_of_calls(c), a);
	else if (c && c->owner == CALLS_OF_RELEASE)
		engine_release_answered(e, release_of_calls(c), a);
	else if (c && c->owner == CALLS_OF_HOME)
		home_answered(e, c, a);
	if (fell)
		votes_fall_lose_over(e); /* not earlier: the answer may have renewed a lease */
	return known;
}

/* A store that comes back again and again delays an ASK no longer than one look at each release takes. */
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
	e->members.node[node].address[0] = '\0'; /* the next process does not continue with it */
	engine_let_votes_fall(e);
}

static void engine_gained(struct engine *e)
{
	e->members.gained = false;
	engine_back(e);
	e->back.leases = e->back.names = true;
}

/* What lacks a quorum goes on, if there is one now. A name is asked for once all releases were looked at: one of them may be for this name. */
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
		home_send_waiting(e);
}

/* Clients may make any number of names wait for a store that comes back: each step continues with some of them. */
static void __attribute__((noinline, cold)) engine_store_back(struct engine *e)
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

void engine_after_step(struct engine *e)
{
	if (e->members.gained || e->back.due) {
		engine_store_back(e);
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
