/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that starve: those who wait for them keep their place while there is no quorum to ask, and are served as soon as there is one. */
#include "daemon/core/move.h"
#include "daemon/core/engine_part.h"

/* It is being looked at, and has had no more than the time of a command so far. */
static bool node_is_promised(const struct engine *e, const struct member *m)
{
	bool asked = m->asked != MEMBER_IDLE && instant_diff(e->core->now, m->asked_at) <= e->core->conf.timeout_us;

	return m->state == MEMBER_PROBING && (asked || m->jump.open) && !m->stalled;
}

/* A node's verdict is on its way: better a moment's patience than a refusal that is wrong a moment later. */
static bool quorum_is_promised(const struct engine *e)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->core->conf.nodes; i++) {
		const struct member *m = &e->members.node[i];

		n += member_usable(m) || node_is_promised(e, m);
	}
	return n >= engine_quorum(e);
}

/* Too few usable nodes: those who wait keep their place until a node comes back. */
void starve(struct engine *e, struct lock *l)
{
	bool promised = quorum_is_promised(e);

	l->elsewhere.split = false;
	l->elsewhere.outdated = true;
	contender_move(e, l, CONTENDER_NO_QUORUM, CAUSE_TOO_FEW);
	line_refuse_part(e, l, REFUSED_QUORUM, promised ? LINE_OVERDUE : LINE_IMPATIENT);
	if (l->contender != CONTENDER_NO_QUORUM)
		return;
	if (promised)
		line_look_at(e, l, instant_add(e->core->now, core_patience_us(e->core)));
	turn_withdraw(e, l); /* without a quorum we are in nobody's way */
}

void starve_end(struct engine *e)
{
	const struct lock *last = TAILQ_LAST(&e->starved, locks), *l = NULL;

	while (l != last) {
		struct lock *first = TAILQ_FIRST(&e->starved);

		l = first;
		acquire_begin(e, first, CAUSE_QUORUM_BACK); /* one that finds no quorum after all goes to the end */
	}
}
