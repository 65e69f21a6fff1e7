/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outstanding releases: those that the stores have not all confirmed. From release_begin on the value is dead; it is deleted, or left with a short TTL, wherever it may
 * stand, again and again where the outcome is unknown, until the key has expired by itself.
 * See ALGORITHMS.md, Outstanding releases.
 */
#include "daemon/core/release.h"

#include "daemon/core/admit.h"
#include "daemon/core/adoption.h"
#include "daemon/core/move.h"

#include "daemon/base/mem.h"

#include <stdio.h>

static bool release_may_ask(const struct engine *e, const struct op *op, unsigned node)
{
	const struct member *m = &e->members.node[node];

	return nodeset_has(op->owed, node) && !nodeset_has(op->open, node) && m->connected && (op->kind == OP_RELEASE || m->state == MEMBER_JOINED);
}

/* It has more than enough to do: what is sent there only waits there. At the end there is no other time. */
static bool release_is_put_off(const struct engine *e, unsigned node)
{
	return flow_is_full(&e->members.node[node].flow) && !e->draining;
}

/* There is somebody to send it to. A store that hangs is let be; but as long as a quorum does not know, the name may be asked for in vain. */
static bool release_is_due(const struct engine *e, const struct op *op)
{
	bool blocks = nodeset_count(op->owed) > e->core->conf.nodes - engine_quorum(e), due = false;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		due |= release_may_ask(e, op, i) && (blocks || !release_is_put_off(e, i));
	return due;
}

static void release_put_off(struct op *op, unsigned node)
{
	nodeset_add(&op->put_off, node);
	nodeset_add(&op->lock->put_off, node);
}

/* That another release of this name is sent there says nothing of this one. */
static void release_undo_put_off(struct op *op, struct nodeset nodes)
{
	op->lock->put_off = nodeset_without(op->lock->put_off, nodeset_and(op->put_off, nodes));
	op->put_off = nodeset_without(op->put_off, nodes);
}

static void release_send(struct engine *e, struct op *op)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		if (!release_may_ask(e, op, i))
			continue;
		if (release_is_put_off(e, i)) {
			release_put_off(op, i);
			continue;
		}
		release_undo_put_off(op, nodeset_of(i));
		if (op->kind == OP_RELEASE)
			op_send_release(&e->ops, op, i);
		else
			op_send_leave(&e->ops, op, i);
	}
}

static struct instant release_retry_soonest(const struct engine *e)
{
	return instant_max(instant_add(e->core->now, RETRY_US), e->retry_next);
}

struct instant release_retry_at(struct engine *e)
{
	struct instant at = release_retry_soonest(e);

	e->retry_next = instant_add(at, RETRY_APART_US);
	return at;
}

/* One store may be asked again long before another. The moment that is kept for it already is given up for a sooner one only: each costs all others one. */
static void release_try_again(struct engine *e, struct op *op, struct instant earliest)
{
	struct instant soonest = instant_max(earliest, release_retry_soonest(e));

	if (timer_is_set(&op->timer) && !instant_before(soonest, op->timer.at))
		return;
	heap_set(&e->core->timers, &op->timer, instant_min(op->until, instant_max(earliest, release_retry_at(e))));
}

/* A store that is there was not asked, since it had too much to do. */
static bool release_is_left(const struct engine *e, const struct op *op)
{
	bool left = false;

	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		left |= release_may_ask(e, op, i);
	return left;
}

/* What is in flight says itself how it ends, and a store that is away is told when it is back: only what was put off is looked after. */
void release_go_on(struct engine *e, struct op *op)
{
	release_send(e, op);
	if (op->pending)
		heap_set(&e->core->timers, &op->timer, instant_min(op->until, instant_add(e->core->now, e->core->conf.timeout_us)));
	else if (release_is_left(e, op))
		release_try_again(e, op, INSTANT_PAST);
	else
		heap_set(&e->core->timers, &op->timer, op->until);
}

/* Queues it for admission, unless it may begin now. Each time, since a store that comes back, or refuses all, may have many to get. False: it may begin. */
static bool release_queue(struct engine *e, struct op *op)
{
	if (e->draining || !release_is_due(e, op) || admit(e, &op->entry, INSTANT_PAST))
		return false;
	heap_set(&e->core->timers, &op->timer, op->until);
	return true;
}

static void release_open(struct engine *e, struct op *op, struct nodeset nodes, struct instant until)
{
	op->owed = nodes;
	op->no = nodeset_without(nodeset_all(e->core->conf.nodes), nodes);
	op->until = until;
	op->decided = true;
	op->outstanding = true;
	TAILQ_INSERT_TAIL(&e->releases, op, in_releases);
	metric_add(&e->core->metrics, METRIC_OUTSTANDING_RELEASES, 1);
	if (!release_queue(e, op))
		release_go_on(e, op);
}

/* All values are dead from here on. What is left of the key has one that nobody was ever asked to extend. */
static void release_take_values(struct engine *e, struct op *op, struct span prior)
{
	const struct lease_value *v = &op->lock->lease.value;
	size_t n = op->kind == OP_LEAVE ? v->n : 0, size = n + 1 + prior.n + 1;

	if (n + prior.n == 0)
		return;
	op->others = mem_alloc(size);
	snprintf(op->others, size, "%.*s%s%.*s", (int)n, v->text, n > 0 && prior.n > 0 ? " " : "", (int)prior.n, prior.p);
	if (op->kind == OP_LEAVE && !MUTATED(LEAVE_UNROTATED))
		lock_value_make(&e->table, &op->value);
}

/* A renewal that hung may be carried out just before the key ends that it finds, and keeps it for as long again. */
static struct instant release_until(const struct lock *l)
{
	bool may_hang = nodeset_any(nodeset_and(nodeset_or(l->lease.unanswered, l->lease.unknown), l->lease.placed)) && !MUTATED(RENEWED_IN_TIME);

	return may_hang ? instant_add(l->lease.px_until, l->lease.px_us + l->lease.px_us / 50) : l->lease.px_until;
}

void release_begin(struct engine *e, struct lock *l, enum op_kind kind, int64_t px_us, struct pending *p)
{
	struct instant until = release_until(l);
	struct nodeset nodes = l->lease.placed;
	struct span prior = MUTATED(LEAVE_PRESENT_ONLY) ? SPAN("") : adoption_left(&e->ops, l, &nodes, &until);
	struct op *op;

	if (MUTATED(KEEP_FREES_FORMER) && prior.n > 0)
		kind = OP_RELEASE;
	if (nodeset_any(nodes)) {
		op = op_new(&e->ops, kind, l);
		op->px_us = px_us;
		op->pending = p;
		op->value_since = l->lease.value_since;
		release_take_values(e, op, prior);
		release_open(e, op, nodes, until);
	} else if (p) {
		notices_add(&e->notices, NOTICE_RELEASED, NULL, p, REFUSED_LOST);
	}
	l->lease.placed = NODESET_NONE;
	adoption_over(l);
}

static void release_answer(struct engine *e, struct op *op, enum refusal why)
{
	notices_add(&e->notices, NOTICE_RELEASED, NULL, op->pending, why);
	op->pending = NULL;
}

/* sync=yes: a quorum has freed it, or a majority did not have it any more. */
static void release_decide(struct engine *e, struct op *op)
{
	unsigned quorum = engine_quorum(e);

	if (!op->pending)
		return;
	if (nodeset_count(op->yes) >= quorum)
		release_answer(e, op, REFUSED_NOT);
	else if (nodeset_count(op->no) > e->core->conf.nodes - quorum)
		release_answer(e, op, REFUSED_LOST);
}

static void release_settled(struct engine *e, struct op *op)
{
	if (op->pending)
		release_answer(e, op, op->entry.waits ? REFUSED_NOT_ADMITTED : REFUSED_QUORUM);
	/* The TTL of a lease includes its lock-delay. */
	if (op->kind == OP_LEAVE && op->px_us > op->delay_us && nodeset_count(op->yes) < engine_quorum(e) && core_may_log(e->core, BURST_LOST))
		core_log(e->core, LOG_WARN, "keep-lost", "name=%s stores=%u note=\"it may be granted before its time\"", core_quoted(e->core, lock_name(op->lock)),
		         nodeset_count(op->yes));
	TAILQ_REMOVE(&e->releases, op, in_releases);
	admission_leave(&e->admission, &op->entry);
	release_undo_put_off(op, op->owed); /* it has expired there */
	op->outstanding = false;
	heap_cancel(&e->core->timers, &op->timer);
	metric_add(&e->core->metrics, METRIC_OUTSTANDING_RELEASES, -1);
}

/* What was sent before over another connection may set the key yet, until then. What was left behind keeps that out while it stands. */
static struct instant release_astray_until(const struct engine *e, const struct op *op, const struct answer *a)
{
	struct instant until = op_astray_until(&e->ops, a->node, op->value_since, op->begun);

	if (MUTATED(STRAYS_FORGOTTEN))
		return INSTANT_PAST;
	if (op->kind != OP_LEAVE || a->code != 'E')
		return until;
	return MUTATED(LEFT_BRIEFLY) || instant_before(until, vote_until(op->sent[a->node], a->pttl_ms * MSEC)) ? INSTANT_PAST : until;
}

/* What an answer says of the key. A marker that is another's says nothing of it; nor does it that nothing of ours is there, if it may have gone with an earlier
 * release that was not heard of. */
static void release_note(struct engine *e, struct op *op, const struct answer *a)
{
	bool freed = nodeset_has(nodeset_or(op->unsure, op->yes), a->node) && !MUTATED(REPEAT_DENIES);

	if (a->class == ANSWER_UNKNOWN)
		nodeset_add(&op->unsure, a->node);
	if (a->class != ANSWER_EXECUTED || a->code == 'Q') {
		nodeset_remove(&op->no, a->node); /* not carried out: asked again */
		return;
	}
	if (!instant_before(e->core->now, release_astray_until(e, op, a)))
		nodeset_remove(&op->owed, a->node);
	if (!freed)
		return;
	nodeset_remove(&op->no, a->node);
	if (op->kind == OP_RELEASE)
		nodeset_add(&op->yes, a->node); /* it is free, and that was all that was to be done */
}

void release_answered(struct engine *e, struct op *op, const struct answer *a)
{
	if (!op->outstanding)
		return;
	release_note(e, op, a);
	release_decide(e, op);
	if (!nodeset_any(op->owed))
		release_settled(e, op);
	else if (nodeset_has(op->owed, a->node) && !op->pending && !op->entry.waits)
		release_try_again(e, op, a->class == ANSWER_EXECUTED ? release_astray_until(e, op, a) : INSTANT_PAST);
}

void release_fired(struct engine *e, struct op *op)
{
	if (op->pending && !op->entry.waits) {
		op_stall(&e->ops, op);
		release_answer(e, op, REFUSED_QUORUM);
	}
	if (!instant_before(e->core->now, op->until)) {
		release_settled(e, op);
		retire(e, op);
		return;
	}
	if (!release_queue(e, op))
		release_go_on(e, op);
}

void releases_resume(struct engine *e)
{
	struct op *op;

	TAILQ_FOREACH(op, &e->releases, in_releases) {
		if (release_queue(e, op))
			continue;
		release_send(e, op);
		if (release_is_left(e, op))
			release_try_again(e, op, INSTANT_PAST);
	}
}

void releases_tell(struct engine *e, const struct lock *l)
{
	struct op *op;

	TAILQ_FOREACH(op, &e->releases, in_releases) {
		if (op->lock == l && nodeset_any(op->put_off))
			release_send(e, op);
	}
}

bool releases_answer_syncs(struct engine *e)
{
	struct op *op;
	bool some = false;

	TAILQ_FOREACH(op, &e->releases, in_releases) {
		if (!op->pending)
			continue;
		release_answer(e, op, REFUSED_QUORUM);
		some = true;
	}
	return some;
}

void releases_hurry(struct engine *e)
{
	struct op *op;

	TAILQ_FOREACH(op, &e->releases, in_releases) {
		if (!op->entry.waits && !nodeset_any(op->put_off))
			continue;
		admission_leave(&e->admission, &op->entry);
		release_go_on(e, op);
	}
}
