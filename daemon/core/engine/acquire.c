/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acquire round. All nodes that may grant are asked in parallel; a quorum that grants with one and the same base is a grant after one round trip. When the
 * bases differ, a second round raises the fence to the largest of them, at the nodes that granted and nowhere else: only those count.
 * A value that leads to no grant is released everywhere it may stand.
 * See ALGORITHMS.md, Rounds; Fencing tokens.
 */
#include "daemon/core/engine/acquire.h"

#include "daemon/core/engine/admission_wait.h"
#include "daemon/core/engine/move.h"
#include "daemon/core/engine/release.h"
#include "daemon/core/engine/split_vote.h"
#include "daemon/core/engine/ticket.h"
#include "daemon/core/engine/shared_lease.h"
#include "daemon/core/engine/wait.h"
#include "daemon/core/member/health.h"
#include "daemon/core/round/ask.h"
#include "daemon/core/round/round.h"

#define STRAGGLER_LEAST_US MSEC
#define RAISE_LEAST_US (20 * MSEC)
#define NODES_ALL nodeset_all(NODES_MAX)

/* The stores that were too busy to be told of a release of this name are needed for a quorum that answers soon, and one of them has room now. */
static bool acquire_lacks_told(const struct engine *e, const struct contender *k)
{
	bool room = false;
	unsigned told = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (nodeset_has(k->name->put_off, i))
			room |= m->connected && !flow_is_overdrawn(&m->flow);
		else
			told += member_is_prompt(&e->members, m);
	}
	return room && told < engine_quorum(e);
}

/*
 * Asks those of these stores that may grant and have room. The others are asked when they have room, if the round still needs them. A store where a dead
 * value of ours may stand would only refuse: it gets the release first.
 */
static void acquire_ask(struct engine *e, struct round *r, struct nodeset nodes, int64_t proposal)
{
	struct contender *k = contender_of_name(r->calls.name);
	int64_t reserve = e->core->conf.shared ? members_reserve_us(&e->members) : 0; /* the memory store has one daemon: there is nobody to reserve for */
	struct span value = value_in_text(e->core, &r->value), ticket;

	ticket_take(e, k); /* the first patient waiter may have come since the leading node was asked */
	ticket = ticket_text(e, k);
	r->left_out = NODESET_NONE;
	if (nodeset_any(k->name->put_off) && acquire_lacks_told(e, k))
		release_tell_put_off(e, k->name);
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (!nodeset_has(nodes, i) || !member_may_grant(m))
			continue;
		if (nodeset_has(k->name->put_off, i) || flow_is_overdrawn(&m->flow)) {
			nodeset_add(&r->left_out, i);
			continue;
		}
		ask_acquire(&e->calls, r, i, value, proposal, ticket, reserve);
		if (ticket.n > 0)
			nodeset_add(&k->ticket_at, i);
	}
}

/*
 * Sets the round's timer: to the end of the round, or sooner, to when the leading store should have answered or stores that were left out may have room. The
 * longer the round lasts, the longer it waits before it looks at those again.
 */
static void acquire_await(struct engine *e, struct round *r)
{
	struct instant at = r->until;
	int64_t answer_us, waited;

	if (nodeset_any(nodeset_or(r->not_asked, r->left_out))) {
		answer_us = members_answer_us(&e->members);
		waited = nodeset_any(r->not_asked) ? 0 : instant_diff(e->core->now, r->calls.begun);
		at = instant_min(at, instant_add(e->core->now, waited > answer_us ? waited : answer_us));
	}
	heap_set(&e->core->timers, &r->timer, at);
}

/* The name waits for admission. The timer bounds how long a request that does not wait is kept. */
static void acquire_queue(struct engine *e, struct contender *k)
{
	if (!timer_is_set(&k->timer))
		wait_look_at(e, k, INSTANT_NEVER);
}

void acquire_begin(struct engine *e, struct contender *k, enum cause why)
{
	if (e->draining)
		return; /* who waits for it is about to be refused */
	if (k->state == CONTENDER_QUEUED) {
		if (k->impatient > 0) /* a patient waiter has a timer of its own */
			acquire_queue(e, k);
	} else if (admit(e, &k->entry, INSTANT_NEVER, TAILQ_FIRST(&k->waiters)->origin)) {
		acquire_start(e, k, why);
	} else {
		contender_move(e, k, CONTENDER_QUEUED, CAUSE_NO_ROOM);
		acquire_queue(e, k);
	}
}

/* For the first waiter, on its terms, with a fresh value. */
static struct round *acquire_new_round(struct engine *e, struct contender *k)
{
	const struct claim *head = TAILQ_FIRST(&k->waiters);
	struct round *r = round_new(&e->rounds, QUESTION_ACQUIRE, k->name, NULL);

	lock_value_make(&e->table, members_one_clock_us(&e->members, e->core->now), &r->value);
	r->value.limit = lock_mark(lock_of_contender(k));
	r->placed = placed_nowhere(e->core->now);
	r->ttl_us = head->ttl_us;
	r->delay_us = head->delay_us;
	r->form = (uint8_t)contender_form(head);
	return r;
}

void acquire_start(struct engine *e, struct contender *k, enum cause why)
{
	struct round *r;
	int lead;

	if (members_that_may_grant(&e->members) < engine_quorum(e)) {
		wait_for_quorum(e, k);
		return;
	}
	contender_move(e, k, CONTENDER_ACQUIRING, why);
	r = acquire_new_round(e, k);
	k->round = r;
	k->woken = NODESET_NONE;
	r->range = tokens_range(&e->tokens, e->core, k->name, k->patient);
	lead = split_take_leader(e, k);
	if (lead >= 0)
		r->not_asked = nodeset_without(NODES_ALL, nodeset_of((unsigned)lead));
	r->until = instant_add(e->core->now, e->core->conf.timeout_us);
	acquire_ask(e, r, nodeset_without(NODES_ALL, r->not_asked), tokens_propose(&e->tokens, e->core, r->range));
	acquire_await(e, r);
	metric_add(&e->core->metrics, METRIC_ROUNDS, 1);
}

/* A name of which a release waits would find our own dead value: it waits for that. */
bool acquire_admitted(struct engine *e, struct contender *k)
{
	if (k->name->releases > 0)
		admission_park(&k->entry);
	else
		acquire_start(e, k, CAUSE_ADMITTED);
	return !k->entry.parked;
}

void acquire_next(struct engine *e, struct lock *l)
{
	if (!TAILQ_EMPTY(&l->contender->waiters))
		acquire_begin(e, l->contender, CAUSE_FREED);
	else
		lock_drop_if_unused(&e->table, l);
}

static void acquire_close(struct engine *e, struct round *r)
{
	r->decided = true;
	contender_of_name(r->calls.name)->round = NULL;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

/*
 * How long the second round waits. It asks stores that have just answered, and meanwhile nobody else can have the lock. So it does not wait the whole timeout
 * for a store that begins to hang.
 */
static int64_t acquire_raise_us(const struct engine *e)
{
	int64_t us = 2 * members_answer_us(&e->members), most = e->core->conf.timeout_us;

	us = us < RAISE_LEAST_US ? RAISE_LEAST_US : us;
	return us < most ? us : most;
}

/*
 * Second round: the token is the largest base, and the stores that granted are asked. If that may exceed the limit of one of them, the token is the Q-th
 * smallest base, and stores with a larger one are not asked. If that exceeds the limit of a store that granted it, the others accept it beyond theirs.
 */
static void acquire_raise(struct engine *e, struct round *first)
{
	struct contender *k = contender_of_name(first->calls.name);
	struct round *r = round_new(&e->rounds, QUESTION_RAISE, k->name, NULL);
	struct span value = value_in_text(e->core, &first->value);
	bool beyond;

	r->token = round_largest(first, e->core->conf.nodes);
	if (tokens_base_is_far(&e->members, first, r->token))
		r->token = round_least(first, e->core->conf.nodes);
	beyond = tokens_base_is_beyond(&e->members, first, r->token);
	acquire_close(e, first);
	k->round = r;
	r->value = first->value;
	r->placed = first->placed;
	r->ttl_us = first->ttl_us;
	r->delay_us = first->delay_us;
	r->form = first->form;
	r->range = first->range;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(first->granted, i) && first->base[i] <= r->token) {
			ask_raise(&e->calls, r, i, value, beyond);
			nodeset_add(&r->placed.unanswered, i);
		}
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, acquire_raise_us(e)));
}

/* The round is decided within this time, by what is known then. */
static void acquire_limit(struct engine *e, struct round *r, int64_t us)
{
	r->until = instant_min(r->until, instant_add(e->core->now, us));
	acquire_await(e, r);
}

/* The same, and stores that were left out are not asked any more. */
static void acquire_hurry(struct engine *e, struct round *r, int64_t us)
{
	r->left_out = NODESET_NONE;
	acquire_limit(e, r, us);
}

/* Bases differ, and a store has not answered: it gets a little time to agree. */
static void acquire_await_stragglers(struct engine *e, struct round *r)
{
	int64_t rtt = STRAGGLER_LEAST_US;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(r->granted, i) && 2 * e->members.node[i].rtt_us > rtt)
			rtt = 2 * e->members.node[i].rtt_us;
	acquire_hurry(e, r, rtt);
}

/*
 * A quorum has answered, and the votes are split so far. In a race the round does not wait for a store that hangs: the round's votes keep others out
 * meanwhile. If the key of a dead daemon splits the votes, only a slow store can help. If only requests that do not wait are left, no round follows, so this
 * one lasts the whole timeout. If somebody waits, it lasts split_lasting_us() at most: the dead key may end while the votes of this round keep others out.
 */
static void acquire_await_split(struct engine *e, struct round *r)
{
	if (split_has_rivals(e, r))
		acquire_hurry(e, r, members_answer_us(&e->members));
	else if (contender_of_name(r->calls.name)->patient)
		acquire_limit(e, r, split_lasting_us(e));
}

static enum round_outcome acquire_decide(struct engine *e, struct round *r, int64_t *ret_token)
{
	enum round_outcome outcome = round_outcome(r, e->core->conf.nodes, e->core->now, ret_token);

	switch (outcome) {
	case ROUND_PENDING:
		break;
	case ROUND_UNDECIDED:
		acquire_await_split(e, r);
		break;
	case ROUND_UNEVEN:
		acquire_await_stragglers(e, r);
		break;
	case ROUND_RAISE:
		acquire_raise(e, r);
		break;
	default:
		acquire_close(e, r);
		return outcome;
	}
	return ROUND_PENDING;
}

/* Proposes the largest base that was granted, so that the bases agree. */
static void acquire_ask_also(struct engine *e, struct round *r, struct nodeset nodes)
{
	acquire_ask(e, r, nodes, nodeset_any(r->granted) ? round_largest(r, e->core->conf.nodes) : tokens_propose(&e->tokens, e->core, r->range));
	acquire_await(e, r);
}

static void acquire_ask_first(struct engine *e, struct round *r, unsigned node)
{
	nodeset_remove(&r->not_asked, node);
	acquire_ask_also(e, r, nodeset_of(node));
}

static void acquire_widen(struct engine *e, struct round *r)
{
	struct nodeset later = nodeset_or(r->not_asked, r->left_out);

	r->not_asked = NODESET_NONE;
	r->until = instant_add(e->core->now, e->core->conf.timeout_us);
	acquire_ask_also(e, r, later);
}

bool acquire_ask_more(struct engine *e, struct round *r)
{
	if (TAILQ_EMPTY(&contender_of_name(r->calls.name)->waiters))
		return false;
	if (nodeset_any(r->not_asked))
		acquire_widen(e, r);
	else if (nodeset_any(r->left_out) && instant_before(e->core->now, r->until))
		acquire_ask_also(e, r, r->left_out);
	else
		return false;
	return true;
}

/* The leading node has answered. If it granted, its base is proposed to the others, so that the bases agree. */
static enum round_outcome acquire_led(struct engine *e, struct round *r, unsigned node)
{
	struct contender *k = contender_of_name(r->calls.name);
	enum round_outcome outcome = TAILQ_EMPTY(&k->waiters) ? ROUND_UNWANTED : round_led(r, e->core->conf.nodes, node);
	int next = outcome == ROUND_LEADER_TAKEN ? split_next_leader(e, r, node) : -1;

	if (next >= 0) {
		acquire_ask_first(e, r, (unsigned)next);
		return ROUND_PENDING;
	}
	if (outcome == ROUND_PENDING)
		acquire_widen(e, r);
	else
		acquire_close(e, r);
	return outcome;
}

/*
 * A late grant to a decided round, that of the lease or of the second round under way. If a renewal was sent to this store since, its answer counts instead: it
 * may have shortened the key.
 */
static void acquire_came_late(struct engine *e, struct round *r, struct placed *placed, unsigned node)
{
	struct lock *l = lock_of_name(r->calls.name);
	bool won = placed == &l->lease.placed;
	struct instant *vote = won ? &l->lease.votes[node] : &l->contender->round->votes.until[node];

	if (!nodeset_has(r->granted, node) || nodeset_has(placed->renewal_sent, node))
		return;
	if (won && (l->lease.state != LEASE_HELD || (r->form == FORM_SHARED && !l->lease.shared))) /* a share does not keep others out */
		return;
	*vote = instant_max(*vote, r->votes.until[node]);
	nodeset_add(&placed->sure, node);
	if (won)
		lease_schedule(e, &l->lease);
}

/* Where the round's value may stand, as the undecided round of it knows, or the lease that it won. NULL: it was released. */
static struct placed *acquire_placed(struct lock *l, const struct round *r)
{
	struct round *latest = l->contender->round;

	if (latest && latest->value.number == r->value.number)
		return &latest->placed;
	return l->lease.value.number == r->value.number ? &l->lease.placed : NULL;
}

enum round_outcome acquire_answered(struct engine *e, struct round *r, const struct answer *a, int64_t *ret_token)
{
	struct lock *l = lock_of_name(r->calls.name);
	struct placed *placed = acquire_placed(l, r);
	enum round_outcome outcome = ROUND_PENDING;

	if (placed && r->question == QUESTION_RAISE)
		placed_note_answer(placed, a);
	/* A refusal says that the value does not stand there, unless a renewal that was sent since has put it there. */
	if (placed && r->question == QUESTION_ACQUIRE && nodeset_has(r->refused, a->node) && !nodeset_has(placed->renewal_sent, a->node))
		nodeset_remove(&placed->nodes, a->node);
	if (a->class == ANSWER_EXECUTED && (a->code == 'B' || a->code == 'S' || a->code == 'K') && l->contender->state == CONTENDER_ACQUIRING) {
		elsewhere_note(e->core, &l->contender->elsewhere, a);
		l->contender->taught = true;
		if (a->code == 'K')
			health_note_wrong_type(&e->members, a->node, name_text(r->calls.name));
		else if (a->defect)
			health_note_unqueued(&e->members, a, name_text(r->calls.name));
		else
			health_note_served(&e->members, a->node, name_text(r->calls.name), nodeset_has(l->contender->ticket_at, a->node));
	}
	if (r->decided) {
		if (placed)
			acquire_came_late(e, r, placed, a->node);
		return ROUND_PENDING;
	}
	if (nodeset_any(r->not_asked))
		outcome = acquire_led(e, r, a->node);
	/* While one store is asked alone acquire_led() decides, and acquire_decide() only after that. */
	return outcome == ROUND_PENDING && !nodeset_any(r->not_asked) ? acquire_decide(e, r, ret_token) : outcome;
}

enum round_outcome acquire_expired(struct engine *e, struct round *r, int64_t *ret_token)
{
	return acquire_decide(e, r, ret_token);
}
