/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has a name: the question of SHOW. It goes to the stores that have room, and changes nothing there. What waits for admission comes first, so
 * a crowd of SHOWs costs nobody a lease.
 */
#include "daemon/core/engine/ask_holder.h"

#include "daemon/core/engine/move.h"
#include "daemon/core/round/ask.h"
#include "daemon/core/round/round.h"

static struct nodeset ask_holder_whom_to_ask(const struct engine *e)
{
	struct nodeset nodes = NODESET_NONE;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		if (member_usable(m) && flow_has_room(&m->flow))
			nodeset_add(&nodes, i);
	}
	return nodes;
}

static void ask_holder_close(struct engine *e, struct round *r)
{
	r->decided = true;
	notices_add(&e->notices, NOTICE_SEEN, NULL, r->pending, NOT_REFUSED);
	r->pending = NULL;
	if (!nodeset_any(r->calls.open))
		heap_cancel(&e->core->timers, &r->timer);
}

void ask_holder_begin(struct engine *e, struct pending *p)
{
	struct round *r = round_new(&e->rounds, QUESTION_LOOK, &p->lock->name, NULL);
	struct nodeset nodes = ask_holder_whom_to_ask(e);

	r->pending = p;
	if (nodeset_count(nodes) < engine_quorum(e)) {
		ask_holder_close(e, r);
		retire_round(e, r);
		return;
	}
	for (unsigned i = 0; i < e->core->conf.nodes; i++)
		if (nodeset_has(nodes, i))
			ask_look(&e->calls, r, i);
	heap_set(&e->core->timers, &r->timer, instant_add(e->core->now, e->core->conf.timeout_us));
}

/* A quorum has the same value, and this answer completes it. */
static void ask_holder_found(struct engine *e, struct round *r, const struct answer *a)
{
	struct elsewhere *seen = &r->pending->elsewhere;

	seen->known = true;
	elsewhere_note(e->core, seen, a);
	seen->limit = value_limit(answer_holder(a));
	seen->pttl_ms = round_pttl_ms(r, e->core->conf.nodes);
	seen->at = e->core->now;
}

void ask_holder_answered(struct engine *e, struct round *r, const struct answer *a)
{
	unsigned quorum = engine_quorum(e);

	if (r->decided)
		return;
	if (a->class == ANSWER_EXECUTED && a->code != 'Q')
		ticket_seen_note(e->core, &r->pending->next, a);
	if (a->class == ANSWER_EXECUTED && a->code == 'M')
		nodeset_add(&r->absent, a->node);
	if (round_same_value_at(r, e->core->conf.nodes, a->node) >= quorum)
		ask_holder_found(e, r, a);
	r->pending->free = nodeset_count(r->absent) >= quorum;
	if (r->pending->elsewhere.known || r->pending->free || !nodeset_any(r->calls.open))
		ask_holder_close(e, r);
}

void ask_holder_expired(struct engine *e, struct round *r)
{
	ask_holder_close(e, r);
	retire_round(e, r);
}
