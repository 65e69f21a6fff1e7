/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Debts: releases that the stores have not all confirmed. From debt_begin on the value is dead; it is deleted, or left with a short TTL, wherever it may
 * stand, again and again where the outcome is unknown, until the key has expired by itself.
 */
#include "daemon/core/round.h"

#define RETRY_US (100 * MSEC)

void debt_send(struct engine *e, struct op *op)
{
	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		if (!(op->owed >> i & 1) || (op->open >> i & 1) || !e->members.node[i].connected)
			continue;
		if (op->kind == OP_RELEASE)
			op_send_release(&e->ops, op, i);
		else if (e->members.node[i].state == MEMBER_JOINED)
			op_send_extend(&e->ops, op, i, 0, false);
	}
}

static void debt_schedule(struct engine *e, struct op *op)
{
	struct instant retry = instant_add(e->core->now, op->pending ? e->core->conf.timeout_us : RETRY_US);

	heap_set(&e->core->timers, &op->timer, instant_min(op->until, retry));
}

static void debt_open(struct engine *e, struct op *op, uint16_t nodes, struct instant until)
{
	op->owed = nodes;
	op->until = until;
	op->decided = true;
	op->in_debt = true;
	TAILQ_INSERT_TAIL(&e->debts, op, in_debts);
	metric_add(&e->core->metrics, METRIC_DEBTS, 1);
	if (op->pending || !pace_holds_debt(e, op))
		debt_send(e, op);
	debt_schedule(e, op);
}

void debt_of_value(struct engine *e, struct lock *l, const struct lock_value *value, uint16_t nodes, struct instant until)
{
	struct op *op = op_new(&e->ops, OP_RELEASE, l);

	op->value = *value;
	debt_open(e, op, nodes, until);
}

void debt_begin(struct engine *e, struct lock *l, enum op_kind kind, int64_t px_us, struct pending *p)
{
	struct op *op;

	adopt_undo(e, l);
	if (!l->placed && !p)
		return;
	op = op_new(&e->ops, kind, l);
	op->px_us = px_us;
	op->pending = p;
	debt_open(e, op, l->placed, l->px_until);
	l->placed = 0;
}

static void debt_answer(struct engine *e, struct op *op, enum refusal why)
{
	engine_notice(e, NOTICE_RELEASED, NULL, op->pending, why);
	op->pending = NULL;
}

/* sync=yes: a quorum has freed it, or a majority did not have it any more. */
static void debt_decide(struct engine *e, struct op *op)
{
	unsigned quorum = engine_quorum(e);

	if (!op->pending)
		return;
	if (bits(op->yes) >= quorum)
		debt_answer(e, op, REFUSED_NOT);
	else if (bits(op->no & (uint16_t)~op->owed) > e->core->conf.nodes - quorum)
		debt_answer(e, op, REFUSED_LOST);
}

static void debt_settled(struct engine *e, struct op *op)
{
	if (op->pending)
		debt_answer(e, op, REFUSED_QUORUM);
	TAILQ_REMOVE(&e->debts, op, in_debts);
	pace_leave_debt(e, op);
	op->in_debt = false;
	heap_cancel(&e->core->timers, &op->timer);
	metric_add(&e->core->metrics, METRIC_DEBTS, -1);
}

void debt_answered(struct engine *e, struct op *op, const struct answer *a)
{
	uint16_t bit = (uint16_t)(1u << a->node);

	if (!op->in_debt)
		return;
	if (a->class == ANSWER_EXECUTED)
		op->owed &= (uint16_t)~bit;
	else
		op->no &= (uint16_t)~bit; /* not carried out: asked again */
	debt_decide(e, op);
	if (!op->owed)
		debt_settled(e, op);
}

void debt_fired(struct engine *e, struct op *op)
{
	if (op->pending) {
		op_stall(&e->ops, op);
		debt_answer(e, op, REFUSED_QUORUM);
	}
	if (!instant_before(e->core->now, op->until)) {
		debt_settled(e, op);
		engine_retire(e, op);
		return;
	}
	if (!op->paced)
		debt_send(e, op);
	debt_schedule(e, op);
}

void debt_node_up(struct engine *e, unsigned node)
{
	struct op *op;

	TAILQ_FOREACH(op, &e->debts, in_debts) {
		if ((op->owed >> node & 1) && !op->paced)
			debt_send(e, op);
	}
}
