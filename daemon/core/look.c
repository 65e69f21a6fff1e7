/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has a name, for somebody who only asks: one question to the stores that have room, which changes nothing there. What waits for admission
 * comes first: a crowd that looks costs nobody a lease.
 */
#include "daemon/core/look.h"

#include "daemon/core/move.h"
#include "daemon/core/round.h"

static struct nodeset look_whom_to_ask(const struct engine *e)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (member_usable(m) && flow_has_room(&m->flow))
			nodeset_add(&nodes, i);
	}
	return nodes;
}

static void look_close(struct engine *e, struct op *op)
{
	op->decided = true;
	notices_add(&e->notices, NOTICE_SEEN, NULL, op->pending, REFUSED_NOT);
	op->pending = NULL;
	if (!nodeset_any(op->open))
		heap_cancel(&e->core->timers, &op->timer);
}

void look_begin(struct engine *e, struct pending *p)
{
	struct op *op = op_new(&e->ops, OP_LOOK, p->lock);
	struct nodeset nodes = look_whom_to_ask(e);

	op->pending = p;
	if (nodeset_count(nodes) < engine_quorum(e)) {
		look_close(e, op);
		retire(e, op);
		return;
	}
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			op_send_look(&e->ops, op, i);
	heap_set(&e->core->timers, &op->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* A quorum has the same value, and this answer was the last that it took. */
static void look_found(struct engine *e, struct op *op, const struct answer *a)
{
	struct elsewhere *seen = &op->pending->elsewhere;

	seen->known = true;
	elsewhere_note(e->core, seen, a);
	seen->pttl_ms = round_pttl_ms(op, e->core->conf.nodes);
	seen->at = e->core->now;
}

void look_answered(struct engine *e, struct op *op, const struct answer *a)
{
	unsigned quorum = engine_quorum(e);

	if (op->decided)
		return;
	if (a->class == ANSWER_EXECUTED && a->code == 'M')
		nodeset_add(&op->yes, a->node);
	if (round_same_holder_at(op, e->core->conf.nodes, a->node) >= quorum)
		look_found(e, op, a);
	op->pending->free = nodeset_count(op->yes) >= quorum;
	if (op->pending->elsewhere.known || op->pending->free || !nodeset_any(op->open))
		look_close(e, op);
}

void look_expired(struct engine *e, struct op *op)
{
	look_close(e, op);
	retire(e, op);
}
