/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks that starve: those who wait for them keep their place while there is no quorum to ask, and are served as soon as there is one. */
#include "daemon/core/move.h"
#include "daemon/core/engine_part.h"

/* Too few usable nodes: those who wait keep their place until a node comes back. */
void starve(struct engine *e, struct lock *l)
{
	bool promised = members_promise_quorum(&e->members);

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
