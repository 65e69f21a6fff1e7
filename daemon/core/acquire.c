/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acquire round. All usable nodes are asked in parallel; a quorum that grants with one and the same base is a grant after one round trip. When the
 * bases differ, a second round raises the fence to the largest of them, at the nodes that granted and nowhere else: only those count.
 * What did not lead to a grant is released everywhere it may stand.
 */
#include "daemon/core/round.h"

#define POLL_LEAST_US (25 * MSEC)
#define POLL_MOST_US SEC
#define POLL_FOREIGN_US (200 * MSEC) /* clients that poll win against one that seldom asks */
#define STRAGGLER_LEAST_US MSEC
#define RANGE_MOST 1024
#define NARROW_US SEC
#define NODES_ALL ((1u << NODES_MAX) - 1)

/* Hybrid logical clock: never below a token that was seen anywhere. */
static int64_t acquire_proposal(const struct engine *e)
{
	return e->core->wall_us > e->fence_seen ? e->core->wall_us : e->fence_seen + 1;
}

/* One token more for each local waiter, so that the lock can be handed on without a round. */
static int64_t acquire_range(const struct engine *e, const struct lock *l)
{
	int64_t others = (int64_t)l->waiting - 1;

	if (instant_before(e->core->now, e->narrow_until))
		return 0;
	return others < 0 ? 0 : others > RANGE_MOST ? RANGE_MOST : others;
}

/* Those of these nodes that are usable and can take more. A few where what was taken in vain is not given back yet would only refuse. */
static void acquire_ask(struct engine *e, struct op *op, uint16_t nodes, int64_t proposal)
{
	struct lock *l = op->lock;
	uint16_t in_vain = bits(l->put_off) <= e->core->conf.nodes - engine_quorum(e) ? l->put_off : 0;
	int64_t grace = turn_grace_us(e);
	struct span ticket = MUTATED(TICKET_SHOWN_ONCE) && l->queued ? SPAN("") : turn_text(e, l);

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (!((nodes & (uint16_t)~in_vain) >> i & 1) || !member_usable(m) || flow_is_full(&m->flow))
			continue;
		op_send_acquire(&e->ops, op, i, proposal, ticket, grace);
		l->queued |= (uint16_t)((ticket.n > 0) << i);
	}
}

void acquire_begin(struct engine *e, struct lock *l)
{
	if (!pace_holds(e, l))
		acquire_start(e, l);
}

void acquire_start(struct engine *e, struct lock *l)
{
	const struct claim *head = TAILQ_FIRST(&l->line);
	struct op *op;
	int lead;

	l->ttl_us = head->ttl_us;
	l->delay_us = head->delay_us;
	l->px_until = INSTANT_PAST;
	if (members_usable(&e->members) < engine_quorum(e)) {
		starve(e, l);
		return;
	}
	engine_become(e, l, LOCK_ACQUIRING);
	lock_new_value(&e->table, l);
	op = op_new(&e->ops, OP_ACQUIRE, l);
	l->round = op;
	l->woken = 0;
	op->range = acquire_range(e, l);
	turn_take(e, l);
	lead = split_lead(e, l);
	if (lead >= 0)
		op->later = (uint16_t)(NODES_ALL & ~(1u << lead));
	acquire_ask(e, op, (uint16_t)(NODES_ALL & ~op->later), acquire_proposal(e));
	heap_set(&e->core->timers, &op->timer,
	         instant_add(e->core->now, lead >= 0 ? split_patience_us(e) : e->core->conf.timeout_us));
	metric_add(&e->core->metrics, METRIC_ROUNDS, 1);
}

static void acquire_close(struct engine *e, struct op *op)
{
	op->decided = true;
	op->lock->round = NULL;
	if (!op->open)
		heap_cancel(&e->core->timers, &op->timer);
}

/* When the lock may be free: the Q-th smallest remaining TTL, a free node counting 0; -1 if it never expires. */
static int64_t acquire_pttl(const struct engine *e, const struct op *op)
{
	struct votes ttl;

	votes_clear(&ttl);
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		if (!(op->busy >> i & 1))
			ttl.until[i].us = 0;
		else if (op->base[i] >= 0)
			ttl.until[i].us = -op->base[i]; /* the Q-th largest of the negated */
	}
	ttl.until[0] = votes_deadline(&ttl, e->core->conf.nodes);
	return ttl.until[0].us == INT64_MIN ? -1 : -ttl.until[0].us;
}

static void acquire_pause(struct engine *e, struct lock *l, int64_t us)
{
	/* Jitter of half the pause, so that daemons that met once do not meet again. */
	us = us / 2 + (int64_t)rng_below(e->rng, (uint64_t)us / 2 + 1);
	heap_set(&e->core->timers, &l->timer, instant_add(e->core->now, us));
}

/* Somebody else holds it: asked again when its TTL may be over, and often enough to notice a release that nobody announces. */
static void acquire_held_elsewhere(struct engine *e, struct lock *l, const struct op *op)
{
	/* A redlockd wakes whom it hands to; others are asked again and again, in the end every second. */
	bool told = !l->elsewhere.foreign && e->core->conf.shared;
	int64_t poll = told ? POLL_MOST_US : POLL_LEAST_US << (l->attempts < 6 ? l->attempts : 6), left;

	l->elsewhere.known = true;
	l->elsewhere.split = false;
	l->splits = 0;
	l->elsewhere.reserved = bits(op->busy) == 0;
	l->elsewhere.pttl_ms = acquire_pttl(e, op);
	l->elsewhere.at = e->core->now;
	l->attempts++;
	engine_become(e, l, LOCK_WAITING);
	line_refuse_part(e, l, REFUSED_BUSY, LINE_IMPATIENT);
	if (l->state != LOCK_WAITING)
		return;
	if (l->woken)
		poll = MSEC; /* freed while we were asking */
	else if (op->behind)
		poll = turn_grace_us(e);
	if (poll > (told ? POLL_MOST_US : POLL_FOREIGN_US))
		poll = told ? POLL_MOST_US : POLL_FOREIGN_US;
	if (MUTATED(WAKE_ALONE))
		return;
	left = l->elsewhere.pttl_ms * MSEC + MSEC;
	if (l->elsewhere.pttl_ms > 0 && left < poll)
		heap_set(&e->core->timers, &l->timer, instant_add(e->core->now, left + (int64_t)rng_below(e->rng, 2 * MSEC)));
	else
		acquire_pause(e, l, poll);
}

/* Nobody has a quorum: our votes are given back, and after a pause of random length we try again. */
static void acquire_split(struct engine *e, struct lock *l, bool led)
{
	int64_t pause = split_note(e, l, led);

	l->splits++;
	l->elsewhere.known = false;
	l->elsewhere.split |= !led;
	engine_become(e, l, LOCK_WAITING);
	line_refuse_part(e, l, REFUSED_BUSY, l->attempts < SPLIT_TRIES ? LINE_OVERDUE : LINE_IMPATIENT);
	if (l->state == LOCK_WAITING)
		heap_set(&e->core->timers, &l->timer, instant_add(e->core->now, pause));
}

static void acquire_no_quorum(struct engine *e, struct lock *l)
{
	metric_add(&e->core->metrics, METRIC_ROUNDS_FAILED, 1);
	if (members_usable(&e->members) < engine_quorum(e)) {
		starve(e, l);
		return;
	}
	l->elsewhere.split = false;
	engine_become(e, l, LOCK_WAITING);
	line_refuse_part(e, l, REFUSED_QUORUM, LINE_IMPATIENT);
	if (l->state == LOCK_WAITING)
		acquire_pause(e, l, RETRY_US);
}

/* At how many nodes one and the same holder stands. Less than a quorum: votes are split, and nobody holds it. */
static unsigned acquire_same_holder(const struct engine *e, const struct op *op)
{
	unsigned most = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < e->core->conf.nodes && (op->busy >> i & 1); j++)
			same += (op->busy >> j & 1) && op->holder[j] == op->holder[i];
		most = same > most ? same : most;
	}
	return most;
}

/* A quorum refuses it: somebody holds it, or has an older ticket. */
static bool acquire_is_held(const struct engine *e, const struct op *op)
{
	return acquire_same_holder(e, op) >= engine_quorum(e) || (op->behind && bits(op->busy | op->behind) >= engine_quorum(e));
}

static void acquire_failed(struct engine *e, struct op *op)
{
	struct lock *l = op->lock;
	unsigned quorum = engine_quorum(e);

	acquire_close(e, op);
	if (!(MUTATED(UNDO_FORGOTTEN) && acquire_same_holder(e, op) >= quorum) &&
	    !(MUTATED(SPLIT_KEPT) && acquire_same_holder(e, op) < quorum))
		debt_begin(e, l, OP_RELEASE, 0, NULL);
	if (TAILQ_EMPTY(&l->line)) {
		turn_spend(e, l, op->yes);
		engine_become(e, l, LOCK_IDLE);
	} else if (op->range > 0 && bits(op->yes | op->over) >= quorum) {
		e->narrow_until = instant_add(e->core->now, NARROW_US); /* a single token is never refused for the clock */
		acquire_begin(e, l);
	} else if (op->later) {
		acquire_split(e, l, true); /* somebody else won there */
	} else if (bits(op->alien) >= quorum) {
		engine_become(e, l, LOCK_WAITING);
		line_refuse_part(e, l, REFUSED_KIND, LINE_ALL);
	} else if (acquire_is_held(e, op)) {
		acquire_held_elsewhere(e, l, op);
	} else if (bits(op->busy | op->behind) > 0 && bits(op->busy | op->behind | op->yes) >= quorum) {
		acquire_split(e, l, false);
	} else {
		acquire_no_quorum(e, l);
	}
}

static int64_t acquire_largest(const struct engine *e, const struct op *op)
{
	int64_t largest = -1;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if ((op->yes >> i & 1) && op->base[i] > largest)
			largest = op->base[i];
	return largest;
}

/* At least Q nodes granted the same base: that is the token; -1 otherwise. */
static int64_t acquire_agreed(const struct engine *e, const struct op *op)
{
	if (MUTATED(MAX_WITHOUT_ROUND))
		return acquire_largest(e, op);
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < e->core->conf.nodes && (op->yes >> i & 1); j++)
			same += (op->yes >> j & 1) && op->base[j] == op->base[i];
		if (same >= engine_quorum(e))
			return op->base[i];
	}
	return -1;
}

/* Grant only what is worth having: the loss would be told at once otherwise. */
static bool acquire_is_useful(const struct engine *e, const struct op *op)
{
	struct instant deadline = votes_deadline(&op->votes, e->core->conf.nodes);

	return instant_diff(deadline, e->core->now) > lead_us(op->ttl_us) + op->ttl_us / 10;
}

static void acquire_won(struct engine *e, struct op *op, int64_t fence)
{
	if (!acquire_is_useful(e, op)) {
		acquire_failed(e, op);
		return;
	}
	acquire_close(e, op);
	engine_won(e, op, fence);
}

/* Second round: floor = the largest base, at the nodes of the decision only. */
static void acquire_raise(struct engine *e, struct op *first)
{
	struct lock *l = first->lock;
	struct op *op = op_new(&e->ops, OP_RAISE, l);

	op->fence = acquire_largest(e, first);
	acquire_close(e, first);
	l->round = op;
	op->ttl_us = first->ttl_us;
	op->range = first->range;
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if ((first->yes >> i & 1) || (MUTATED(RAISE_ANYWHERE) && member_usable(&e->members.node[i])))
			op_send_extend(&e->ops, op, i, op->fence + op->range, false);
	heap_set(&e->core->timers, &op->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

void acquire_hurry(struct engine *e, struct op *op, int64_t us)
{
	struct instant until = instant_add(e->core->now, us);

	if (instant_before(until, op->timer.at))
		heap_set(&e->core->timers, &op->timer, until);
}

/* Bases differ and somebody has not answered: a little time for it to agree. */
static void acquire_await_stragglers(struct engine *e, struct op *op)
{
	int64_t rtt = STRAGGLER_LEAST_US;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if ((op->yes >> i & 1) && 2 * e->members.node[i].rtt_us > rtt)
			rtt = 2 * e->members.node[i].rtt_us;
	acquire_hurry(e, op, rtt);
}

/* Not won: is it clear already whether somebody holds it, the votes are split, or too few stores answer? */
static bool acquire_is_clear(const struct engine *e, const struct op *op, uint16_t open)
{
	return !open || acquire_is_held(e, op) || bits(op->busy | op->behind | op->yes | open) < engine_quorum(e);
}

static void acquire_decide(struct engine *e, struct op *op)
{
	uint16_t open = op->expired ? 0 : op->open;
	unsigned quorum = engine_quorum(e);
	int64_t fence = op->kind == OP_RAISE ? op->fence : acquire_agreed(e, op);

	if (bits(op->yes) >= quorum && fence >= 0)
		acquire_won(e, op, fence);
	else if (bits(op->yes | open) < quorum && acquire_is_clear(e, op, open))
		acquire_failed(e, op);
	else if (bits(op->yes) >= quorum && !open)
		acquire_raise(e, op);
	else if (bits(op->yes) >= quorum)
		acquire_await_stragglers(e, op);
	else if (op->kind == OP_ACQUIRE && (op->busy | op->behind) && bits(op->yes | op->no) >= quorum)
		split_await(e, op);
}

void acquire_widen(struct engine *e, struct op *op)
{
	bool led = op->yes != 0;
	uint16_t later = op->later;

	op->later = 0;
	heap_set(&e->core->timers, &op->timer, instant_add(e->core->now, e->core->conf.timeout_us));
	acquire_ask(e, op, later, led ? acquire_largest(e, op) : acquire_proposal(e));
}

/* The leading node has answered. Its token is proposed to the others, so that the bases agree. */
static void acquire_led(struct engine *e, struct op *op)
{
	if (TAILQ_EMPTY(&op->lock->line) || ((op->busy | op->behind) && !op->alien))
		acquire_failed(e, op);
	else
		acquire_widen(e, op);
}

static void acquire_note_holder(struct engine *e, struct lock *l, const struct answer *a)
{
	struct span holder = a->holder.n > 0 ? a->holder : SPAN("");
	const char *dot = memchr(holder.p, '.', holder.n);
	const char *colon = memchr(holder.p, ':', holder.n);
	struct span own = span_of(e->core->daemon_id);

	l->elsewhere.foreign = holder.n == 0 && e->core->conf.shared;
	l->elsewhere.host[0] = '\0';
	if (dot && colon && dot < colon && !span_starts(holder, own)) {
		size_t n = (size_t)(colon - dot - 1);

		n = n < sizeof(l->elsewhere.host) ? n : sizeof(l->elsewhere.host) - 1;
		memcpy(l->elsewhere.host, dot + 1, n);
		l->elsewhere.host[n] = '\0';
	}
}

void acquire_answered(struct engine *e, struct op *op, const struct answer *a)
{
	struct lock *l = op->lock;
	uint16_t bit = (uint16_t)(1u << a->node);
	bool present = l->value.ticket == op->value.ticket;

	if (present && op->kind == OP_ACQUIRE && (op->no & bit))
		l->placed &= (uint16_t)~bit;
	if (a->class == ANSWER_EXECUTED && (a->code == 'B' || a->code == 'K') && l->state == LOCK_ACQUIRING)
		acquire_note_holder(e, l, a);
	if (!op->decided) {
		if (op->later)
			acquire_led(e, op);
		if (!op->decided)
			acquire_decide(e, op);
	} else if (present && l->state == LOCK_HELD && (op->yes & bit) && !(l->renewed & bit)) {
		/* A late vote for the lease that won without it. A renewal sent since may have shortened it: that one's answer counts. */
		l->votes.until[a->node] = instant_max(l->votes.until[a->node], op->votes.until[a->node]);
		engine_schedule(e, l);
	}
}

void acquire_expired(struct engine *e, struct op *op)
{
	acquire_decide(e, op);
	engine_retire(e, op);
}
